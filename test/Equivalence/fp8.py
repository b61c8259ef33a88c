"""Linear layers in FP8, as the recipe says, in any precision: each operand scaled by a
power of two for the whole tensor and rounded to 8 bits, weights and activations to
e4m3, gradients to e5m2 (Micikevicius et al., arXiv 2209.05433).

    weights = fp8.linear(config, weights)     # x @ w, x @ w.t() of these multiply so
"""
import torch

# Bits of the mantissa, least exponent, largest number.
E4M3, E5M2 = (3, -6, 448.0), (2, -14, 57344.0)


def rounded(x, form):
    """To nearest even; beyond the largest number that number."""
    mantissa, least, largest = form
    exponent = torch.frexp(x)[1] - 1  # of 1.xxx
    unit = torch.ldexp(torch.ones_like(x), exponent.clamp(min=least) - mantissa)
    return (torch.round(x / unit) * unit).clamp(-largest, largest)


def quantized(x, form):
    """What is left of x."""
    wide = x.double()
    fraction, exponent = torch.frexp(wide.abs().max())
    # Both formats end at 0.875 * 2^top.
    top = {448.0: 9, 57344.0: 16}[form[2]]
    scale = 2.0 ** float(top - exponent - (1 if fraction > 0.875 else 0))
    return (rounded(wide * scale, form) / scale).to(x.dtype)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(context, x, w):
        x, w = quantized(x, E4M3), quantized(w, E4M3)
        context.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(context, gradient):
        x, w = context.saved_tensors
        gradient = quantized(gradient, E5M2)
        return gradient @ w.t(), x.flatten(0, -2).t() @ gradient.flatten(0, -2)


class Weight:
    """A matrix whose products are in FP8 where all their sizes are multiples of 16."""

    def __init__(self, values):
        self.values = values

    def t(self):
        return Weight(self.values.t())

    def __rmatmul__(self, x):
        tokens = x[..., 0].numel()
        if any(size % 16 for size in (tokens, *self.values.shape)):
            return x @ self.values
        return _Product.apply(x, self.values)


def linear(weights):
    """`weights` with those of linear layers wrapped: not embeddings, not the head."""
    others = ("wte.", "wpe.", "lm_head.", "embed_tokens.")
    return {name: Weight(w) if w.dim() == 2 and not any(o in name for o in others) else w
            for name, w in weights.items()}
