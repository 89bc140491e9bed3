"""Makes the golden numbers of tests/study: what the weights of the golden decoders say of each head.

Everything is computed the long way, from whole (C,C) and (V,V) matrices, and shares nothing with the
library: study_tied.safetensors and study_untied.safetensors, from the weights and the inputs of
decoder_tied.safetensors and decoder_untied.safetensors beside them. Needs Python 3 and NumPy. Run it with no
arguments; README.md says what each file holds.
"""

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
EPS = 1e-5


# ---- The file format ----

def load(name):
    """Returns the tensors and the metadata of a safetensors file, beside this one where `name` is no whole path."""
    raw = (HERE / name).read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + length]), raw[8 + length:]
    metadata = header.pop("__metadata__", {})
    types = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}
    return {key: np.frombuffer(data[slice(*entry["data_offsets"])], types[entry["dtype"]])
                 .reshape(entry["shape"]) for key, entry in header.items()}, metadata


def save(name, tensors):
    """Writes tensors, those of whole numbers as ids and all others in float64."""
    header, data = {}, b""
    for key, tensor in tensors.items():
        kind = "I64" if np.issubdtype(np.asarray(tensor).dtype, np.integer) else "F64"
        raw = np.asarray(tensor, "<i8" if kind == "I64" else "<f8").tobytes()
        header[key] = {"dtype": kind, "shape": list(np.shape(tensor)),
                       "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (HERE / name).write_bytes(struct.pack("<Q", len(text)) + text + data)


# ---- The model ----

class Model:
    """A decoder. Vectors of the stream are columns in the circuits, as Elhage et al. 2021 write them."""

    def __init__(self, weights, layers, heads, gelu):
        self.weights, self.layers, self.heads, self.gelu_kind = weights, layers, heads, gelu
        self.unembed = weights.get("head.weight", weights["tok.weight"])  # (V,C)
        self.embedding = weights["tok.weight"]                            # (V,C)
        self.width = self.embedding.shape[1]
        self.attention_only = "blocks.0.mlp.up.weight" not in weights
        self.every_head = [(layer, head) for layer in range(layers) for head in range(heads)]

    def columns(self, head):
        size = self.width // self.heads
        return slice(head * size, (head + 1) * size)

    # A norm reads gain * (x - mean x) / sigma + bias: all of it but sigma and the bias as one matrix.
    def norm_matrix(self, name):
        centre = np.eye(self.width) - np.ones((self.width, self.width)) / self.width
        return np.diag(self.weights[name + ".weight"]) @ centre

    def w_qk(self, layer, head):
        """W_Q^T W_K, (C,C): the stream of a query on its left, that of a key on its right."""
        rows, norm = self.columns(head), self.norm_matrix(f"blocks.{layer}.ln1")
        w_q = self.weights[f"blocks.{layer}.attn.w_q.weight"][rows] @ norm
        w_k = self.weights[f"blocks.{layer}.attn.w_k.weight"][rows] @ norm
        return w_q.T @ w_k

    def w_ov(self, layer, head):
        """W_O W_V, (C,C)."""
        rows, norm = self.columns(head), self.norm_matrix(f"blocks.{layer}.ln1")
        w_v = self.weights[f"blocks.{layer}.attn.w_v.weight"][rows] @ norm
        return self.weights[f"blocks.{layer}.attn.w_o.weight"][:, rows] @ w_v

    # The forward pass, rows being positions.
    def linear(self, name, x):
        return x @ self.weights[name + ".weight"].T + self.weights.get(name + ".bias", 0)

    def layer_norm(self, name, x):
        centred = x - x.mean(-1, keepdims=True)
        normed = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + EPS)
        return normed * self.weights[name + ".weight"] + self.weights.get(name + ".bias", 0)

    def mlp(self, layer, x):
        pre = self.linear(f"blocks.{layer}.mlp.up", self.layer_norm(f"blocks.{layer}.ln2", x))
        if self.gelu_kind == "tanh":
            hidden = pre / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (pre + 0.044715 * pre ** 3)))
        else:
            hidden = pre / 2 * (1 + np.vectorize(math.erf)(pre / math.sqrt(2)))
        return self.linear(f"blocks.{layer}.mlp.down", hidden)

    def forward(self, ids, patterns=None, edit=None, begin=None):
        """Runs the tokens (B,T) through the model and returns all that was seen on the way, a Pass.

        `patterns` stand in the place of its own, `edit(layer, z)` answers with what stands in the place of z (B,H,T,D), and
        `begin` (layer, x) says where to go on from, the stream before that block.
        """
        batch, time = ids.shape

        def split(x):
            return x.reshape(batch, time, self.heads, -1).transpose(0, 2, 1, 3)

        first, x = begin or (0, self.embedding[ids] + self.weights["pos.weight"][:time])
        seen = Pass(None, [], [], [], [], [x])
        for layer in range(first, self.layers):
            attn = f"blocks.{layer}.attn."
            normed = self.layer_norm(f"blocks.{layer}.ln1", x)
            q, k, v = (split(self.linear(attn + part, normed)) for part in ("w_q", "w_k", "w_v"))
            scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
            scores = np.where(np.tril(np.ones((time, time), bool)), scores, -np.inf)
            pattern = np.exp(scores - scores.max(-1, keepdims=True))
            pattern /= pattern.sum(-1, keepdims=True)
            if patterns is not None:
                pattern = patterns[layer]
            z = pattern @ v
            if edit is not None:
                z = edit(layer, z)
            x = x + self.linear(attn + "w_o", z.transpose(0, 2, 1, 3).reshape(batch, time, self.width))
            if not self.attention_only:
                seen.mlps.append(self.mlp(layer, x))
                x = x + seen.mlps[-1]
            seen.patterns.append(pattern)
            seen.values.append(v)
            seen.z.append(z)
            seen.streams.append(x)
        seen.logits = self.read_out(x)
        return seen

    def read_out(self, x):
        return self.layer_norm("ln_f", x) @ self.unembed.T


@dataclass
class Pass:
    """What a forward pass showed: logits (B,T,V); of each layer run patterns (B,H,T,T), values and z (B,H,T,D) and what the MLP
    adds (B,T,C); the stream (B,T,C) before the first of them and after each."""
    logits: np.ndarray
    patterns: list
    values: list
    z: list
    mlps: list
    streams: list


def golden_decoder(name):
    """A golden decoder and the tensors of its file."""
    tensors, meta = load(f"decoder_{name}.safetensors")
    weights = {key[6:]: t for key, t in tensors.items() if key.startswith("param/")}
    return Model(weights, int(meta["layers"]), int(meta["heads"]), meta["gelu"]), tensors


# ---- What is read from it ----

def composition(model):
    """The ratios by queries, keys and values, (3, heads, heads): [.., to, from], 0 unless later."""
    norm, ratios = np.linalg.norm, np.zeros((3, len(model.every_head), len(model.every_head)))
    for i, to in enumerate(model.every_head):
        for j, source in enumerate(model.every_head):
            if to[0] <= source[0]:
                continue
            qk, ov, written = model.w_qk(*to), model.w_ov(*to), model.w_ov(*source)
            for kind, read in enumerate((qk.T, qk, ov)):
                ratios[kind, i, j] = norm(read @ written) / (norm(read) * norm(written))
    return ratios


def positivity(circuit):
    eigenvalues = np.linalg.eigvals(circuit)
    return eigenvalues.sum().real / np.abs(eigenvalues).sum()


def full_ov(model, head, embedding):
    """W_U W_O W_V W_E, (V,V): column t is what attending to token t does to the logits."""
    return model.unembed @ model.norm_matrix("ln_f") @ model.w_ov(*head) @ embedding.T


def top_copying(model, embedding):
    """Shares of tokens whose own logit is the largest, and among the five largest; (heads, 2)."""
    shares = []
    for head in model.every_head:
        order = np.argsort(-full_ov(model, head, embedding), axis=0, kind="stable")
        rank = np.array([list(order[:, t]).index(t) for t in range(len(embedding))])
        shares.append([(rank < 1).mean(), (rank < 5).mean()])
    return shares


def moved(model, layer, values):
    """f_h(x_j) of each position, (B,H,T,C)."""
    w_o = model.weights[f"blocks.{layer}.attn.w_o.weight"]
    return np.stack([values[:, h] @ w_o[:, model.columns(h)].T for h in range(model.heads)], 1)


def raised(model, ids, pattern, f):
    """The share of each token in what a head raises of a sequence's own, (B,H,T,V), and the token attended to."""
    through_norm = f @ model.norm_matrix("ln_f").T
    logits = np.einsum("bhij,bhjc->bhic", pattern, through_norm) @ model.unembed.T
    amounts = np.maximum(logits - logits.mean(-1, keepdims=True), 0)
    for b, sequence in enumerate(ids):
        amounts[b][:, :, [t for t in range(amounts.shape[-1]) if t not in sequence]] = 0
    total = amounts.sum(-1, keepdims=True)
    attended = np.stack([ids[b][pattern[b].argmax(-1)] for b in range(len(ids))])
    return amounts / np.where(total > 0, total, 1), attended


def make(name):
    model, golden = golden_decoder(name)
    ids = golden["inputs"]
    seen = model.forward(ids)
    patterns, values = seen.patterns, seen.values
    assert np.abs(seen.logits - golden["logits"]).max() < 1e-12, "not the model that PyTorch ran"
    everywhere = model.embedding + model.mlp(0, model.embedding)
    tensors = {
        "composition": composition(model),
        "ov_positivity": [positivity(full_ov(model, head, model.embedding)) for head in model.every_head],
        "qk_positivity": [positivity(model.embedding @ model.w_qk(*head) @ model.embedding.T)
                          for head in model.every_head],
        "top_copying": top_copying(model, model.embedding),
        "effective_embedding": everywhere,
        "top_copying_effective": top_copying(model, everywhere),
    }
    for layer in range(model.layers):
        f = moved(model, layer, values[layer])
        tensors[f"value_norms.{layer}"] = np.linalg.norm(f, axis=-1)
        weighted = np.einsum("bhij,bhjc->bijc", patterns[layer], f)
        tensors[f"combined_norms.{layer}"] = np.linalg.norm(weighted, axis=-1)
        shares, attended = raised(model, ids, patterns[layer], f)
        tensors[f"raised.{layer}"], tensors[f"attended.{layer}"] = shares, attended.astype(float)
    save(f"study_{name}.safetensors", tensors)


if __name__ == "__main__":
    make("tied")
    make("untied")
