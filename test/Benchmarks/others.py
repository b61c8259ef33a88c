"""Other people's machines and software, for published.py: machine files made from ours in
examples/machines and from what a run's text says of its machine. Nothing here is chosen by
the steps that are to be foretold, but for one "host".
"""
import copy
import json
import pathlib
import tomllib

MACHINES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "machines"

# What software adds to what our plans do.
# - traffic: it fuses less, so it moves more bytes for each one that our kernels move. Beside
#   products and attention PyTorch 2.11 took, on an H100 and by the time of our kernels, eager
#   6.0 (GPT-2 1.5B) and 3.1 (Llama 1B), compiled 2.4 (GPT-2 1.5B) and 2.8 (GPT-2 124M). See
#   results/2026-11-23-nvidia-h100.json.
# - host: seconds in which it sends what is one instruction of ours. That is some three kernels
#   of 10 us each. In 2021 it took more, chosen by the development rows; --leave-one-out tells
#   what it owes to each table.
# - memory: bytes of a GPU, for each that our plan of the run needs. The median of the runs
#   whose memory is published: nine of nanotron (1.15 to 1.39), five of torchtitan (1.07 to
#   1.12, and 70B in FP8 1.97). Eight of korthikanti need 0.84 to 1.09, the median 0.97.
EAGER, COMPILED = (6.0 + 3.1) / 2, (2.4 + 2.8) / 2
PROFILES = {"eager of 2021": {"traffic": EAGER, "host": 100e-6, "memory": 1},
            "eager, attention fused": {"traffic": EAGER, "host": 30e-6, "memory": 1.24},
            "compiled": {"traffic": COMPILED, "host": 10e-6, "memory": 1.12}}
HOSTS = (10e-6, 30e-6, 60e-6, 100e-6, 140e-6)

# FlashAttention-2 on an H100, of twelve shapes (results/2026-11-26-nvidia-h100.json, "PyTorch
# flash"); 335 is also what its paper says (Dao, arXiv 2307.08691).
FLASH_2 = {"bf16": 335e12, "half_head": 10, "half_keys": 180,
           "backward": {"bf16": 297e12, "half_head": 19, "half_keys": 300}}
# FlashAttention of 2022 on an A100: 30 to 50 % of the peak forward, 25 to 35 % backward (the
# same paper). Plans count a gradient as two forward passes, the paper as two and a half.
FLASH_1 = {"bf16": 0.4 * 312e12, "backward": {"bf16": 0.3 / 2.5 * 2 * 312e12}}
# Attention that is not fused moves a matrix of scores, 2 bytes each. Forward: a product
# writes it, softmax and dropout read and write it and a byte of mask, a product reads it: 13
# bytes. Backward: it is read and written seven times and as many gradients of it, with the
# mask, 19 bytes. Plans count 2 flops forward for each score that a causal mask hides or
# leaves, and element of a head, and 4 backward. A rate that rises with the size of a head is
# one whose half is never reached.
SCORE_BYTES, GRADIENT_BYTES, NEVER, COPY_SHARE = 13, 19, 1e5, 0.9


def not_fused(machine):
    bandwidth = COPY_SHARE * machine["memory"]["bandwidth"]
    forward, backward = 2 * bandwidth / SCORE_BYTES, 4 * bandwidth / GRADIENT_BYTES
    return {"bf16": forward * NEVER, "half_head": NEVER, "backward": {"bf16": backward * NEVER}}


def slower_clock(machine, watts, of):
    """Power goes with the cube of the clock: with its square by voltage, once by itself."""
    share = (watts / of) ** (1 / 3)
    for rates in (machine["flops"], machine["attention"], machine["attention"]["backward"]):
        for kind in ("bf16", "fp8"):
            if kind in rates:
                rates[kind] *= share


def profile_of(text):
    """The software of a run, by what is said of its machine."""
    if "not fused" in text:
        return "eager of 2021"
    return "compiled" if "compiled" in text or "cuDNN" in text else "eager, attention fused"


def machine_of(text, profile=None):
    """The machine of a run by its text, with what a profile adds."""
    name = "a100x8" if text.startswith("A100") else "h100x8"
    machine = tomllib.loads((MACHINES / f"{name}.toml").read_text())
    if "not fused" in text:
        machine["attention"] = not_fused(machine)
    elif "FlashAttention" in text:
        machine["attention"] = copy.deepcopy(FLASH_1 if name == "a100x8" else FLASH_2)
    if "500 W" in text:  # and HBM2e of 2.4 TB/s (torchtitan, docs/performance)
        slower_clock(machine, 500, of=700)
        for key in ("bandwidth", "kernels"):
            machine["memory"][key] *= 2.4 / 3.35
    if "4 adapters" in text:
        machine["node"]["adapters"] = 4
    if profile:
        machine["memory"]["kernels"] /= profile["traffic"]
        machine["host"] = {"instruction": profile["host"]}
    return machine


def with_room(machine, text):
    """The machine for a search of plans that this software has room for."""
    machine = copy.deepcopy(machine)
    machine["memory"]["capacity"] /= PROFILES[profile_of(text)]["memory"]
    return machine


def toml(table, path=""):
    """The text of a machine file."""
    values = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"[{path}]"] if path and values else []
    lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    for key, value in table.items():
        if isinstance(value, dict):
            lines.append(toml(value, f"{path}.{key}" if path else key))
    return "\n".join(lines)
