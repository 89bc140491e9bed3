#!/usr/bin/env python3
"""What the heads of the induction models do: reads FOLDER/heads-LAYERS-SEED.json, as learned.sh heads writes them.

gain: the loss of the one-layer model minus that of the two-layer model of the same seed, nats a token. A group's
cost is the rise of the loss when all its heads are zeroed together, as a share of the gain.
"""
import json
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])


def study(layers, seed):
    return json.loads((folder / f"heads-{layers}-{seed}.json").read_text())


def score(head, key, on="on_repeated"):
    return head[on][key]["value"]


def born(found, least=0.5):
    """The first step at which some head's prefix-matching reaches `least`, and the step before it."""
    before = None
    for step in found["timeline"] or []:
        if max(h["scores"].get("prefix_matching", 0) for h in step["heads"]) >= least:
            return f'{before}-{step["step"]}'
        before = step["step"]
    return "never"


def feeding(found, heads):
    """The previous-token heads that feed the keys of these heads by more than random matrices would."""
    pairs = found["composition"]
    previous = {f'{h["layer"]}.{h["head"]}' for h in found["heads"] if h["role"] == "previous_token"}
    return sorted({p["from"] for p in pairs["pairs"]
                   if p["to"] in heads and p["from"] in previous and p["k"] > pairs["baseline"]})


print("seed | layers | loss | best prefix-matching, its best offset on the same tokens | on data | heads named induction | steps in which it is born")
for seed in range(1, 6):
    for layers in (1, 2):
        found = study(layers, seed)
        best = max(found["heads"], key=lambda h: score(h, "prefix_matching"))
        named = [f'{h["layer"]}.{h["head"]}' for h in found["heads"] if h["role"] == "prefix_matching"]
        print(f'{seed} | {layers} | {found["loss"]:.3f} | {score(best, "prefix_matching"):.3f}, {score(best, "fixed_offset"):.3f} '
              f'| {score(best, "prefix_matching", "on_data"):.3f}, {score(best, "fixed_offset", "on_data"):.3f} '
              f'| {" ".join(named) or "none"} | {born(found)}')
print()
print("seed | gain | induction heads zeroed together | one by one, least to most | previous-token heads that feed their keys | all other heads")
for seed in range(1, 6):
    found = study(2, seed)
    gain = study(1, seed)["loss"] - found["loss"]
    groups = {g["label"]: g for g in found["groups"]}
    induction = groups.get("induction", {"heads": [], "redundant": False})

    def cost(label, otherwise, words):
        """A group's; if the study has none of that label, another's, and the words that say so."""
        group, words = (groups[label], "") if label in groups else (groups.get(otherwise), words)
        return f'{group["full"] / gain:.3f} ({" ".join(group["heads"])}){words}' if group else "-"

    alone = sorted(h["ablation"]["full"] / gain for h in found["heads"] if f'{h["layer"]}.{h["head"]}' in induction["heads"])
    feed = " ".join(feeding(found, induction["heads"])) or "none"
    print(f'{seed} | {gain:.3f} | {cost("induction", "", "")}{"; redundant" if induction["redundant"] else ""} '
          f'| {f"{alone[0]:.3f} to {alone[-1]:.3f}" if alone else "-"} '
          f'| {cost("previous tokens that feed the keys of induction", "previous token", f", all previous-token heads, of which feed: {feed}")} '
          f'| {cost("all but induction and what feeds its keys", "no role", ", those without a role only")}')
