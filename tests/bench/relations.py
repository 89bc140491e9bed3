#!/usr/bin/env python3
"""The best head for each relation of the stories: reads FOLDER/(word|char)-SEED.json, as learned.sh relations writes them."""
import json
import pathlib
import sys

print("run | relation | best head | right | best fixed offset (words back) | any other rule of places | by chance | p against the best rule, bound")
for path in sorted(pathlib.Path(sys.argv[1]).glob("*-?.json")):
    if path.name.split("-")[0] not in ("word", "char"):
        continue
    found = json.loads(path.read_text())
    for relation in ("subject", "antecedent", "sense"):
        best = max(found["heads"], key=lambda h: h["scores"].get(relation, {"value": -1})["value"])
        s = best["scores"].get(relation)
        if s:
            print(f'{path.stem} | {relation} | {best["layer"]}.{best["head"]} | {s["value"]:.3f} | '
                  f'{s["baseline"]:.3f} ({s["baseline_offset"]}) | {s["baseline_place"]:.3f} | {s["chance"]:.3f} | {s["p_baseline"]:.0e}')
