"""Linear layers in FP8, as the recipe says, in any precision: each operand scaled by a
power of two for the whole tensor and rounded to 8 bits, weights and activations to
e4m3, gradients to e5m2 (Micikevicius et al., arXiv 2209.05433).

    weights = fp8.linear(weights)     # x @ w, x @ w.t() of these multiply so

With delayed scaling the operand is scaled by what steps before have found (Memory).
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


def quantized(x, form, largest=None):
    """What is left of x, scaled by its largest magnitude, or as if it were another."""
    wide = x.double()
    largest = wide.abs().max() if largest is None else torch.tensor(largest, dtype=torch.float64)
    fraction, exponent = torch.frexp(largest)
    # Both formats end at 0.875 * 2^top.
    top = {448.0: 9, 57344.0: 16}[form[2]]
    scale = 2.0 ** float(top - exponent - (1 if fraction > 0.875 else 0))
    return (rounded(wide * scale, form) / scale).to(x.dtype)


class Memory:
    """Of one product: largest magnitudes of the steps before, for delayed scaling. Each step
    without a larger one leaves 2^(-1/16) of it; a step of which nothing is known takes that
    of the formats for activations, and a part of it for gradients."""

    def __init__(self, targets):
        self.first = {E4M3: E4M3[2], E5M2: E5M2[2] / targets}
        self.kept, self.now = {}, {}

    def begin_step(self):
        for form, now in self.now.items():
            self.kept[form] = max(self.kept.get(form, 0) * 2 ** (-1 / 16), now)
        self.now = {}

    def quantized(self, x, form):
        self.now[form] = max(self.now.get(form, 0), x.detach().double().abs().max().item())
        return quantized(x, form, self.kept.get(form) or self.first[form])


class Delayed:
    """`linear` for the steps of one run: call it once for each."""

    def __init__(self, targets):
        self.targets, self.memories = targets, {}

    def __call__(self, weights):
        for memory in self.memories.values():
            memory.begin_step()
        return linear(weights, lambda name: self.memories.setdefault(name, Memory(self.targets)))


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(context, x, w, memory):
        context.quantized = memory.quantized if memory else quantized
        x, w = context.quantized(x, E4M3), quantized(w, E4M3)
        context.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(context, gradient):
        x, w = context.saved_tensors
        gradient = context.quantized(gradient, E5M2)
        return gradient @ w.t(), x.flatten(0, -2).t() @ gradient.flatten(0, -2), None


class Weight:
    """A matrix whose products are in FP8 where all their sizes are multiples of 16."""

    def __init__(self, values, memory=None):
        self.values, self.memory = values, memory

    def t(self):
        return Weight(self.values.t(), self.memory)

    def __rmatmul__(self, x):
        tokens = x[..., 0].numel()
        if any(size % 16 for size in (tokens, *self.values.shape)):
            return x @ self.values
        return _Product.apply(x, self.values, self.memory)


def linear(weights, memory_of=lambda name: None):
    """`weights` with those of linear layers wrapped: not embeddings, not the
    head, no experts (Experts) and no routers."""
    others = ("wte.", "wpe.", "lm_head.", "embed_tokens.", ".experts.", ".gate.weight")
    return {name: Weight(w, memory_of(name)) if w.dim() == 2 and not any(o in name for o in others)
            else w for name, w in weights.items()}


class _Rounded(torch.autograd.Function):
    """One of both directions rounds, the other passes."""

    @staticmethod
    def forward(context, x, forward, backward):
        context.backward_rule = backward
        return forward(x) if forward else x.clone()

    @staticmethod
    def backward(context, gradient):
        rule = context.backward_rule
        return rule(gradient) if rule else gradient, None, None


class Experts:
    """For config["experts"] of mixture.py: experts whose operands are rounded. Each kind of weight has one scale for
    all experts, tokens and their gradients one for all; with `delayed` these come from the steps before. Rows that
    experts make always have scales from the steps before: those in front of the down projection, and the gradients of
    gate's and of up's results. Only chosen rows count. Call `begin_step` before each step."""

    def __init__(self, targets, delayed=False):
        self.targets, self.delayed, self.memories = targets, delayed, {}

    def begin_step(self):
        for memory in self.memories.values():
            memory.begin_step()

    def _rule(self, key, form, delayed=True):
        if not delayed:
            return lambda x: quantized(x, form)
        memory = self.memories.setdefault(key, Memory(self.targets))
        return lambda x: memory.quantized(x, form)

    def __call__(self, layer, tokens, experts, shares, activation):
        of_tokens = self._rule((layer, "tokens"), E4M3, self.delayed)
        of_sums = self._rule((layer, "sums"), E5M2, self.delayed)
        of_rows, of_gate, of_up = (self._rule((layer, what), form) for what, form in
                                   (("rows", E4M3), ("gate", E5M2), ("up", E5M2)))
        stacks = [_Rounded.apply(torch.stack(list(stack)), lambda w: quantized(w, E4M3), None)
                  for stack in zip(*experts, strict=True)]
        x = _Rounded.apply(tokens, of_tokens, None)
        result = torch.zeros_like(tokens)
        for gate, up, down, share in zip(*stacks, shares, strict=True):
            inner = (activation(_Rounded.apply(x @ gate.t(), None, of_gate))
                     * _Rounded.apply(x @ up.t(), None, of_up) * share)
            result = result + _Rounded.apply(inner, of_rows, None) @ down.t()
        return _Rounded.apply(result, None, of_sums)
