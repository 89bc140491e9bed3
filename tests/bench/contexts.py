"""How the time of a training step and its memory grow with the context: a Markdown table on standard
output, and a graph.

  python3 tests/bench/contexts.py [--rounds N] [--seconds S] [--out FILE.svg]

The model is `long` (2 layers, 8 heads, width 512) at contexts of 256 to 4096. Time is that of steps of
4096 tokens whatever the context, each run in a process of its own, all contexts in turn, round by
round. The formula counts 6 flops a token for each weight of a matrix (the position table, which is only
looked up, is none) and, for attention's two products, 6 L C (T+1) over the pairs that a causal mask shows
("causal") or 12 L C T over all pairs ("whole", as most programs count).
Memory is the most that a process with a batch of one held.
"""
import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from machine import machine

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parents[1] / "build" / "headwise"
CONFIG, LAYERS, WIDTH = "long", 2, 512
CONTEXTS = (256, 512, 1024, 2048, 4096)
STEP_TOKENS = 4096


def bench(context, batch, seconds):
    """One run of the program: its JSON line."""
    print(f"context {context}, batch {batch}", file=sys.stderr)
    done = subprocess.run(
        [PROGRAM, "bench", "train", "--config", CONFIG, "--context", str(context),
         "--batch", str(batch), "--seconds", str(seconds), "--json"],
        check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def flops_per_token(context, params):
    """Causal and whole."""
    weights = 6 * (params - context * WIDTH)
    return (weights + 6 * LAYERS * WIDTH * (context + 1), weights + 12 * LAYERS * WIDTH * context)


def measure(rounds, seconds):
    """For each context: seconds and flops a token, and MB."""
    runs = {t: [] for t in CONTEXTS}
    for _ in range(rounds):
        for t in CONTEXTS:
            runs[t].append(bench(t, STEP_TOKENS // t, seconds))
    return {
        t: {
            "seconds": median(run["ms"] for run in runs[t]) / 1e3 / STEP_TOKENS,
            "flops": flops_per_token(t, runs[t][0]["params"]),
            "mb": bench(t, 1, seconds)["peak_rss_mb"],
        }
        for t in CONTEXTS
    }


def print_table(points):
    print("| context | ms/token | Mflop/token, causal | whole | time over the formula, relative to context 256: causal "
          "| whole | peak MB, batch 1 |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    first = points[CONTEXTS[0]]
    for t, p in points.items():
        causal, whole = (p["seconds"] / first["seconds"] * first["flops"][i] / p["flops"][i] for i in (0, 1))
        print(f"| {t} | {1e3 * p['seconds']:.4f} | {p['flops'][0] / 1e6:.1f} | {p['flops'][1] / 1e6:.1f} "
              f"| {causal:.2f} | {whole:.2f} | {p['mb']} |")


class Panel:
    """A plot of lines over the context, from zero on both axes."""

    WIDTH, HEIGHT = 400, 230
    BACKGROUND, TEXT, GRID = "#ffffff", "#333333", "#dddddd"

    def __init__(self, left, top, title, unit, highest):
        self.left, self.top = left, top
        self.parts = []
        self.step = nice_step(highest)
        self.highest = self.step * -(-highest // self.step)
        self._frame(title, unit)

    def _x(self, context):
        return self.left + self.WIDTH * context / CONTEXTS[-1]

    def _y(self, value):
        return self.top + self.HEIGHT * (1 - value / self.highest)

    def _text(self, x, y, text, anchor="middle", more=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{self.TEXT}" {more}>'
                          f"{text}</text>")

    def _line(self, x1, y1, x2, y2, style):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>')

    def _frame(self, title, unit):
        right, bottom = self.left + self.WIDTH, self.top + self.HEIGHT
        for i in range(round(self.highest / self.step) + 1):
            y = self._y(i * self.step)
            self._line(self.left, y, right, y, f'stroke="{self.GRID}"')
            self._text(self.left - 6, y + 4, f"{i * self.step:g}", "end")
        for t in CONTEXTS:
            self._line(self._x(t), bottom, self._x(t), bottom + 5, f'stroke="{self.TEXT}"')
            self._text(self._x(t), bottom + 18, t, more='font-size="10"')
        middle = self.top + self.HEIGHT / 2
        self._text(self.left + self.WIDTH / 2, bottom + 38, "context T, tokens")
        self._text(self.left - 44, middle, unit, more=f'transform="rotate(-90 {self.left - 44} {middle})"')
        self._text(self.left + self.WIDTH / 2, self.top - 16, title, more='font-weight="bold"')

    def line(self, values, name, color, row, dashed=False):
        """Values at the contexts, and the line's place in the legend."""
        dash = 'stroke-dasharray="6 4"' if dashed else ""
        style = f'stroke="{color}" stroke-width="2" fill="none" {dash}'
        points = [(self._x(t), self._y(v)) for t, v in zip(CONTEXTS, values)]
        self.parts.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" {style}/>')
        if not dashed:
            self.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>' for x, y in points]
        x, y = self.left + 12, self.top + 16 + 18 * row
        self._line(x, y, x + 26, y, style)
        self._text(x + 32, y + 4, name, "start")


def nice_step(highest):
    """1, 2 or 5 times a power of ten, four to nine of which reach `highest`."""
    power = 10.0 ** len(str(int(highest)))
    while True:
        for step in (power, power / 2, power / 5):
            if highest / step >= 4:
                return step
        power /= 10


def graph(points):
    micros = [1e6 * p["seconds"] for p in points.values()]
    first = points[CONTEXTS[0]]
    causal, whole = ([micros[0] * p["flops"][i] / first["flops"][i] for p in points.values()] for i in (0, 1))
    memory = [p["mb"] for p in points.values()]

    time = Panel(70, 40, "Time of a training step", "µs a token", max(micros + whole))
    time.line(whole, "flops, whole, scaled at 256", "#7570b3", 2, dashed=True)
    time.line(causal, "flops, causal, scaled at 256", "#d95f02", 1, dashed=True)
    time.line(micros, "measured", "#1f5fa8", 0)
    space = Panel(570, 40, "Memory of a training step, batch 1", "peak MB", max(memory))
    space.line(memory, "measured", "#1f5fa8", 0)
    return "\n".join([
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 330" font-family="sans-serif" font-size="12">',
        f'<rect width="1000" height="330" fill="{Panel.BACKGROUND}"/>',
        *time.parts, *space.parts, "</svg>\n"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--out", type=Path, default=HERE / "contexts.svg")
    args = parser.parse_args()
    if not PROGRAM.exists():
        sys.exit("build/headwise is missing; build it with: cmake -S . -B build && cmake --build build")
    points = measure(args.rounds, args.seconds)
    print(f"{machine()}; rounds: {args.rounds}, {args.seconds:g} s a run.\n")
    print_table(points)
    args.out.write_text(graph(points), encoding="utf-8")


if __name__ == "__main__":
    main()
