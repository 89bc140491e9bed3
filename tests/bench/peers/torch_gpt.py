"""The work of `headwise bench train` and `bench sample` in PyTorch, as one JSON line.

  /usr/bin/python3 torch_gpt.py [--config toy|nano|char|long|gpt2] [--mode train|sample] [--threads N] [--seconds S]

A step is what a user's training loop does: windows at random places, forward, backward, the global
norm clipped at 1, AdamW. Sampling computes the whole window again for each token. Needs Debian's
python3-torch; ../compare.sh runs it with the BLAS that is fastest for PyTorch.
"""
import math
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

import measure


class Config(NamedTuple):
    layers: int
    heads: int
    width: int
    context: int
    batch: int
    vocab: int


CONFIGS = {
    "toy": Config(layers=2, heads=4, width=64, context=64, batch=16, vocab=65),
    "nano": Config(layers=4, heads=4, width=128, context=64, batch=12, vocab=65),
    "char": Config(layers=6, heads=6, width=384, context=256, batch=16, vocab=65),
    "long": Config(layers=2, heads=8, width=512, context=1024, batch=2, vocab=256),
    "gpt2": Config(layers=12, heads=12, width=768, context=64, batch=4, vocab=50257),
}
TEXT_TOKENS = 200_000


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.qkv = nn.Linear(c.width, 3 * c.width)
        self.out = nn.Linear(c.width, c.width)

    def forward(self, x, future):
        batch, time, width = x.shape
        per_head = (batch, time, self.heads, width // self.heads)
        q, k, v = (part.view(per_head).transpose(1, 2) for part in self.qkv(x).split(width, dim=2))
        scores = q @ k.transpose(2, 3) / math.sqrt(width // self.heads)
        pattern = scores.masked_fill(future[:time, :time], -math.inf).softmax(dim=-1)
        return self.out((pattern @ v).transpose(1, 2).reshape(batch, time, width))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(c.width), Attention(c)
        self.norm2 = nn.LayerNorm(c.width)
        self.mlp = nn.Sequential(
            nn.Linear(c.width, 4 * c.width), nn.GELU(), nn.Linear(4 * c.width, c.width))

    def forward(self, x, future):
        x = x + self.attention(self.norm1(x), future)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tokens = nn.Embedding(c.vocab, c.width)
        self.positions = nn.Embedding(c.context, c.width)
        self.blocks = nn.ModuleList([Block(c) for _ in range(c.layers)])
        self.norm = nn.LayerNorm(c.width)
        for matrix in (p for p in self.parameters() if p.dim() > 1):
            nn.init.normal_(matrix, std=0.02)
        ones = torch.ones(c.context, c.context, dtype=torch.bool)
        self.register_buffer("future", ones.triu(1))

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x, self.future)
        return F.linear(self.norm(x), self.tokens.weight)  # tied


def training_step(model, c, text):
    """A function that makes one update."""
    adam = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=True)

    def windows(starts):
        return torch.stack([text[s : s + c.context] for s in starts])

    def step():
        starts = torch.randint(len(text) - c.context - 1, (c.batch,))
        inputs, targets = windows(starts), windows(starts + 1)
        loss = F.cross_entropy(model(inputs).view(-1, c.vocab), targets.view(-1))
        adam.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        return loss.item()

    return step


def sampling(model, c, text):
    """A function that draws a context full of tokens after the first one of the text."""

    @torch.no_grad()
    def sample():
        ids = text[:1].view(1, 1)
        for _ in range(c.context):
            logits = model(ids[:, -c.context :])[:, -1]
            ids = torch.cat([ids, logits.softmax(dim=-1).multinomial(1)], dim=1)

    return sample


def main():
    parser = measure.options(CONFIGS, default="toy")
    parser.add_argument("--mode", choices=["train", "sample"], default="train")
    args = parser.parse_args()
    measure.prepare(args.threads)

    c = CONFIGS[args.config]
    model = Decoder(c)
    text = torch.randint(c.vocab, (TEXT_TOKENS,), generator=torch.Generator().manual_seed(1))
    training = args.mode == "train"
    work = (training_step if training else sampling)(model, c, text)
    median, least = measure.measure(args.seconds, work)

    params = sum(p.numel() for p in model.parameters())
    tokens = c.context * (c.batch if training else 1)
    # Six a parameter and token, and attention's two products counted whole.
    flops = tokens * (6 * params + 12 * c.layers * c.width * c.context)
    measure.report(
        args.mode, args, median, least,
        params=params,
        tokens_per_second=round(tokens / median, 1),
        gflops=round(flops / median / 1e9, 1) if training else None)


main()
