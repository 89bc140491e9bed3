"""Results of compare.sh or threads.sh as a Markdown table: table.py compare|threads FILE

FILE has lines "# text", which come first in what is printed, and "ROUND JSON", one a run.
"""
import json
import sys
from collections import defaultdict
from statistics import median

NONE = "–"


def read(path):
    """Titles, and runs as {config: {variant: {round: run}}}, in the order of the file."""
    titles, runs = [], defaultdict(lambda: defaultdict(dict))
    with open(path) as lines:
        for line in lines:
            first, rest = line.split(maxsplit=1)
            if first == "#":
                titles.append(rest.strip())
                continue
            run = json.loads(rest)
            engine = run["engine"].split()[0]
            runs[run["config"]][engine, run["threads"]][int(first)] = run
    return titles, runs


def middle(rounds, key):
    """Median over the rounds, or nothing."""
    values = [run[key] for run in rounds.values() if key in run]
    return median(values) if values else None


def number(x, digits=3):
    """x with about that many digits, and none lost before the point."""
    if x is None:
        return NONE
    decimals = digits - len(str(int(x))) if x >= 1 else digits - 1
    return f"{x:.{max(decimals, 0)}f}"


def megabytes(rounds):
    peak = middle(rounds, "peak_rss_mb")
    return NONE if peak is None else f"{peak:.0f}"


def spread(ratios):
    return f"{median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})" if ratios else NONE


def compare(runs):
    yield ("config", "headwise ms", "PyTorch ms", "libtorch ms", "times faster than the better peer",
           "share of this machine's GEMM rate", "peak MB headwise / PyTorch")
    for config, variants in runs.items():
        of = defaultdict(dict, {engine: rounds for (engine, _), rounds in variants.items()})
        ours, torch, libtorch = of["headwise"], of["torch"], of["libtorch"]
        ratios = []
        for number_of_round, run in ours.items():
            peers = [p[number_of_round]["ms"] for p in (torch, libtorch) if number_of_round in p]
            if peers:
                ratios.append(min(peers) / run["ms"])
        share = middle(ours, "share")
        yield (config, *(number(middle(x, "ms")) for x in (ours, torch, libtorch)), spread(ratios),
               NONE if share is None else f"{share:.2f}",
               " / ".join(megabytes(x) for x in (ours, torch)))


def threads(runs):
    yield "config", "1 thread, ms", "2 threads, ms", "times faster with 2"
    for config, variants in runs.items():
        one, two = variants["headwise", 1], variants["headwise", 2]
        ratios = [one[r]["ms"] / two[r]["ms"] for r in one.keys() & two.keys()]
        yield config, number(middle(one, "ms")), number(middle(two, "ms")), spread(ratios)


def main():
    tables = {"compare": compare, "threads": threads}
    if len(sys.argv) != 3 or sys.argv[1] not in tables:
        sys.exit(__doc__)
    titles, runs = read(sys.argv[2])
    blas = sorted({run["blas"] for variants in runs.values() for rounds in variants.values()
                   for run in rounds.values() if "blas" in run})
    print("; ".join(titles + blas) + ".\n")
    header, *rows = tables[sys.argv[1]](runs)
    for row in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(row) + " |")


main()
