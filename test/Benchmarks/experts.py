#!/usr/bin/env python3
"""Two ranks that share experts against two that have all of them, on two cores.

    test/Benchmarks/experts.py [--rounds 5]

The block of mixture.py. Its router is planted: token t chooses expert t and those behind it, and tokens come in turn, so
all experts have equally many (largest over mean load: 1). The sides take turns; a figure is the median of a step. Also what
counting choices costs: the share of a step of the instructions that are there for `expert_load` alone.
"""
import json
import pathlib
import statistics
import sys
import tempfile

import numpy as np

import cases
import mixture

sys.path.insert(1, str(cases.ROOT / "test/Equivalence"))
import safetensors  # noqa: E402

STEPS = 12
LAYOUTS = {"dp 2": {"axes": '["dp=2"]'},
           "ep 2, gathered": {"axes": '["ep=2"]', "exchange": "gathered"},
           "ep 2, all_to_all": {"axes": '["ep=2"]', "exchange": "all_to_all"}}


def planted(block):
    """Weights of which the router reads each token's number."""
    experts, choices, ffn = block
    random = np.random.default_rng(3)
    weights = {name: (0.02 * random.standard_normal(shape)).astype(np.float32) for name, shape in (
        ("gate", (experts, ffn, mixture.WIDTH)), ("up", (experts, ffn, mixture.WIDTH)),
        ("down", (experts, mixture.WIDTH, ffn)))}
    table = random.standard_normal((256, mixture.WIDTH))
    behind = (np.arange(experts) - np.arange(256)[:, None]) % experts
    table[:, :experts] = np.where(behind < choices, 2 - behind / choices, -2)
    return {**weights, "table": table.astype(np.float32),
            "router": np.eye(experts, mixture.WIDTH, dtype=np.float32)}


def prepare(options, folder, precision, block):
    experts, choices, ffn = block
    (folder / "m.mlir").write_text(mixture.MODEL.format(d=mixture.DIMS, h=mixture.WIDTH, e=experts, k=choices, f=ffn))
    safetensors.write(str(folder / "init.safetensors"), planted(block))
    (np.arange(1 << 16) % 256).astype(np.uint16).tofile(folder / "tokens.bin")
    for number, layout in enumerate(LAYOUTS.values()):
        exchange = f'[experts]\nexchange = "{layout["exchange"]}"\n' if "exchange" in layout else ""
        (folder / "spec.toml").write_text(
            f'[mesh]\naxes = {layout["axes"]}\n[batch]\nglobal = {2 * cases.BATCH}\nmicro = {cases.BATCH}\n'
            f'sequence = {cases.SEQUENCE}\n[precision]\ncompute = "{precision}"\n{exchange}')
        mixture.call([options.bin / "meshwork", "compile", "m.mlir", "--spec", "spec.toml", "-o", f"{number}.mwplan"], folder)


def steps_ms(options, folder, number):
    metrics = folder / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    mixture.call([options.bin / "meshwork-run", f"{number}.mwplan", "--data", "tokens.bin", "--data-type", "u16", "--lr", 0,
                  "--init", "init.safetensors", "--steps", STEPS, "--threads", 1, "--metrics", "metrics.jsonl",
                  "--profile-json", "profile.json"], folder)
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    most, mean, _ = lines[-1]["expert_load"][0]
    return [line["step_ms"] for line in lines[2:]], most / mean


def counting_share(folder):
    """Of all instructions' time; the last run's. Without a loss for even routing nothing else of the forward pass is
    a pick_grad, or a contract by that name."""
    rows = json.loads((folder / "profile.json").read_text())["instructions"]
    counting = sum(row["ms_per_step"] for row in rows if "expert_counts" in row["name"] or
                   row["phase"] == "forward" and row["name"] in ("pick_grad", "contract"))
    return counting / sum(row["ms_per_step"] for row in rows)


def measure(options, folder, precision, block):
    prepare(options, folder, precision, block)
    times, loads = {name: [] for name in LAYOUTS}, []
    for _ in range(options.rounds):
        for number, name in enumerate(LAYOUTS):
            steps, load = steps_ms(options, folder, number)
            times[name] += steps
            loads.append(load)
    return {name: statistics.median(all_) for name, all_ in times.items()}, max(loads), counting_share(folder)


def main():
    options = cases.arguments(__doc__)
    results = {}
    with tempfile.TemporaryDirectory() as name:
        for precision in ("bf16", "f32"):
            for block in mixture.BLOCKS:
                medians, load, counting = measure(options, pathlib.Path(name), precision, block)
                results[f"{precision} {block}"] = {"step_ms": medians, "load": load, "counting": counting}
                told = "; ".join(f"{name} {ms:.0f} ms, {ms / medians['dp 2']:.2f} of dp 2" for name, ms in medians.items())
                print(f"{block[0]} experts, {block[1]} a token, {precision}: {told}; largest over mean load {load:.2f}; "
                      f"counting {100 * counting:.2f} %", flush=True)
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
