"""Small reference implementations, the oracle of the equivalence tests.

    weights = models.weights_from(config, safetensors.read(path), torch.float64)
    models.loss(config, weights, tokens, targets).backward()

`config` is a parsed Hugging Face config.json. Weights are a dictionary of leaf
tensors under Hugging Face names; nothing is shared with the compiler.
"""
import torch

import gpt2
import llama
import mixture
from kernels import Reference

_FAMILIES = {"gpt2": gpt2, "llama": llama, "mistral": llama, "qwen2": llama,
             "qwen3": llama, "mixtral": llama, "qwen2_moe": llama, "qwen3_moe": llama, "olmoe": llama,
             "dots1": llama}


def family(config):
    kind = config["model_type"]
    if kind not in _FAMILIES:
        raise ValueError(f"model_type {kind!r}, expected one of {sorted(_FAMILIES)}")
    return _FAMILIES[kind]


def parameter_shapes(config):
    """Name -> shape, as in files."""
    return family(config).parameter_shapes(config)


def weights_from(config, arrays, dtype=torch.float64):
    """Leaf tensors of `arrays` (name -> numpy), after a check that they are exactly
    the model's."""
    expected = parameter_shapes(config)
    found = {name: tuple(array.shape) for name, array in arrays.items()}
    if found != expected:
        wrong = sorted(set(expected.items()) ^ set(found.items()))
        raise ValueError(f"weights differ from the model's: {wrong[:6]}")
    return {name: torch.tensor(arrays[name], dtype=dtype).requires_grad_(not mixture.untrained(name))
            for name in expected}


def random_weights(config, seed, dtype=torch.float32):
    """Weights for tests of the oracle itself: every tensor random, so that no bias
    or norm is at a value that hides a mistake."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in parameter_shapes(config).items():
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        center = 1.0 if "norm" in name or ".ln_" in name and "weight" in name else 0.0
        weights[name] = (center + 0.1 * noise).to(dtype).requires_grad_(not mixture.untrained(name))
    return weights


def no_drop(_name, _rate):
    return lambda x: x


def loss(config, weights, tokens, targets, kernels=None, drop=no_drop):
    """Mean cross-entropy over all tokens; dropout off unless `drop` is given."""
    kernels = kernels or Reference()
    logits = family(config).logits(config, weights, tokens, kernels, drop)
    return kernels.cross_entropy(logits, targets)
