"""Scores of heads from their patterns, the long way: what include/headwise/study/{scores,shuffle_bound,copying,roles}.hpp say.

Run with no arguments it makes scores.safetensors, for tests/study/scores_golden_test.cpp; README.md says what that holds.
study_scores.py compares what `headwise study` finds with the same functions. Needs Python 3 and NumPy.
"""

import math

import numpy as np

from study_golden import golden_decoder, moved, raised, save

WINDOW = 5                              # of locality
STEPS = [2.0 ** k for k in range(-4, 7)]  # the t of ShuffleBound
LEAST_P = 1e-300


# ---- p-values ----

def cumulants(weights):
    """log mean_j exp(t A_j) of one query's weights, for each t."""
    return np.log(np.exp(np.outer(STEPS, weights)).mean(1))


def bound(total, observed):
    """The least of exp(-t s) prod E exp(t S), a probability."""
    return min(1.0, max(LEAST_P, math.exp(max(-700.0, min(0.0, (total - np.multiply(STEPS, observed)).min())))))


def holm(p):
    """Corrected p-values, in the order given."""
    corrected, so_far = [0.0] * len(p), 0.0
    for rank, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        so_far = max(so_far, min(1.0, p[i] * (len(p) - rank)))
        corrected[i] = so_far
    return corrected


# ---- Scores that are weights on some of the keys ----

def masks(ids, time):
    """Of one sequence of n tokens, in a batch of `time`: for each score which keys (n,n) it counts, and which queries (n)."""
    n = len(ids)
    i, j = np.indices((n, n))
    every = np.ones(n, bool)
    same = (ids[:, None] == ids[None, :]) & (j < i)
    follows = np.zeros((n, n), bool)
    follows[:, 1:] = same[:, :-1]  # key j where token j - 1 was an earlier occurrence
    repeats = same.any(1)
    found = {
        "previous_token": (j == i - 1, np.arange(n) >= 1),
        "current_token": (j == i, every),
        "first_token": (j == 0, every),
        "duplicate_token": (same, repeats),
        "prefix_matching": (follows, repeats),
        "locality": ((j <= i) & (i - j < WINDOW), every),
    }
    for k in range(time // 2 + 1):
        found[f"offset {k}"] = (j == i - k, np.arange(n) >= k)
    return found


def pattern_scores(patterns, ids, time):
    """Scores of one head: a dictionary of value, chance, p and offset, from the patterns (n,n) and the tokens (n) of sequences.

    `time` is what the longest of the batch has."""
    patterns = [np.asarray(a, float) for a in patterns]
    each = [np.array([cumulants(row[:i + 1]) for i, row in enumerate(a)]) for a in patterns]
    shares = {}  # name: [sum of weights, sum of chances, queries, cumulants]
    rows = []    # of each query: entropy, confidence, mean distance, and what even weights give
    for a, tokens, of_query in zip(patterns, ids, each):
        n = len(tokens)
        seen = np.arange(1, n + 1)
        for name, (keys, queries) in masks(np.asarray(tokens), time).items():
            total = shares.setdefault(name, [0.0, 0.0, 0, np.zeros(len(STEPS))])
            count = keys.sum(1)
            total[0] += (a * keys)[queries].sum()
            total[1] += (count / seen)[queries].sum()
            total[2] += queries.sum()
            total[3] += (count[:, None] * of_query)[queries].sum(0)
        i, j = np.indices((n, n))
        positive = np.where(a > 0, a, 1)
        rows.append(np.stack([-(a * np.log(positive)).sum(1), a.max(1), (a * (i - j)).sum(1),
                              np.log(seen), 1 / seen, (seen - 1) / 2]))
    scores = {}
    for name, (value, chance, queries, total) in shares.items():
        if queries:
            scores[name] = {"value": value / queries, "chance": chance / queries, "p": bound(total, value)}
    offsets = [scores.pop(f"offset {k}", None) for k in range(time // 2 + 1)]
    tried = sum(o is not None for o in offsets)
    best = max((k for k, o in enumerate(offsets) if o), key=lambda k: (offsets[k]["value"], -k))
    scores["fixed_offset"] = offsets[best] | {"p": min(1.0, offsets[best]["p"] * tried), "offset": best}
    means = np.concatenate(rows, 1).mean(1)
    for at, name in enumerate(("entropy", "confidence", "mean_distance")):
        scores[name] = {"value": means[at], "chance": means[3 + at]}
    return scores


def copying_score(shares, attended, ids):
    """Copying of one head. Of each sequence of n tokens: shares (n,V) as raised() gives them, the token attended to (n), the tokens."""
    values, chances, total = [], [], np.zeros(len(STEPS))
    for of_sequence, tokens, own in zip(shares, attended, ids):
        distinct = np.unique(own)
        for row, token in zip(of_sequence, tokens):
            if row.sum() > 0 and token != own[0]:  # resting on the first token is no copying
                values.append(row[token])
                chances.append(1 / len(distinct))
                total += cumulants(row[distinct])
    if not values:
        return None
    return {"value": np.mean(values), "chance": np.mean(chances), "p": bound(total, sum(values))}


def copying_scores(model, ids, sequences, patterns):
    """copying_score() of every head, {(layer, head): score}, which token is attended to most being read from `patterns`.

    ids (B,T), the sequences without their padding, patterns (B,H,T,T) of each layer."""
    seen, found = model.forward(ids), {}
    for layer in range(model.layers):
        f, shares = moved(model, layer, seen.values[layer]), []
        for b, own in enumerate(sequences):
            n = len(own)
            shares.append(raised(model, [own], seen.patterns[layer][b:b + 1, :, :n, :n], f[b:b + 1, :, :n])[0][0])
        for head in range(model.heads):
            attended = [own[a[head, :len(own), :len(own)].argmax(-1)] for own, a in zip(sequences, patterns[layer])]
            found[layer, head] = copying_score([s[head] for s in shares], attended, sequences)
    return found


# ---- Roles ----

ON = {role: "data" for role in ("previous_token", "current_token", "first_token", "fixed_offset")}
ON |= {role: "repeated" for role in ("duplicate_token", "prefix_matching", "copying")}
ON |= {role: "stories" for role in ("subject", "antecedent", "sense")}
PEOPLE_SAY = {"previous_token": "previous token", "current_token": "current token", "first_token": "first token",
              "duplicate_token": "duplicate token", "prefix_matching": "induction", "copying": "copying",
              "subject": "subject of verb", "antecedent": "antecedent of pronoun", "sense": "sense of bank"}


def name_roles(heads, alpha, margin):
    """Role, label and corrected p of each head, from its scores by set: [{"data": scores, "repeated": scores, ...}]."""
    tests = [(h, role) for h, on in enumerate(heads) for role in ON if on.get(ON[role], {}).get(role, {}).get("p") is not None]
    corrected = dict(zip(tests, holm([heads[h][ON[role]][role]["p"] for h, role in tests])))
    named = []
    for h, on in enumerate(heads):
        candidates = []
        for role in ON:
            if (h, role) not in corrected:
                continue
            score = on[ON[role]][role]
            explained = score["chance"]
            if role in ("duplicate_token", "prefix_matching"):
                explained = max(explained, on["repeated"]["fixed_offset"]["value"])
            if ON[role] == "stories":
                explained = max(explained, score["baseline"])
            if role == "fixed_offset" and score["offset"] < 2:
                continue
            if corrected[h, role] < alpha and score["value"] - explained >= margin:
                candidates.append(((score["value"] - explained) / (1 - explained), role))
        if len(candidates) > 1:
            candidates = [c for c in candidates if c[1] != "copying"]
        role = max(candidates)[1] if candidates else None
        label = f"offset -{on['data']['fixed_offset']['offset']}" if role == "fixed_offset" else PEOPLE_SAY.get(role, "")
        named.append((role, label, corrected[h, role] if role else None))
    return named


# ---- The golden numbers ----

KEYS = ("previous_token", "current_token", "first_token", "fixed_offset", "duplicate_token", "prefix_matching", "copying",
        "entropy", "confidence", "mean_distance", "locality")


def table(found):
    """(scores, 4): value, chance, p and offset, NaN for what there is not."""
    return [[found.get(key, {}).get(what, math.nan) for what in ("value", "chance", "p", "offset")] for key in KEYS]


def of_decoder(name, ids, lengths):
    """The scores of a golden decoder's heads on all sequences together, (heads, scores, 4)."""
    model, _ = golden_decoder(name)
    patterns, sequences, tables = model.forward(ids).patterns, [row[:n] for row, n in zip(ids, lengths)], []
    copying = copying_scores(model, ids, sequences, patterns)
    for layer, head in model.every_head:
        of_head = [a[head, :n, :n] for a, n in zip(patterns[layer], lengths)]
        found = pattern_scores(of_head, sequences, ids.shape[1])
        tables.append(table(found | {"copying": copying[layer, head]}))
    return tables


def make():
    random = np.random.default_rng(1)
    ids = random.integers(0, 6, (2, 12))
    logits = random.standard_normal((2, 2, 12, 12))
    for of, own in zip(logits, ids):  # the first head likes the token two before, the second what followed a token's copies
        of[0] += 3 * np.eye(12, k=-2)
        of[1] += 3 * masks(own, 12)["prefix_matching"][0]
    weights = np.tril(np.exp(logits))
    pattern = weights / weights.sum(-1, keepdims=True)
    tensors = {"pattern": pattern, "ids": ids,
               "of_pattern": [[table(pattern_scores([a], [own], 12)) for a in of] for of, own in zip(pattern, ids)]}
    model, _ = golden_decoder("tied")
    tensors["inputs"] = random.integers(0, len(model.embedding), (4, len(model.weights["pos.weight"])))
    tensors["lengths"] = np.array([tensors["inputs"].shape[1], 3, 1, tensors["inputs"].shape[1] - 1])
    for name in ("tied", "untied"):
        tensors[f"of_{name}"] = of_decoder(name, tensors["inputs"], tensors["lengths"])
    save("scores.safetensors", tensors)


if __name__ == "__main__":
    make()
