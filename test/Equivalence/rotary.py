"""Rotary positions (Su et al., arXiv 2104.09864), half-split, and the scalings of
long-context checkpoints. Frequencies are rounded to f32, as every published
implementation holds them, and so are the angles."""
import math

import torch


def _llama3(frequencies, scaling, context):
    """Llama 3.1: long waves are stretched, short ones kept, a ramp between."""
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    scaled = []
    for f in frequencies:
        turns = context * f / (2 * math.pi)  # in the original context
        keep = min(max((turns - low) / (high - low), 0.0), 1.0)
        scaled.append(keep * f + (1 - keep) * f / scaling["factor"])
    return scaled, 1.0


def _yarn(frequencies, scaling, context, base, depth):
    """YaRN (Peng et al., arXiv 2309.00071): the ramp runs over the dim index, and
    the attention temperature is folded into cos and sin."""
    factor = scaling["factor"]

    def index_of_turns(turns):
        return (depth * math.log(context / (turns * 2 * math.pi))
                / (2 * math.log(base)))

    low = max(math.floor(index_of_turns(scaling.get("beta_fast", 32))), 0)
    high = min(math.ceil(index_of_turns(scaling.get("beta_slow", 1))), depth - 1)
    scaled = []
    for i, f in enumerate(frequencies):
        stretch = min(max((i - low) / max(high - low, 0.001), 0.0), 1.0)
        scaled.append((1 - stretch) * f + stretch * f / factor)
    temperature = scaling.get("attention_factor")
    if temperature is None:
        temperature = 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0
    return scaled, temperature


def tables(config, depth, length, dtype):
    """cos and sin, [length, depth / 2]."""
    base = config.get("rope_theta", 10000.0)
    frequencies = [base ** (-2 * i / depth) for i in range(depth // 2)]
    scaling = config.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    original = "original_max_position_embeddings"  # in the object or beside it
    context = config.get(original, scaling.get(original, config["max_position_embeddings"]))
    temperature = 1.0
    if kind == "linear":
        frequencies = [f / scaling["factor"] for f in frequencies]
    elif kind == "llama3":
        frequencies, temperature = _llama3(frequencies, scaling, context)
    elif kind == "yarn":
        frequencies, temperature = _yarn(frequencies, scaling, context, base, depth)
    elif kind != "default":
        raise ValueError(f"rope_type {kind!r}, expected default, linear, llama3 or yarn")
    frequencies = torch.tensor(frequencies, dtype=torch.float32)
    positions = torch.arange(length, dtype=torch.float32)
    angles = (positions[:, None] * frequencies).to(torch.float64)
    return ((angles.cos() * temperature).to(dtype),
            (angles.sin() * temperature).to(dtype))


def rotate(x, cos, sin):
    """x [..., length, depth]; element i is turned with element i + depth / 2."""
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
