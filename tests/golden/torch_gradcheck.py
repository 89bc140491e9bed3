#!/usr/bin/env python3
"""What torch.autograd.gradcheck says of right and of wrong gradients, for
tests/autograd/torch_verdicts_test.cpp, which builds the same functions by the same names.

Writes torch_gradcheck.tsv beside itself: name, tab, true or false.
"""

import math
import os

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)

IDS = torch.tensor([2, 0, 2, 1])
LABELS = torch.tensor([1, -100, 3])


def wave(k, *shape):
    """sin(1.7 i + k), row-major."""
    i = torch.arange(math.prod(shape), dtype=torch.float64)
    return torch.sin(1.7 * i + k).reshape(shape)


class Mistaken(torch.autograd.Function):
    """forward(*x), whose backward is what pull(dy, x, y) says."""

    @staticmethod
    def forward(ctx, forward, pull, *x):
        y = forward(*x)
        ctx.pull = pull
        ctx.save_for_backward(y, *x)
        return y

    @staticmethod
    def backward(ctx, dy):
        y, *x = ctx.saved_tensors
        d = ctx.pull(dy, x, y)
        return (None, None) + (d if isinstance(d, tuple) else (d,))


def mistaken(forward, pull):
    return lambda *x: Mistaken.apply(forward, pull, *x)


def attention(q, k, v, heads=2):
    b, t, c = q.shape
    q, k, v = (x.reshape(b, t, heads, c // heads).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(c // heads)
    hidden = torch.ones(t, t, dtype=torch.bool).triu(1)
    pattern = torch.softmax(scores.masked_fill(hidden, -math.inf), -1)
    return (pattern @ v).transpose(1, 2).reshape(b, t, c)


def square(x):
    return x * x


def with_element(x, i, value):
    x = x.clone()
    x.view(-1)[i] = value
    return x


def without_last_row(x):
    x = x.clone()
    x[-1] = 0
    return x


def gelu_slope(z):
    return torch.erfc(-z / math.sqrt(2)) / 2 + z * torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def norm_without_mean(dy, x, y):
    spread = (x[0].var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    return (dy - y * (dy * y).mean(-1, keepdim=True)) / spread


def rows_assigned(dy, x, y):
    d = torch.zeros_like(x[0])
    for row, at in enumerate(IDS):
        d[at] = dy[row]
    return d


def mean_over_all(dy, x, y):
    counts = (LABELS >= 0).to(dy.dtype)[:, None]
    hot = F.one_hot(LABELS.clamp(min=0), 4) * counts
    return dy * (torch.softmax(x[0], -1) * counts - hot) / 3


calls = 0


def unsteady(dy, x, y):
    global calls
    calls += 1
    return dy * 2 * x[0] * (1 + 1e-12 * calls)


X = wave(1, 3, 4)
SQUARE = wave(2, 3, 3)
SCALES = torch.tensor([1e11, 1.0])

RIGHT = [
    ("matmul", torch.matmul, [wave(1, 3, 4), wave(2, 4, 2)]),
    ("matmul batched", torch.matmul, [wave(1, 2, 3, 4), wave(2, 4, 2)]),
    ("linear", F.linear, [X, wave(2, 2, 4), wave(3, 2)]),
    ("layer_norm", lambda x, g, b: F.layer_norm(x, (4,), g, b), [X, wave(2, 4), wave(3, 4)]),
    ("softmax", lambda x: torch.softmax(x, -1), [X]),
    ("log_softmax", lambda x: torch.log_softmax(x, -1), [X]),
    ("gelu exact", F.gelu, [X]),
    ("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), [X]),
    ("cross_entropy ignored label", lambda x: F.cross_entropy(x, LABELS), [X]),
    ("attention causal", attention, [wave(1, 1, 4, 6), wave(2, 1, 4, 6), wave(3, 1, 4, 6)]),
    ("tanh", torch.tanh, [X]),
    ("sigmoid", torch.sigmoid, [X]),
    ("exp", torch.exp, [X]),
    ("log", torch.log, [X + 1.5]),
    ("sqrt", torch.sqrt, [X + 1.5]),
    ("pow 1.5", lambda x: torch.pow(x, 1.5), [X + 1.5]),
    ("max of a row", lambda x: x.max(-1).values, [X]),
    ("mean of a column", lambda x: x.mean(0), [X]),
    ("add broadcast", torch.add, [X, wave(2, 4)]),
    ("mul broadcast", torch.mul, [X, wave(2, 3, 1)]),
    ("div broadcast", torch.div, [X, wave(2, 4) + 2]),
    ("embedding repeated ids", lambda table: F.embedding(IDS, table), [X]),
    ("input used twice", lambda x: x * x + x, [X]),
    ("sigmoid of a transposed input", torch.sigmoid, [wave(1, 3, 5).t()]),
    ("square by hand", mistaken(square, lambda dy, x, y: 2 * x[0] * dy), [X]),
]

WRONG = [
    ("wrong sign", mistaken(torch.matmul, lambda dy, x, y: (-dy @ x[1].t(), x[0].t() @ dy)),
     [SQUARE, wave(3, 3, 3)]),
    ("transposed", mistaken(torch.matmul, lambda dy, x, y: ((dy @ x[1].t()).t(), x[0].t() @ dy)),
     [SQUARE, wave(3, 3, 3)]),
    ("factor 2", mistaken(square, lambda dy, x, y: 4 * x[0] * dy), [X]),
    ("bias of row 0 only", mistaken(torch.add, lambda dy, x, y: (dy, dy[0])), [X, wave(2, 4)]),
    ("softmax without inner product",
     mistaken(lambda x: torch.softmax(x, -1), lambda dy, x, y: dy * y), [X]),
    ("layer_norm without mean term",
     mistaken(lambda x: F.layer_norm(x, (4,)), norm_without_mean), [X]),
    ("last row zero", mistaken(square, lambda dy, x, y: without_last_row(2 * x[0] * dy)), [X]),
    ("gelu slope at y", mistaken(F.gelu, lambda dy, x, y: dy * gelu_slope(y)), [X]),
    ("tanh slope from x", mistaken(torch.tanh, lambda dy, x, y: dy * (1 - square(x[0]))), [X]),
    ("nan", mistaken(square, lambda dy, x, y: with_element(2 * x[0] * dy, 3, math.nan)), [X]),
    ("zero", mistaken(square, lambda dy, x, y: torch.zeros_like(dy)), [X]),
    ("one per cent off", mistaken(square, lambda dy, x, y: 2.02 * x[0] * dy), [X]),
    ("backward not deterministic", mistaken(square, unsteady), [X]),
    ("factor taken for a constant", lambda x: x * x.detach(), [X]),
    ("rows off by one", mistaken(square, lambda dy, x, y: (2 * x[0] * dy).roll(-1, 0)), [X]),
    ("dropout with a new mask", lambda x: F.dropout(x, 0.5), [X]),
    ("embedding assigns repeated ids", mistaken(lambda t: F.embedding(IDS, t), rows_assigned),
     [X]),
    ("cross_entropy mean over ignored",
     mistaken(lambda x: F.cross_entropy(x, LABELS), mean_over_all), [X]),
]

# Where the two judge differently; the test says why.
DIFFERENT = [
    ("sum of a softmax", lambda x: torch.softmax(x, -1).sum(), [X]),
    ("1e-5 off", mistaken(square, lambda dy, x, y: 2 * (1 + 1e-5) * x[0] * dy), [X]),
    ("small and doubled", mistaken(lambda x: 1e-6 * square(x), lambda dy, x, y: 4e-6 * x[0] * dy),
     [X]),
    ("smallest of far apart doubled",
     mistaken(lambda x: x * SCALES, lambda dy, x, y: dy * SCALES * torch.tensor([1.0, 2.0])),
     [wave(1, 2)]),
]


def main():
    torch.manual_seed(0)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_gradcheck.tsv")
    with open(path, "w") as out:
        for name, f, inputs in RIGHT + WRONG + DIFFERENT:
            leaves = [x.detach().requires_grad_() for x in inputs]
            verdict = torch.autograd.gradcheck(f, leaves, raise_exception=False)
            out.write(f"{name}\t{str(verdict).lower()}\n")


if __name__ == "__main__":
    main()
