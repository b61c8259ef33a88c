"""Trains the reference model: same weights, same tokens, in f64 unless told."""
import numpy as np
import torch

import models
import philox
from adamw import AdamW


def windows(ids, batch, sequence, seed, step):
    """Tokens and targets of one optimizer step, as the runtime draws them."""
    tokens, targets = philox.batch(np.asarray(ids), seed, step, batch, sequence)
    return torch.from_numpy(tokens), torch.from_numpy(targets)


def documents(tokens, begin=None, end=None):
    """Of each token, where its document begins: at a token `begin`, or after `end`."""
    begins = torch.zeros_like(tokens)
    for row, ids in zip(begins, tokens.tolist()):
        for i, token in enumerate(ids):
            here = token == begin or (i > 0 and ids[i - 1] == end)
            row[i] = i if here else row[max(i - 1, 0)]
    return begins


def without_ends(tokens, targets, **marks):
    """The targets, -1 where they are of another document than their token."""
    begins = documents(torch.cat((tokens, targets[:, -1:]), dim=1), **marks)
    here = torch.arange(begins.shape[1])
    return torch.where((begins == here)[:, 1:], -1, targets)


def gradients(config, weights, tokens, targets, drop=models.no_drop, kernels=None):
    """(loss, name -> f64 array) of one batch."""
    for weight in weights.values():
        weight.grad = None
    loss = models.loss(config, weights, tokens, targets, kernels=kernels, drop=drop)
    loss.backward()
    return loss.item(), {n: w.grad.double().numpy() for n, w in weights.items() if w.requires_grad}


def train(config, arrays, ids, batch, sequence, rates, seed=0, dtype=torch.float64,
          wrap=dict, **optimizer):
    """(losses, gradient norms, weights) of len(rates) optimizer steps. In bf16 the
    model runs on rounded copies of f32 masters, as mixed precision does. `wrap`
    makes of the weights what the model reads."""
    low = dtype == torch.bfloat16
    masters = models.weights_from(config, arrays, torch.float32 if low else dtype)
    adamw = AdamW({n: w for n, w in masters.items() if w.requires_grad}, **optimizer)
    losses, norms = [], []
    for step, rate in enumerate(rates):
        tokens, targets = windows(ids, batch, sequence, seed, step)
        used = masters
        if low:
            used = {n: w.detach().bfloat16().requires_grad_() if w.requires_grad else w for n, w in masters.items()}
        loss = models.loss(config, wrap(used), tokens, targets)
        loss.backward()
        if low:
            for name, weight in adamw.weights.items():
                weight.grad = used[name].grad.float()
        losses.append(loss.item())
        norms.append(adamw.step(rate))
    return losses, norms, masters


def relative_error(found, expected):
    """L2 norm of the difference over that of `expected`."""
    difference = np.linalg.norm(np.asarray(found, np.float64) - expected)
    size = np.linalg.norm(expected)
    return difference / size if size else difference


def dropout(seed, step):
    """The masks of one optimizer step: a function for `drop` of models.loss, right
    when the model sees the whole global batch at once."""
    def drop(name, rate):
        def apply(x):
            if rate == 0:
                return x
            factors = philox.dropout_factors(name, tuple(x.shape), rate, seed, step)
            return x * torch.from_numpy(factors).to(x.dtype)
        return apply
    return drop
