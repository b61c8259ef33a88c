"""The few operations of a transformer that have more than one implementation.

`Reference` says what each one means, in plain tensor algebra that works in any
precision; a benchmark hands in its own object with the same methods and the
framework's fast kernels behind them.
"""
import torch
from torch.nn import functional as F


def visible(length, window):
    """[query, key] mask of causal attention: key j is seen by query i when
    j <= i and, with a window, i - j < window."""
    query = torch.arange(length)[:, None]
    key = torch.arange(length)[None, :]
    mask = key <= query
    if window:
        mask = mask & (query - key < window)
    return mask


class Reference:
    def mask(self, length, window):
        """What broadcasts to [batch, heads, query, key]."""
        return visible(length, window)

    def by_position(self, table, length):
        """The row of each token's position, [length, ...] or [batch, length, ...]."""
        return table[:length]

    def attention(self, q, k, v, scale, window, drop):
        """q [b, heads, s, d]; k, v [b, kv_heads, s, d]; query head h reads kv head
        h // (heads // kv_heads). `drop` is applied to the probabilities."""
        group = q.shape[1] // k.shape[1]
        k = k.repeat_interleave(group, dim=1)
        v = v.repeat_interleave(group, dim=1)
        scores = q @ k.transpose(-1, -2) * scale
        scores = scores.masked_fill(~self.mask(q.shape[2], window), float("-inf"))
        return drop(torch.softmax(scores, dim=-1)) @ v

    def layer_norm(self, x, weight, bias, epsilon):
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).square().mean(-1, keepdim=True)
        return (x - mean) * torch.rsqrt(variance + epsilon) * weight + bias

    def rms_norm(self, x, weight, epsilon):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * weight

    def gelu_tanh(self, x):
        # Hendrycks and Gimpel, arXiv 1606.08415, section 2.
        inner = (2 / torch.pi) ** 0.5 * (x + 0.044715 * x ** 3)
        return 0.5 * x * (1 + torch.tanh(inner))

    def silu(self, x):
        return x * torch.sigmoid(x)

    def activation(self, name):
        """The function a configuration's `name` stands for."""
        return {"gelu_new": self.gelu_tanh, "gelu_pytorch_tanh": self.gelu_tanh,
                "gelu": lambda x: 0.5 * x * (1 + torch.erf(x / 2 ** 0.5)),
                "relu": torch.relu, "silu": self.silu}[name]

    def cross_entropy(self, logits, targets):
        """Mean over all tokens of -log softmax(logits)[target]; a negative target is left out."""
        logits, targets = logits.flatten(0, -2), targets.flatten()
        logits, targets = logits[targets >= 0], targets[targets >= 0]
        chosen = logits.gather(1, targets[:, None])[:, 0]
        return (torch.logsumexp(logits, dim=-1) - chosen).sum() / max(1, len(targets))


class Separate(Reference):
    """Attention stays within documents; `begins` [batch, sequence] says of each token
    where its own begins."""

    def __init__(self, begins):
        self.begins = begins

    def mask(self, length, window):
        return visible(length, window) & (torch.arange(length) >= self.begins[:, None, :, None])


class Restarted(Reference):
    """Positions begin anew with each document."""

    def __init__(self, begins):
        self.positions = torch.arange(begins.shape[1]) - begins

    def by_position(self, table, length):
        return table[self.positions]


class Apart(Separate, Restarted):
    """Both."""

    def __init__(self, begins):
        Separate.__init__(self, begins)
        Restarted.__init__(self, begins)


class Fast(Reference):
    """The framework's fused kernels, for speed and as a second opinion."""

    def attention(self, q, k, v, scale, window, drop):
        group = q.shape[1] // k.shape[1]
        if group > 1:
            k = k.repeat_interleave(group, dim=1)
            v = v.repeat_interleave(group, dim=1)
        mask = visible(q.shape[2], window) if window else None
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask,
                                              is_causal=mask is None, scale=scale)

    def layer_norm(self, x, weight, bias, epsilon):
        return F.layer_norm(x, weight.shape, weight, bias, epsilon)

    def rms_norm(self, x, weight, epsilon):
        return F.rms_norm(x, weight.shape, weight, epsilon)

    def gelu_tanh(self, x):
        return F.gelu(x, approximate="tanh")

    def silu(self, x):
        return F.silu(x)

    def cross_entropy(self, logits, targets):
        return F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten())
