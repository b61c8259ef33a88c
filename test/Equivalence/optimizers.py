"""Other optimizers than AdamW, as PyTorch has them or as their paper gives them, behind one
clipping: step(gradients, rate) changes `weights` in place."""
import torch

from adamw import global_norm


def clipped(gradients, clip):
    norm = global_norm(gradients.values())
    scale = min(1.0, clip / (norm + 1e-6)) if clip else 1.0
    return {n: g * scale for n, g in gradients.items()}


def decays(weight):
    return weight.dim() > 1  # norms and biases are not decayed


class Sgd:
    """torch.optim.SGD."""

    def __init__(self, weights, clip=1.0, momentum=0.0, weight_decay=0.0, nesterov=False):
        self.weights, self.clip = weights, clip
        groups = [{"params": [w for w in weights.values() if decays(w) == kind],
                   "weight_decay": weight_decay if kind else 0.0} for kind in (False, True)]
        self.inner = torch.optim.SGD([g for g in groups if g["params"]], lr=1.0, momentum=momentum,
                                     nesterov=nesterov)

    def step(self, gradients, rate):
        for name, gradient in clipped(gradients, self.clip).items():
            self.weights[name].grad = gradient
        for group in self.inner.param_groups:
            group["lr"] = rate
        self.inner.step()


class Lion:
    """Chen et al., arXiv 2302.06675, algorithm 2."""

    def __init__(self, weights, clip=1.0, beta1=0.9, beta2=0.99, weight_decay=0.0):
        self.weights, self.clip, self.betas, self.weight_decay = weights, clip, (beta1, beta2), weight_decay
        self.momentum = {n: torch.zeros_like(w) for n, w in weights.items()}

    @torch.no_grad()
    def step(self, gradients, rate):
        for name, g in clipped(gradients, self.clip).items():
            weight, m = self.weights[name], self.momentum[name]
            direction = torch.sign(self.betas[0] * m + (1 - self.betas[0]) * g)
            decay = self.weight_decay if decays(weight) else 0.0
            weight.sub_(rate * (direction + decay * weight))
            m.mul_(self.betas[1]).add_((1 - self.betas[1]) * g)
