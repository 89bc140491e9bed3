"""Computes what `headwise study` finds once more, in double, from the run's weights and the file of patterns alone, and compares.

    headwise study RUN --json FOUND --patterns PATTERNS --sequences 4
    python3 tests/golden/study_scores.py RUN FOUND PATTERNS

Prints the largest difference of each kind of figure and ends with 1 when one is above 1e-9 for a run in double, 1e-5 for one in
single, whose own rounding that is (measured: 3e-6 of the largest logit lens probability, below 1e-6 elsewhere). A difference is
relative to the figure, of a list to its largest; of a p-value it is that of its logarithm; of what becomes of the loss it is in
parts of the loss. Not computed: what hangs on random draws (resampling, random
orders of pruning, the untrained models that entropy, confidence and distance are ranked among) and the questions about stories.
Needs Python 3 and NumPy; ends with 77, saying so, where there is none.
"""

import json
import math
import sys
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("the figures of `study` were not computed again: no NumPy")
    sys.exit(77)

import scores_golden as scores
import study_golden as weights

IGNORE = -100


class Differences:
    """The largest difference of each kind of figure."""

    def __init__(self, most):
        self.most, self.kinds = most, {}

    def add(self, kind, found, expected, where="", scale=None):
        """`scale` is what a difference is measured by; by default what is expected."""
        found, expected = (np.asarray(x, float) for x in (found, expected))
        count, worst, at = self.kinds.get(kind, (0, 0.0, ""))
        if found.shape != expected.shape:
            gap = math.inf
        else:
            scale = np.abs(expected).max(initial=0) if scale is None else scale
            gap = np.nan_to_num(np.abs(found - expected) / np.where(scale, scale, 1), nan=math.inf).max(initial=0)
        self.kinds[kind] = (count + found.size, max(worst, gap), where if gap > worst else at)

    def same(self, kind, found, expected, where=""):
        """Of what has no size: names, lists of names."""
        self.add(kind, 0.0 if found == expected else math.inf, 0.0, f"{where}: {found}, not {expected}")

    def p(self, kind, found, expected, where=""):
        logs = np.log([math.nan if found is None else found, expected])
        self.add(kind, logs[0], logs[1], where, max(1.0, abs(logs[1])))

    def report(self):
        """Prints the table and returns how many kinds are beyond what is allowed."""
        for kind, (count, worst, at) in self.kinds.items():
            print(f"{kind:34}{count:8}  {worst:8.1e}" + ("" if worst <= self.most else f"  ABOVE {self.most:.0e}: {at}"))
        return sum(worst > self.most for _, worst, _ in self.kinds.values())


class Set:
    """The sequences of a set in the file of patterns."""

    def __init__(self, file, name, layers):
        self.ids, self.targets, lengths = (file[f"{name}.{what}"] for what in ("ids", "targets", "lengths"))
        self.time = self.ids.shape[1]
        self.sequences = [ids[:n] for ids, n in zip(self.ids, lengths)]
        self.patterns = [file[f"{name}.blocks.{layer}.attn.pattern"] for layer in range(layers)]

    def of_head(self, layer, head):
        """Its patterns (n,n), one a sequence."""
        return [a[head, :len(ids), :len(ids)] for a, ids in zip(self.patterns[layer], self.sequences)]


def load_run(folder):
    """The model with the weights of the best validation loss, and config.json."""
    config = json.loads((folder / "config.json").read_text())
    tensors, _ = weights.load(folder.absolute() / "model.safetensors")
    shape = config["model"]
    return weights.Model({key: t.astype(float) for key, t in tensors.items()}, shape["layers"], shape["heads"], shape["gelu"]), config


# ---- What heads look at ----

def compare_scores(found, model, sets, differences):
    for name, of in sets.items():
        copying = scores.copying_scores(model, of.ids, of.sequences, of.patterns) if name == "repeated" else {}
        for head in found["heads"]:
            at = head["layer"], head["head"]
            expected = scores.pattern_scores(of.of_head(*at), of.sequences, of.time)
            if copying.get(at):
                expected["copying"] = copying[at]
            answered = head[f"on_{name}"]
            differences.same("which scores there are", sorted(answered), sorted(expected), f"{name} {at}")
            for score in sorted(answered.keys() & expected.keys()):
                a, e, where = answered[score], expected[score], f"{name} {at}"
                differences.add(score, a["value"], e["value"], where)
                differences.add(f"{score}: chance", a["chance"], e["chance"], where)
                if "p" in e:
                    differences.p(f"{score}: p", a["p"], e["p"], where)
                if "offset" in e:
                    differences.same("fixed_offset: offset", a["offset"], e["offset"], where)
    for head in found["heads"]:  # the headline repeats each score from where it tells most
        by_set = {key[3:]: on for key, on in head.items() if key.startswith("on_")}
        best = {key: on[key] | {"on": name} for name, on in by_set.items() for key in on if scores.ON.get(key, "data") == name}
        differences.same("headline scores", head["scores"], best, f"{head['layer']}.{head['head']}")


def compare_roles(found, model, differences):
    """The names that follow from the scores that were found."""
    by_set = [{key[3:]: on for key, on in head.items() if key.startswith("on_")} for head in found["heads"]]
    named = scores.name_roles(by_set, found["settings"]["alpha"], found["settings"]["margin"])
    groups = {}
    for head, (role, label, p) in zip(found["heads"], named):
        name = f"{head['layer']}.{head['head']}"
        differences.same("roles", [head["role"], head["label"]], [role, label], name)
        if role and head["corrected_p"] is not None:
            differences.p("roles: p, corrected", head["corrected_p"], p, name)
        groups.setdefault((role, label or "no role"), []).append(name)
    induction, previous = groups.get(("prefix_matching", "induction"), []), groups.get(("previous_token", "previous token"), [])
    if induction:
        by_keys, place = weights.composition(model)[1], {f"{a}.{b}": i for i, (a, b) in enumerate(model.every_head)}
        path = [a for a in previous if any(by_keys[place[b], place[a]] > model.width ** -0.5 for b in induction)]
        rest = [a for a in place if a not in path + induction]
        groups |= {(None, "previous tokens that feed the keys of induction"): path} if path else {}
        groups |= {(None, "all but induction and what feeds its keys"): rest} if rest else {}
    differences.same("groups", {(g["role"], g["label"]): g["heads"] for g in found["groups"]}, groups)


# ---- What they are worth ----

class Ablations:
    """Losses of the model on sequences (B,T), heads being zeroed or replaced."""

    def __init__(self, model, ids, targets):
        self.model, self.ids, self.targets = model, ids, targets
        self.clean = model.forward(ids)
        self.losses = self.losses_of(self.clean.logits)
        self.counts = (targets != IGNORE).sum(1)
        # Up to each sequence's last target: (B,T).
        self.is_read = np.logical_or.accumulate((targets != IGNORE)[:, ::-1], 1)[:, ::-1]
        self.loss = self.mean(self.losses)

    def losses_of(self, logits):
        """The summed loss of each sequence (B)."""
        shifted = logits - logits.max(-1, keepdims=True)
        log_p = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
        counts = self.targets != IGNORE
        of_target = np.take_along_axis(log_p, np.where(counts, self.targets, 0)[:, :, None], -1)[:, :, 0]
        return -(of_target * counts).sum(1)

    def mean(self, losses):
        return losses.sum() / self.counts.sum()

    def run(self, heads, instead, frozen=False):
        """Losses (B) where instead(z, layer, head) stands in the place of z (B,T,D) of each of `heads`."""
        def edit(layer, z):
            z = z.copy()
            for _, head in (h for h in heads if h[0] == layer):
                z[:, head] = instead(z[:, head], layer, head)
            return z
        first = min(layer for layer, _ in heads)
        patterns = self.clean.patterns if frozen else None
        return self.losses_of(self.model.forward(self.ids, patterns, edit, (first, self.clean.streams[first])).logits)

    def zeroed(self, heads, frozen=False):
        return self.mean(self.run(heads, lambda z, *_: 0 * z, frozen))

    def risen(self, heads):
        """By how much each sequence's summed loss rises without them (B)."""
        return self.run(heads, lambda z, *_: 0 * z) - self.losses

    def error(self, sums):
        """The standard error of sum(sums) / sum(counts), a ratio's."""
        sums, counts = sums[self.counts > 0], self.counts[self.counts > 0]
        if len(sums) < 2:
            return math.nan
        residuals = sums - sums.sum() / counts.sum() * counts
        return math.sqrt(len(sums) * residuals.var(ddof=1)) / counts.sum()

    def effects(self, heads):
        def mean(_, layer, head):
            return self.clean.z[layer][:, head][self.is_read].mean(0)
        return {"full": self.zeroed(heads) - self.loss,
                "frozen_patterns": self.zeroed(heads, frozen=True) - self.loss,
                "mean": self.mean(self.run(heads, mean)) - self.loss}

    def importance(self, head, step=1e-2):
        """Mean over sequences of |dL/dgate|, by differences of sixth order."""
        def across(k):
            up, down = (self.run([head], lambda z, *_: (1 + sign * k * step) * z) for sign in (1, -1))
            return up - down
        slope = (45 * across(1) - 9 * across(2) + across(3)) / (60 * step)
        asked = self.counts > 0
        return np.abs(slope[asked] / self.counts[asked]).mean()


def head_of(name):
    return tuple(int(part) for part in name.split("."))


def compare_effects(found, model, data, differences):
    count, length = found["ablated_on"]["sequences"], found["ablated_on"]["length"]
    on = Ablations(model, data.ids[:count, :length], data.targets[:count, :length])
    differences.add("loss", found["loss"], on.loss)
    importance, single, risen = {}, {}, {}

    def compare_error(kind, answered, sums, where):
        if answered is None:
            differences.same(kind, math.isnan(on.error(sums)), True, where)
        else:
            differences.add(kind, answered, on.error(sums), where, on.loss)

    for head in found["heads"]:
        at = head["layer"], head["head"]
        single[at], risen[at], importance[at] = on.effects([at]), on.risen([at]), on.importance(at)
        compare_error("ablation: full_error", head["ablation"]["full_error"], risen[at], at)
        for way, rise in single[at].items():
            differences.add(f"ablation: {way}", head["ablation"][way], rise, at, on.loss)
    scale = max(importance.values())
    for head in found["heads"]:
        at = head["layer"], head["head"]
        differences.add("importance", head["importance"], importance[at], at, scale)
    for group in found["groups"]:
        heads = [head_of(name) for name in group["heads"]]
        joint = on.effects(heads) | {"sum_of_single": sum(single[at]["full"] for at in heads)}
        for way, rise in joint.items():
            differences.add(f"groups: {way}", group[way], rise, group["label"], on.loss)
        together = on.risen(heads)
        compare_error("groups: full_error", group["full_error"], together, group["label"])
        excess = joint["full"] - 1.5 * joint["sum_of_single"]
        redundant = len(heads) > 1 and min(joint["full"], joint["mean"]) > 0.02
        redundant = redundant and excess > 3 * on.error(together - 1.5 * sum(risen[at] for at in heads))
        if group["role"] is None and group["label"] != "no role":  # of several roles
            redundant = None
        differences.same("groups: redundant", group["redundant"], redundant, group["label"])
    for layer in range(model.layers):
        size = math.hypot(*(importance[layer, head] for head in range(model.heads)))
        importance |= {(layer, head): importance[layer, head] / (size or 1) for head in range(model.heads)}
    order = sorted(importance, key=lambda at: (importance[at], at))
    for point in found["pruning"]["by_importance"]:
        removed = order[:point["removed"]]
        loss = on.zeroed(removed) if removed else on.loss
        differences.add("pruning by importance", point["loss"], loss, point["removed"], on.loss)
    removed = [point["removed"] for point in found["pruning"]["by_importance"]]
    differences.same("pruning: heads removed", removed, sorted({0, *removed, len(order)}))
    differences.same("pruning: heads removed", [point["removed"] for point in found["pruning"]["random"]], removed)
    for at in (0, -1):  # none and all are gone, whatever the order
        same = found["pruning"]["by_importance"][at]
        for what in ("loss", "least", "most"):
            differences.add("pruning at random: its ends", found["pruning"]["random"][at][what], same["loss"], what)


# ---- What the weights say ----

def compare_weights(found, model, differences):
    ratios, place = weights.composition(model), {at: i for i, at in enumerate(model.every_head)}
    pairs = found["composition"]["pairs"]
    later = [(a, b) for a in model.every_head for b in model.every_head if a[0] < b[0]]
    differences.same("composition: pairs", [(head_of(p["from"]), head_of(p["to"])) for p in pairs], later)
    differences.add("composition: baseline", found["composition"]["baseline"], model.width ** -0.5)
    for kind, name in enumerate("qkv"):
        for p in pairs:
            expected = ratios[kind, place[head_of(p["to"])], place[head_of(p["from"])]]
            differences.add(f"composition: {name}", p[name], expected, [p["from"], p["to"]])
    top = {"ov_top": weights.top_copying(model, model.embedding)}
    if not model.attention_only:
        effective = weights.top_copying(model, model.embedding + model.mlp(0, model.embedding))
    for i, head in enumerate(found["heads"]):
        at, answered = (head["layer"], head["head"]), head["copying"]
        ov = weights.full_ov(model, at, model.embedding)
        qk = model.embedding @ model.w_qk(*at) @ model.embedding.T
        for name, circuit in ("ov", ov), ("qk", qk):
            differences.add(f"{name} eigenvalues", answered[f"{name}_eigenvalues"], weights.positivity(circuit), at, 1.0)
        for name, share in zip(("ov_top1", "ov_top5"), top["ov_top"][i]):
            differences.add(name, answered[name], share, at, 1.0)
        differences.same("effective embedding", "ov_top1_effective" in answered, at[0] > 0 and not model.attention_only, at)
        if "ov_top1_effective" in answered:
            for name, share in zip(("ov_top1_effective", "ov_top5_effective"), effective[i]):
                differences.add(name, answered[name], share, at, 1.0)


# ---- Texts ----

def attribution(model, ids, seen, targets):
    """What each component adds to the logits (T) of the targets: {name: (T)}."""
    gain, centre = model.weights["ln_f.weight"], lambda r: r - r.mean(-1, keepdims=True)
    x = seen.streams[-1][0]
    sigma = np.sqrt((centre(x) ** 2).mean(-1) + weights.EPS)
    direction = model.unembed[targets]  # (T,C)

    def adds(r):
        return (gain * centre(np.broadcast_to(r, x.shape)) * direction).sum(-1) / sigma

    found = {"embed": adds(model.embedding[ids]), "position": adds(model.weights["pos.weight"][:len(ids)])}
    for layer in range(model.layers):
        w_o = f"blocks.{layer}.attn.w_o"
        for head in range(model.heads):
            found[f"{layer}.{head}"] = adds(seen.z[layer][0, head] @ model.weights[w_o + ".weight"][:, model.columns(head)].T)
        if w_o + ".bias" in model.weights:
            found[f"attn bias {layer}"] = adds(model.weights[w_o + ".bias"])
        if not model.attention_only:
            found[f"mlp {layer}"] = adds(seen.mlps[layer][0])
    if "ln_f.bias" in model.weights:
        found["norm bias"] = direction @ model.weights["ln_f.bias"]
    return found


def compare_texts(found, model, sets, differences):
    for i, (text, of) in enumerate(zip(found["texts"], sets.values())):
        entry, lens, norms = (found[key][i] for key in ("attribution", "lens", "value_norms"))
        differences.same("texts", [entry["text"], lens["text"], norms["text"], text["start"]], [i, i, i, 0])
        differences.same("texts", text["ids"], of.sequences[0].tolist())
        ids = of.sequences[0]
        seen = model.forward(ids[None])
        logits = seen.logits[0]
        targets = np.append(ids[1:], logits[-1].argmax())
        of_targets = logits[np.arange(len(ids)), targets]
        scale = np.abs(of_targets).max()
        parts = attribution(model, ids, seen, targets)
        differences.same("attribution: components", entry["components"], list(parts))
        differences.add("attribution: logits", entry["logits"], of_targets)
        for name, values in zip(entry["components"], entry["values"]):
            differences.add("attribution: values", values, parts[name], name, scale)
        differences.add("attribution: remainder", entry["remainder"], np.zeros(len(ids)), "", scale)
        for head, at in ((f"{a}.{b}", (a, b)) for a, b in model.every_head):
            f = weights.moved(model, at[0], seen.values[at[0]])[0, at[1]]
            differences.add("value norms", norms["heads"][head], np.linalg.norm(f, axis=-1), head)
        differences.same("lens: layers", lens["layers"], ["embed"] + [f"after {i}" for i in range(model.layers)])
        for stream, top in zip(seen.streams, lens["top"]):
            out = model.read_out(stream[0])
            p = np.exp(out - out.max(-1, keepdims=True))
            p /= p.sum(-1, keepdims=True)
            for row, guesses in zip(p, top):
                best = -np.sort(-row)[:len(guesses)]
                differences.add("lens: the largest", [g["p"] for g in guesses], best, "", 1.0)
                differences.add("lens: of those tokens", [g["p"] for g in guesses], row[[g["id"] for g in guesses]], "", 1.0)


def compare_patching(found, model, tokens, differences):
    patching = found["patching"]
    clean, corrupt = ([tokens.index(t) for t in patching[which]] for which in ("clean", "corrupt"))
    answer, wrong = tokens.index(patching["answer"]), tokens.index(patching["wrong"])
    seen = model.forward(np.array([clean, corrupt]))

    def difference(logits):
        return logits[-1, answer] - logits[-1, wrong]

    m_clean, m_corrupt = (difference(logits) for logits in seen.logits)
    differences.add("patching: differences", [patching["clean_difference"], patching["corrupt_difference"]], [m_clean, m_corrupt])
    for head in patching["heads"]:
        effects = []
        for position in range(len(clean)):
            def edit(layer, z):
                z = z.copy()
                if layer == head["layer"]:
                    z[0, head["head"], position] = seen.z[layer][0, head["head"], position]
                return z
            patched = model.forward(np.array([corrupt]), edit=edit)
            effects.append((difference(patched.logits[0]) - m_corrupt) / (m_clean - m_corrupt))
        differences.add("patching: effects", head["positions"], effects, [head["layer"], head["head"]], 1.0)


def main(run, found_file, patterns_file):
    found = json.loads(Path(found_file).read_text())
    model, config = load_run(Path(run))
    file, _ = weights.load(Path(patterns_file).absolute())
    sets = {name: Set(file, name, model.layers) for name in ("data", "repeated") if f"{name}.ids" in file}
    differences = Differences(1e-9 if config["dtype"] == "f64" else 1e-5)
    compare_scores(found, model, sets, differences)
    compare_roles(found, model, differences)
    compare_effects(found, model, sets["data"], differences)
    compare_weights(found, model, differences)
    compare_texts(found, model, sets, differences)
    if found.get("patching"):
        compare_patching(found, model, json.loads((Path(run) / "tokenizer.json").read_text())["tokens"], differences)
    return 1 if differences.report() else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
