#!/usr/bin/env python3
"""Ranks against threads, and how much communication is hidden.

    test/Benchmarks/parallel.py [--cores 2] [--rounds 3] [--steps 4]

1. The same step (one global batch) on one rank with all cores and on as many
   data-parallel ranks of one core: the ratio of the medians.
2. The same plan with collectives beside the computation (overlap.collectives = "always"),
   in its way ("never"), and where they should gain time ("auto", which must not lose), in one
   process and under mpirun: the share of the time that a rank is held up by communication
   which is gone.
3. ZeRO-3 with weights that travel as they are, in FP8 and in int8: a step.

Plans take turns. Prints a line per figure and writes everything as JSON.
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEQUENCE, BATCH = 512, 4
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.model = ROOT / "examples" / options.model
        (self.folder / "text").write_bytes((ROOT / "LICENSE").read_bytes() * 20)

    def compile(self, name, ranks, *settings):
        """`settings` are key=value pairs of the spec."""
        plan = self.folder / f"{name}.mwplan"
        (self.folder / "spec.toml").write_text(
            f'[mesh]\naxes = ["dp={ranks}"]\n[batch]\nglobal = {BATCH}\nmicro = {BATCH // ranks}\n'
            f'sequence = {SEQUENCE}\n')
        self.must(self.options.bin / "meshwork", "compile", self.model, "--spec", self.folder / "spec.toml",
                  "-o", plan, *(word for setting in settings for word in ("--set", setting)))
        return plan

    def must(self, *command, environment={}):
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True,
                              env={**os.environ, **MPI, **environment})
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]}: {done.stderr[-800:]}")
        return done.stdout

    def steps(self, plan, processes=None, options=(), environment={}):
        """Metrics of the steps after the first."""
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)  # a log grows
        start = ["mpirun", "-n", processes, "--oversubscribe"] if processes else []
        self.must(*start, self.options.bin / "meshwork-run", plan, "--data", self.folder / "text",
                  "--tokenizer", "bytes", "--steps", self.options.steps + 1, "--metrics", metrics, *options,
                  environment=environment)
        return [json.loads(line) for line in metrics.read_text().splitlines()][1:]

    def in_turns(self, runs):
        """name -> metrics of all its steps; runs is name -> what `steps` takes."""
        found = {name: [] for name in runs}
        for _ in range(self.options.rounds):
            for name, run in runs.items():
                found[name] += self.steps(*run)
        return found


def median(metrics, key):
    return statistics.median(m[key] for m in metrics)


def ranks_against_threads(bench):
    cores = bench.options.cores
    runs = bench.in_turns({"one rank": (bench.compile("one", 1), None),
                           "ranks": (bench.compile("ranks", cores), None)})
    one, many = (median(runs[name], "step_ms") for name in ("one rank", "ranks"))
    print(f"{cores} ranks of one core {many:.0f} ms a step, one rank on {cores} cores {one:.0f} ms: "
          f"{many / one:.3f} times the time (goal 1.05)", flush=True)
    return {"one_rank_ms": one, "ranks_ms": many, "ratio": many / one, "steps": runs}


def hidden(bench, stage, processes):
    plans = {mode: bench.compile(f"{mode}{stage}", bench.options.cores, f"zero.stage={stage}",
                                 f'overlap.collectives="{mode}"')
             for mode in ("never", "auto", "always")}
    runs = bench.in_turns({mode: (plan, processes) for mode, plan in plans.items()})
    held = {mode: median(found, "comm_ms") + median(found, "idle_ms") for mode, found in runs.items()}
    step = {mode: median(found, "step_ms") for mode, found in runs.items()}
    share = 1 - held["always"] / held["never"]
    where = "mpirun" if processes else "one process"
    print(f"ZeRO-{stage}, {where}: held up by communication {held['never']:.1f} ms a step, with overlap "
          f"{held['always']:.1f}: {share:.0%} hidden; step {step['never']:.0f} and {step['always']:.0f} ms, "
          f"auto {step['auto']:.0f} ms", flush=True)
    return {"held_ms": held, "step_ms": step, "hidden": share, "steps": runs}


def narrow_weights(bench):
    """What rounding costs where a link is memory: nothing is gained there."""
    runs = bench.in_turns({kind: (bench.compile(kind, bench.options.cores, "zero.stage=3", f'zero.weights="{kind}"'),)
                           for kind in ("compute", "fp8", "int8")})
    step = {kind: median(found, "step_ms") for kind, found in runs.items()}
    print("ZeRO-3, weights travel in bf16, FP8 and int8: step " + ", ".join(f"{ms:.0f}" for ms in step.values()) +
          " ms", flush=True)
    return {"step_ms": step, "steps": runs}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cases.add_bin(parser)
    parser.add_argument("--model", default="llama-30m.json", help="a file of examples/")
    parser.add_argument("--cores", type=int, default=min(2, len(os.sched_getaffinity(0))))
    parser.add_argument("--rounds", type=int, default=3, help="turns of each plan")
    parser.add_argument("--steps", type=int, default=4, help="steps a turn")
    parser.add_argument("--output", help="default: results/parallel-DATE.json here")
    options = parser.parse_args()
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H%M")
    results = {"date": date, "cores": options.cores, "model": options.model}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        results["ranks against threads"] = ranks_against_threads(bench)
        for stage in (0, 1, 3):
            for processes in (None, options.cores):
                name = f"zero-{stage} {'mpirun' if processes else 'threads'}"
                results[name] = hidden(bench, stage, processes)
        results["weights in 8 bits"] = narrow_weights(bench)
    output = pathlib.Path(options.output or pathlib.Path(__file__).parent / "results" / f"parallel-{date}.json")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=1) + "\n")
    print(f"written to {output}")


if __name__ == "__main__":
    sys.exit(main())
