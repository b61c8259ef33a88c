#!/usr/bin/env python3
"""Two builds against each other, in turns: steps, compile time, memory of the compiler, size of plans, estimates.

    test/Benchmarks/builds.py BEFORE/bin AFTER/bin [--rounds 5] [--only steps|compile|estimate] [--json FILE]

Each row is a ratio, after over before: of medians for steps, of the least times for compiling and
estimating, which a busy machine only makes longer. Turns alternate within a round and change places from
round to round, so that neither build has the quiet half.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

import cases
from frameworks import Ours

# Compiled only: GPT-2 1.5B for a GPU, and Llama 3.1 405B over 16 stages.
GPT2_XL = {**cases.config("gpt2-124m"), "n_embd": 1600, "n_layer": 48, "n_head": 25}
LLAMA_405B = json.loads((cases.ROOT / "test" / "EndToEnd" / "llama-405b.json").read_text())
COMPILED = {
    "gpt2-1.5b, cuda": (GPT2_XL, '[mesh]\naxes = ["dp=8"]\n[batch]\nglobal = 64\nmicro = 8\nsequence = 1024\n'
                        '[precision]\ncompute = "bf16"\n[target]\ndevice = "cuda"\narch = "sm_90a"\n'),
    "llama-405b, pp 16": (LLAMA_405B, '[mesh]\naxes = ["pp=16", "dp=8", "tp=8"]\n[shard]\nresidual_sequence = ["tp"]\n'
                          '[zero]\nstage = 1\n[batch]\nglobal = 128\nmicro = 1\nsequence = 8192\n'
                          '[pipeline]\nschedule = "interleaved-1f1b"\nvirtual_stages = 4\n'),
}

# Estimated only: Llama 3.1 in its three sizes, for GPUs.
SIZES = {"8b": (4096, 14336, 32, 32), "70b": (8192, 28672, 80, 64), "405b": (16384, 53248, 126, 128)}
FOR_GPUS = '[precision]\ncompute = "bf16"\n[target]\ndevice = "cuda"\narch = "sm_90a"\n'
FULLY_SHARDED = ('[mesh]\naxes = ["dp=8", "tp=8"]\n[shard]\nresidual_sequence = ["tp"]\n[zero]\nstage = 3\n'
                 '[batch]\nglobal = 8\nmicro = 1\nsequence = 8192\n')


def llama(size):
    columns, inner, layers, heads = SIZES[size]
    return {**LLAMA_405B, "hidden_size": columns, "intermediate_size": inner, "num_hidden_layers": layers,
            "num_attention_heads": heads}


ESTIMATED = {**{f"llama-{size}, zero 3": (llama(size), FULLY_SHARDED + FOR_GPUS) for size in SIZES},
             "llama-405b, pp 16": (LLAMA_405B, COMPILED["llama-405b, pp 16"][1] + FOR_GPUS)}


class Compiled:
    """A configuration and a spec that one build compiles."""

    def __init__(self, binaries, config, spec):
        self.binaries = binaries
        self._folder = tempfile.TemporaryDirectory(prefix="meshwork-bench-")
        self.path = pathlib.Path(self._folder.name)
        (self.path / "config.json").write_text(json.dumps(config))
        (self.path / "spec.toml").write_text(spec)
        self._run("import", "config.json", "-o", "model.mlir")

    def _run(self, *arguments):
        """(seconds of the processor, peak memory in MiB)."""
        child = subprocess.Popen([self.binaries / "meshwork", *arguments], cwd=self.path,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        error = child.stderr.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{self.binaries}: meshwork {' '.join(arguments)}: exit {child.returncode}\n{error}")
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024

    def measure(self):
        seconds, mebibytes = self._run("compile", "model.mlir", "--spec", "spec.toml", "-o", "plan.mwplan")
        return {"compile_s": seconds, "compiler_mib": mebibytes, "plan_bytes": (self.path / "plan.mwplan").stat().st_size}

    def estimate(self):
        return self._run("compile", "model.mlir", "--spec", "spec.toml", "--estimate")[0]


def in_turns(sides, rounds, measure):
    """What `measure` gives of each side, in lists."""
    found = [[], []]
    for one in range(rounds):
        for side in (0, 1) if one % 2 == 0 else (1, 0):
            found[side].append(measure(sides[side]))
    return found


def step_rows(binaries, rounds, threads):
    for model in cases.MODELS:
        for precision in cases.PRECISIONS:
            sides = [Ours(folder, model, precision, threads) for folder in binaries]
            for side in sides:
                side.compile_seconds(tries=1)
            found = in_turns(sides, rounds, lambda side: [x["step_ms"] for x in side.steps(3)])
            yield {"what": f"step of {model}, {precision}", "unit": "ms", "of": "medians", "all": found,
                   **ratio(*[statistics.median(sum(one, [])) for one in found])}
            for side in sides:
                side.close()


def compile_rows(binaries, rounds):
    for name, (config, spec) in COMPILED.items():
        found = in_turns([Compiled(folder, config, spec) for folder in binaries], rounds, Compiled.measure)
        for what, unit in (("compile_s", "s of the processor"), ("compiler_mib", "MiB at most"), ("plan_bytes", "bytes of the plan")):
            numbers = [[x[what] for x in one] for one in found]
            yield {"what": name, "unit": unit, "of": "least", "all": numbers, **ratio(*map(min, numbers))}


def estimate_rows(binaries, rounds):
    for name, (config, spec) in ESTIMATED.items():
        found = in_turns([Compiled(folder, config, spec) for folder in binaries], rounds, Compiled.estimate)
        yield {"what": f"estimate of {name}", "unit": "s of the processor", "of": "least", "all": found,
               **ratio(*map(min, found))}


def ratio(before, after):
    return {"before": before, "after": after, "ratio": after / before}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=cases.path)
    parser.add_argument("after", type=cases.path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", choices=["steps", "compile", "estimate"])
    parser.add_argument("--json", type=cases.path)
    options = parser.parse_args()
    binaries, rows = [options.before, options.after], []
    kinds = {"steps": lambda: step_rows(binaries, options.rounds, options.threads),
             "compile": lambda: compile_rows(binaries, options.rounds),
             "estimate": lambda: estimate_rows(binaries, options.rounds)}
    for kind in [options.only] if options.only else kinds:
        for row in kinds[kind]():
            print(f"{row['what']:32} {row['before']:14.2f} {row['after']:14.2f} {row['unit']:20} ratio {row['ratio']:.3f}", flush=True)
            rows.append(row)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
