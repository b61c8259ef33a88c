"""The optimizer as the plans define it: clipping by global norm and AdamW with
decoupled decay (Loshchilov and Hutter, arXiv 1711.05101), and learning-rate rules."""
import fnmatch
import math

import torch


def global_norm(gradients):
    return math.sqrt(sum(float(g.double().square().sum()) for g in gradients))


class AdamW:
    """`groups`: (glob of names, factor of the rate, factor of the decay), the first that matches."""

    def __init__(self, weights, beta1=0.9, beta2=0.95, epsilon=1e-8,
                 weight_decay=0.1, clip=1.0, groups=()):
        self.groups = groups
        self.weights, self.betas, self.epsilon = weights, (beta1, beta2), epsilon
        self.weight_decay, self.clip, self.steps = weight_decay, clip, 0
        self.first = {n: torch.zeros_like(w) for n, w in weights.items()}
        self.second = {n: torch.zeros_like(w) for n, w in weights.items()}

    @torch.no_grad()
    def step(self, learning_rate):
        """Uses and clears the gradients; returns their norm before clipping."""
        norm = global_norm(w.grad for w in self.weights.values())
        scale = min(1.0, self.clip / (norm + 1e-6)) if self.clip else 1.0
        self.steps += 1
        beta1, beta2 = self.betas
        correction1 = 1 - beta1 ** self.steps
        correction2 = 1 - beta2 ** self.steps
        for name, weight in self.weights.items():
            own_rate, own_decay = next(((r, d) for glob, r, d in self.groups if fnmatch.fnmatchcase(name, glob)), (1, 1))
            rate, decay = learning_rate * own_rate, self.weight_decay * own_decay
            gradient = weight.grad * scale
            m, v = self.first[name], self.second[name]
            m.mul_(beta1).add_((1 - beta1) * gradient)
            v.mul_(beta2).add_((1 - beta2) * gradient.square())
            if weight.dim() > 1:  # norms and biases are not decayed
                weight.mul_(1 - rate * decay)
            denominator = (v / correction2).sqrt() + self.epsilon
            weight.sub_(rate * (m / correction1) / denominator)
            weight.grad = None
        return norm


def warmup_cosine(step, peak, warmup, total, floor):
    """Learning rate of step 0, 1, ...: linear up over `warmup` steps, the first
    already above zero, then half a cosine down to `floor` at the last of `total`."""
    if step < warmup:
        return peak * (step + 1) / warmup
    last = total - 1
    if step >= last:
        return floor
    progress = (step - warmup) / (last - warmup)
    return floor + (peak - floor) * 0.5 * (1 + math.cos(math.pi * progress))
