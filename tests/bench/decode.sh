#!/bin/sh
# Tokens a second of one text and of eight side by side, in turn, and the share of memory's rate at which one reads the weights.
#   sh tests/bench/decode.sh [CONFIG] [ROUNDS]
set -eu
cd "$(dirname "$0")/../.."
config=${1:-gpt2}
for round in $(seq "${2:-5}"); do
  for texts in 1 8; do
    build/headwise bench sample --json --config "$config" --batch $texts --seconds 2
  done
done | python3 -c '
import json, statistics, sys

runs = [json.loads(line) for line in sys.stdin]
ones, eights = runs[::2], runs[1::2]
rate = lambda run: run["tokens_per_second"]
ratios = [rate(b) / rate(a) for a, b in zip(ones, eights)]
shares = [run["weights_gb_per_second"] / run["read_gb_per_second"] for run in ones]
show = lambda xs, digits: f"{statistics.median(xs):.{digits}f} ({min(xs):.{digits}f}-{max(xs):.{digits}f})"
print("| one text, tokens/s | eight, tokens/s | times as many | weights read, share of memory'"'"'s rate |")
print("| --- | --- | --- | --- |")
print("|", show([rate(r) for r in ones], 0), "|", show([rate(r) for r in eights], 0), "|", show(ratios, 2), "|", show(shares, 2), "|")
'
