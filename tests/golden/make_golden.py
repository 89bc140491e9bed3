"""Makes the golden numbers of the tests: what PyTorch answers, in float64, for small fixed inputs.

Run it with no arguments; it writes the *.safetensors files beside itself. Running it again writes
the same bytes. README.md says what each file holds.
"""

import json
import math
import struct
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

VOCAB, CONTEXT, CHANNELS, HEADS, LAYERS, BATCH = 13, 8, 16, 2, 2, 3
LAYER_NORM_EPS, IGNORED = 1e-5, -100
STEPS, WARMUP, PEAK_LR, MIN_LR = 10, 4, 1e-2, 1e-3
BETAS, ADAM_EPS, WEIGHT_DECAY, MAX_NORM = (0.9, 0.99), 1e-8, 0.1, 1.0


def save(file_name, tensors, metadata):
    """Writes a safetensors file: header length (8 bytes), JSON header, then the data in order."""
    header, data = {"__metadata__": metadata}, b""
    for name, tensor in tensors.items():
        dtype, numpy_type = {torch.float64: ("F64", "<f8"), torch.int64: ("I64", "<i8")}[tensor.dtype]
        raw = tensor.detach().numpy().astype(numpy_type).tobytes()
        header[name] = {"dtype": dtype, "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (Path(__file__).resolve().parent / file_name).write_bytes(struct.pack("<Q", len(text)) + text + data)


# ---- The decoder: pre-LN, learned positions, written with plain operations ----

def decoder_weights(tied, bias):
    """Random weights by name. No term is left at 0 or 1, where a mistake would not show."""
    weights = {}

    def matrix(name, rows, columns):
        weights[name] = 0.2 * torch.randn(rows, columns)

    def linear(name, outputs, inputs):
        matrix(name + ".weight", outputs, inputs)
        if bias:
            weights[name + ".bias"] = 0.1 * torch.randn(outputs)

    def layer_norm(name):
        weights[name + ".weight"] = 1 + 0.1 * torch.randn(CHANNELS)
        if bias:
            weights[name + ".bias"] = 0.1 * torch.randn(CHANNELS)

    matrix("tok.weight", VOCAB, CHANNELS)
    matrix("pos.weight", CONTEXT, CHANNELS)
    for i in range(LAYERS):
        layer_norm(f"blocks.{i}.ln1")
        for part in ("w_q", "w_k", "w_v", "w_o"):
            linear(f"blocks.{i}.attn.{part}", CHANNELS, CHANNELS)
        layer_norm(f"blocks.{i}.ln2")
        linear(f"blocks.{i}.mlp.up", 4 * CHANNELS, CHANNELS)
        linear(f"blocks.{i}.mlp.down", CHANNELS, 4 * CHANNELS)
    layer_norm("ln_f")
    if not tied:
        matrix("head.weight", VOCAB, CHANNELS)
    return {name: weight.requires_grad_() for name, weight in weights.items()}


def decoder(weights, ids, gelu):
    """Returns the logits (B,T,V) and the attention pattern (B,H,T,T) of each block."""
    batch, time = ids.shape

    def linear(name, x):
        return F.linear(x, weights[name + ".weight"], weights.get(name + ".bias"))

    def layer_norm(name, x):
        return F.layer_norm(x, (CHANNELS,), weights[name + ".weight"], weights.get(name + ".bias"),
                            LAYER_NORM_EPS)

    def split_heads(x):  # (B,T,C) -> (B,H,T,D): head h is columns [h*D, (h+1)*D)
        return x.view(batch, time, HEADS, CHANNELS // HEADS).transpose(1, 2)

    future = torch.ones(time, time, dtype=torch.bool).triu(1)
    x = weights["tok.weight"][ids] + weights["pos.weight"][:time]
    patterns = []
    for i in range(LAYERS):
        block = f"blocks.{i}."
        normed = layer_norm(block + "ln1", x)
        q, k, v = (split_heads(linear(block + "attn." + part, normed)) for part in ("w_q", "w_k", "w_v"))
        scores = q @ k.transpose(-2, -1) / math.sqrt(CHANNELS // HEADS)
        pattern = scores.masked_fill(future, -math.inf).softmax(-1)
        mixed = (pattern @ v).transpose(1, 2).reshape(batch, time, CHANNELS)
        x = x + linear(block + "attn.w_o", mixed)
        hidden = F.gelu(linear(block + "mlp.up", layer_norm(block + "ln2", x)), approximate=gelu)
        x = x + linear(block + "mlp.down", hidden)
        patterns.append(pattern)
    head = weights.get("head.weight", weights["tok.weight"])
    return layer_norm("ln_f", x) @ head.T, patterns


def learning_rate(step):
    """Linear warm-up to the peak, then a cosine down towards the minimum."""
    if step < WARMUP:
        return PEAK_LR * (step + 1) / (WARMUP + 1)
    ratio = (step - WARMUP) / (STEPS - WARMUP)
    return MIN_LR + 0.5 * (1 + math.cos(math.pi * ratio)) * (PEAK_LR - MIN_LR)


def make_decoder(file_name, seed, tied, bias, gelu):
    torch.manual_seed(seed)
    weights = decoder_weights(tied, bias)
    inputs = torch.randint(VOCAB, (BATCH, CONTEXT))
    targets = torch.randint(VOCAB, (BATCH, CONTEXT))
    targets[0, 2] = targets[2, 7] = IGNORED

    def forward():
        logits, patterns = decoder(weights, inputs, gelu)
        loss = F.cross_entropy(logits.view(-1, VOCAB), targets.view(-1), ignore_index=IGNORED)
        return logits, patterns, loss

    logits, patterns, loss = forward()
    loss.backward()
    tensors = {"inputs": inputs, "targets": targets, "logits": logits, "loss": loss}
    tensors.update({f"pattern.{i}": pattern for i, pattern in enumerate(patterns)})
    tensors.update({"param/" + name: weight.detach().clone() for name, weight in weights.items()})
    tensors.update({"grad/" + name: weight.grad.clone() for name, weight in weights.items()})

    optimizer = torch.optim.AdamW(
        [{"params": [w for w in weights.values() if w.dim() >= 2], "weight_decay": WEIGHT_DECAY},
         {"params": [w for w in weights.values() if w.dim() < 2], "weight_decay": 0.0}],
        lr=PEAK_LR, betas=BETAS, eps=ADAM_EPS)
    losses, norms, rates = [], [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        _, _, loss = forward()
        loss.backward()
        norm = math.sqrt(sum(w.grad.square().sum().item() for w in weights.values()))
        if norm > MAX_NORM:  # exactly to the limit: clip_grad_norm_ would add 1e-6 to the norm
            for weight in weights.values():
                weight.grad.mul_(MAX_NORM / norm)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm)
        rates.append(learning_rate(step))
    tensors.update({"losses": torch.tensor(losses), "norms": torch.tensor(norms), "lrs": torch.tensor(rates)})
    tensors.update({"after/" + name: weight for name, weight in weights.items()})

    settings = {"vocab": VOCAB, "context": CONTEXT, "channels": CHANNELS, "heads": HEADS, "layers": LAYERS,
                "batch": BATCH, "tied": tied, "bias": bias, "gelu": "exact" if gelu == "none" else gelu,
                "layer_norm_eps": LAYER_NORM_EPS, "ignore_index": IGNORED, "steps": STEPS, "warmup": WARMUP,
                "peak_lr": PEAK_LR, "min_lr": MIN_LR, "beta1": BETAS[0], "beta2": BETAS[1],
                "adam_eps": ADAM_EPS, "weight_decay": WEIGHT_DECAY, "max_norm": MAX_NORM, "seed": seed}
    save(file_name, tensors, {key: str(value).lower() for key, value in settings.items()})


# ---- Single parts, as PyTorch ships them ----

def make_multihead(file_name, seed, batch=2, time=7, channels=16, heads=4):
    torch.manual_seed(seed)
    attention = torch.nn.MultiheadAttention(channels, heads, bias=True, batch_first=True, dtype=torch.float64)
    torch.nn.init.normal_(attention.in_proj_bias, std=0.1)  # PyTorch starts the biases at zero
    torch.nn.init.normal_(attention.out_proj.bias, std=0.1)
    x = torch.randn(batch, time, channels, requires_grad=True)
    future = torch.ones(time, time, dtype=torch.bool).triu(1)  # True: not to be looked at
    y, pattern = attention(x, x, x, attn_mask=future, need_weights=True, average_attn_weights=False)
    dy = torch.randn(batch, time, channels)
    (y * dy).sum().backward()

    tensors = {"x": x, "y": y, "pattern": pattern, "dy": dy, "dx": x.grad}
    for prefix, pick in (("", lambda p: p), ("d", lambda p: p.grad)):
        for part, w, b in zip("qkv", pick(attention.in_proj_weight).chunk(3), pick(attention.in_proj_bias).chunk(3)):
            tensors[f"{prefix}w_{part}"], tensors[f"{prefix}b_{part}"] = w, b
        tensors[prefix + "w_o"] = pick(attention.out_proj.weight)
        tensors[prefix + "b_o"] = pick(attention.out_proj.bias)
    save(file_name, tensors, {"heads": str(heads), "causal": "true", "seed": str(seed)})


def make_ops(file_name, seed):
    torch.manual_seed(seed)
    tensors = {}

    def record(op, function, fixed=None, **inputs):
        """Stores the inputs, y = function(inputs), a random dy, and the gradients of sum(y * dy)."""
        for value in inputs.values():
            value.requires_grad_()
        y = function(**inputs)
        dy = torch.randn(y.shape)
        (y * dy).sum().backward()
        stored = {**inputs, **(fixed or {}), "y": y, "dy": dy, **{"d" + k: v.grad for k, v in inputs.items()}}
        tensors.update({f"{op}/{name}": value for name, value in stored.items()})

    record("layer_norm", lambda x, weight, bias: F.layer_norm(x, (8,), weight, bias, LAYER_NORM_EPS),
           x=0.5 + 2 * torch.randn(2, 3, 8), weight=1 + 0.1 * torch.randn(8), bias=0.1 * torch.randn(8))
    record("gelu_exact", lambda x: F.gelu(x, approximate="none"), x=torch.linspace(-6, 6, 25))
    record("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), x=torch.linspace(-6, 6, 25))
    ids = torch.tensor([[4, 1, 4, 0], [2, 4, 1, 5]])  # 1 and 4 repeat, 3 is never used
    record("embedding", lambda table: F.embedding(ids, table), {"ids": ids}, table=torch.randn(6, 3))

    logits = (2 * torch.randn(5, 7)).requires_grad_()
    targets = torch.tensor([3, 0, IGNORED, 6, 3])
    loss = F.cross_entropy(logits, targets, ignore_index=IGNORED)
    loss.backward()
    tensors.update({"cross_entropy/logits": logits, "cross_entropy/targets": targets,
                    "cross_entropy/loss": loss, "cross_entropy/dlogits": logits.grad})
    save(file_name, tensors, {"layer_norm_eps": str(LAYER_NORM_EPS), "ignore_index": str(IGNORED), "seed": str(seed)})


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)  # one order of summation, so the same bytes every time
    torch.use_deterministic_algorithms(True)
    make_decoder("decoder_tied.safetensors", seed=1, tied=True, bias=True, gelu="tanh")
    make_decoder("decoder_untied.safetensors", seed=2, tied=False, bias=False, gelu="none")
    make_multihead("multihead.safetensors", seed=3)
    make_ops("ops.safetensors", seed=4)
    print("made with torch", torch.__version__, "and numpy", np.__version__)
