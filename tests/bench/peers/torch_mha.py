"""The work of `headwise bench attention` in PyTorch: forward and backward of one causal
nn.MultiheadAttention, as one JSON line.

  /usr/bin/python3 torch_mha.py [--config mha512|mha1024|mha512x1|mhalong] [--weights] [--threads N] [--seconds S]

--weights asks for the pattern of every head as well. Needs Debian's python3-torch; see ../compare.sh.
"""
from typing import NamedTuple

import torch

import measure


class Config(NamedTuple):
    width: int
    heads: int
    batch: int
    context: int


CONFIGS = {
    "mha512": Config(width=512, heads=8, batch=8, context=512),
    "mha1024": Config(width=1024, heads=16, batch=4, context=512),
    "mha512x1": Config(width=512, heads=1, batch=8, context=512),
    "mhalong": Config(width=512, heads=8, batch=1, context=2048),
}


def main():
    parser = measure.options(CONFIGS, default="mha512")
    parser.add_argument("--weights", action="store_true")
    args = parser.parse_args()
    measure.prepare(args.threads)

    c = CONFIGS[args.config]
    layer = torch.nn.MultiheadAttention(c.width, c.heads, batch_first=True)
    x = torch.randn(c.batch, c.context, c.width, requires_grad=True)
    future = torch.ones(c.context, c.context, dtype=torch.bool).triu(1)

    def step():
        y, _ = layer(x, x, x, attn_mask=future, need_weights=args.weights,
                     average_attn_weights=False)
        layer.zero_grad(set_to_none=True)
        x.grad = None
        y.sum().backward()

    median, least = measure.measure(args.seconds, step)
    measure.report("mha", args, median, least, weights=args.weights)


main()
