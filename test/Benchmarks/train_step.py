#!/usr/bin/env python3
"""Whole training steps, ours against PyTorch on the same threads.

    test/Benchmarks/train_step.py --torch-python /path/to/python [--cases gpt2-124m/bf16 ...]

Both sides do forward, backward, clipping and AdamW on the same shapes. They take turns
(A B A B ...), never at once; a side's figure is the median over all its steps after
warm-up. PyTorch runs in the fastest of its settings. Prints a line per case and a table
of our instructions against their floors; writes everything as JSON.

PyTorch's interpreter needs torch 2.4 or newer; for its compiled settings, a C++
compiler. This script itself needs Python only.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import cases
import floors
from frameworks import HERE, Ours, best_torch

SETTINGS = (("eager", "fused"), ("compile", "fused"))


def log(text):
    print(text, flush=True)


def cpu():
    """(model name, the features that decide matmul speed)."""
    fields = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    flags = set(fields.get("flags", "").split())
    wanted = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    return fields.get("model name", "unknown"), [f for f in wanted if f in flags]


def peaks_of_torch(options):
    done = subprocess.run([options.torch_python, str(HERE / "machine.py"),
                           str(options.threads)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{options.torch_python}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def our_peaks(options):
    with tempfile.TemporaryDirectory(prefix="meshwork-") as folder:
        file = pathlib.Path(folder) / "machine.toml"
        done = subprocess.run([str(options.bin / "meshwork-run"), "--measure-machine", str(file), "--threads",
                               str(options.threads)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"meshwork-run: {done.stderr[-500:]}")
        return floors.rates(file.read_text())


def measure(model, precision, options, peak):
    ours = Ours(options.bin, model, precision, options.threads)
    result = {"compile_s": ours.compile_seconds(), "load_ms": ours.load_ms()}
    log(f"{model} {precision}: compiled in {result['compile_s']:.2f} s (goal "
        f"{cases.COMPILE_GOAL_S}), plan loaded and checked in {result['load_ms']:.1f} ms "
        f"(goal {cases.LOAD_GOAL_MS})")
    torch, result["torch_settings_ms"] = best_torch(
        options.torch_python, model, precision, options.threads, SETTINGS, log)
    result["torch_setting"] = "+".join(torch.setting)
    theirs_ms, ours_metrics = [], []
    for _ in range(options.rounds):
        theirs_ms += torch.steps(options.steps)
        ours_metrics += ours.steps(options.steps)
    torch.close()
    result["torch_step_ms"] = theirs_ms
    result["ours_step_ms"] = [m["step_ms"] for m in ours_metrics]
    result["torch_ms"] = statistics.median(theirs_ms)
    result["ours_ms"] = statistics.median(result["ours_step_ms"])
    result["ratio"] = result["torch_ms"] / result["ours_ms"]
    result["memory_peak_bytes"] = max(m["memory_peak_bytes"] for m in ours_metrics)
    log(f"{model} {precision}: PyTorch ({result['torch_setting']}) "
        f"{result['torch_ms']:.0f} ms, ours {result['ours_ms']:.0f} ms: "
        f"{result['ratio']:.2f} times (goal {cases.GOALS[precision]})")
    result["instructions"] = floors.table(ours.profile(options.steps), peak[precision],
                                          peak["f32"], peak["copy"])
    log(floors.text(result["instructions"]) + "\n")
    ours.close()
    return result


def parse(arguments):
    every = [f"{m}/{p}" for m in cases.MODELS for p in cases.PRECISIONS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch-python", default=sys.executable,
                        help="interpreter that has a current PyTorch")
    cases.add_bin(parser)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side")
    parser.add_argument("--steps", type=int, default=3, help="steps a turn")
    parser.add_argument("--cases", nargs="+", choices=every, default=every)
    parser.add_argument("--output", help="default: results/DATE-CPU.json here")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    name, features = cpu()
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H%M")
    sides = {"pytorch": peaks_of_torch(options), "ours": our_peaks(options)}
    peak = floors.best(sides.values())
    log(f"{name} ({', '.join(features)}), {options.threads} threads; matmul peak "
        f"{peak['f32']:.0f} GFLOP/s f32, {peak['bf16']:.0f} bf16; copy {peak['copy']:.1f} GB/s")
    results = {case: measure(*case.split("/"), options, peak) for case in options.cases}
    slug = "-".join("".join(c if c.isalnum() else " " for c in name).split()).lower()
    output = pathlib.Path(options.output or HERE / "results" / f"{date}-{slug}.json")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"cpu": name, "features": features, "date": date,
                                  "threads": options.threads, "peak": peak, "peaks": sides,
                                  "cases": results}, indent=1) + "\n")
    log(f"written to {output}")
    short = [c for c, r in results.items() if r["ratio"] < cases.GOALS[c.split("/")[1]]]
    log("every goal reached" if not short else "below its goal: " + ", ".join(short))
    return 0


if __name__ == "__main__":
    sys.exit(main())
