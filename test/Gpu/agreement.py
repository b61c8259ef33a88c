"""Stage `ranks`: tiny models on 1, 2 and 4 ranks of the GPU against the CPU: a step, and an evaluation.

f32: sums in another order and approximate functions, 2^-22 each; 1e-4 leaves room for what a
backward pass adds up. AdamW's first step divides by the gradient's size, so weights may differ by
the learning rate where a gradient is next to nothing."""
import array
import functools
import json
import math
import pathlib
import struct

import cases
import launcher
from stages import Case


def tensors(path):
    """Name -> floats of an f32 safetensors file; no package needed."""
    data = pathlib.Path(path).read_bytes()
    length, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    found = {}
    for name, info in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + x for x in info["data_offsets"])
            found[name] = array.array("f", data[begin:end])
    return found


def distance(a, b):
    """Of b from a, relative to a's size, over all tensors: the worst."""
    worst, where = 0.0, ""
    for name, expected in a.items():
        got = b.get(name)
        if got is None or len(got) != len(expected):
            return math.inf, name
        size = math.sqrt(math.fsum(x * x for x in expected)) or 1e-30
        off = math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(expected, got))) / size
        if not off <= worst:
            worst, where = off, name
    return worst, where


def train(name, folder, *options):
    """Loss, gradients and weights of a step of a tiny model."""
    weights, gradients = folder / f"{name}-weights", folder / f"{name}-gradients"
    lines, _ = launcher.metrics(name, folder, "--lr", "1e-2", "--save", weights, "--save-gradients", gradients, *options,
                                steps=1)
    return lines[0]["loss"], tensors(gradients), tensors(weights)


@functools.lru_cache(maxsize=None)
def expected(family, folder):
    return train(f"{family}-one-cpu", folder)


def ranks():
    return [Case(f"ranks {family} {layout}", functools.partial(agrees, family, layout))
            for family in cases.TINY for layout in cases.layouts(family, small=False)]


def agrees(family, layout, report, folder):
    loss, gradients, weights = expected(family, folder)
    got = train(f"{family}-{layout}-cuda", folder, "--share-gpu")
    off, where = distance(gradients, got[1])
    moved, _ = distance(weights, got[2])
    far = abs(got[0] / loss - 1)
    evaluated, others = [launcher.evaluation(f"{family}-{which}", folder, *more)["eval_loss"]
                         for which, more in (("one-cpu", ()), (f"{layout}-cuda", ("--share-gpu",)))]
    apart = abs(others / evaluated - 1)
    report.add(f"ranks {family} {layout}", far < 1e-5 and off < 1e-4 and moved < 1e-2 and apart < 1e-5,
               f"loss off by {far:.1e}, gradients {off:.1e} ({where}), weights {moved:.1e}, evaluation {apart:.1e}",
               loss=got[0], cpu_loss=loss, eval_loss=others, cpu_eval_loss=evaluated)
