#!/usr/bin/env python3
"""Estimated time of a step against measured time, by kind of work.

    test/Benchmarks/estimate.py [--model llama-30m.json] [--steps 4] [--rounds 2]

In each round it measures this machine, compiles for it, and runs what it has compiled: one
rank on all cores, two ranks as threads, two under mpirun. Rounds are compared by their
fastest estimate and their fastest step, since other work only makes a machine slower.
Prints a line per kind of work and per run, and writes everything as JSON. The goal is 15 %
of the step.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
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
        (self.folder / "text").write_bytes((ROOT / "LICENSE").read_bytes() * 20)
        self.machine = self.folder / "machine.toml"

    def measure_machine(self, processes):
        print(self.run("meshwork-run", "--measure-machine", self.machine, processes=processes), end="", flush=True)

    def run(self, tool, *arguments, processes=0):
        start = ["mpirun", "-n", processes, "--oversubscribe"] if processes else []
        command = [*start, self.options.bin / tool, *arguments]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env={**os.environ, **MPI})
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr[-800:]}")
        return done.stdout

    def compile(self, ranks, compute):
        plan = self.folder / "plan.mwplan"
        (self.folder / "spec.toml").write_text(
            f'[mesh]\naxes = ["dp={ranks}"]\n[batch]\nglobal = {BATCH}\nmicro = {BATCH // ranks}\n'
            f'sequence = {SEQUENCE}\n[precision]\ncompute = "{compute}"\n[target]\nmachine = "{self.machine}"\n')
        self.run("meshwork", "compile", ROOT / "examples" / self.options.model, "--spec", self.folder / "spec.toml",
                 "-o", plan)
        return plan

    def measured(self, plan, processes):
        """Milliseconds of a step, and of each kind of work in it."""
        metrics, profile = self.folder / "metrics.jsonl", self.folder / "profile.json"
        metrics.unlink(missing_ok=True)
        self.run("meshwork-run", plan, "--data", self.folder / "text", "--tokenizer", "bytes", "--steps",
                 self.options.steps + 1, "--metrics", metrics, "--profile-json", profile, processes=processes)
        steps = [json.loads(line)["step_ms"] for line in metrics.read_text().splitlines()][1:]
        kinds = {}
        for row in json.loads(profile.read_text())["instructions"]:
            kind = re.sub(r"(?<!^)([A-Z])", r"_\1", row["operation"].split()[0]).lower()
            kinds[kind] = kinds.get(kind, 0) + row["ms_per_step"]
        return min(steps), kinds

    def compare(self, ranks, processes, compute):
        """One round of one run."""
        self.measure_machine(processes)
        plan = self.compile(ranks, compute)
        told = json.loads(self.run("meshwork", "explain", plan, "--json"))["estimate"]
        step = told["processes_step_ms" if processes else "step_ms"]
        measured, kinds = self.measured(plan, processes)
        estimates = {}
        for row in told["operations"]:
            moves = row["operation"] in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute")
            kind = "collective" if moves else row["operation"]
            estimates[kind] = estimates.get(kind, 0) + row["ms"]
        print(f"  {compute}, {self.name_of(ranks, processes)}: estimated {step:.0f} ms, measured {measured:.0f} ms",
              flush=True)
        return {"estimated_ms": step, "measured_ms": measured, "estimated": estimates, "measured": kinds,
                "machine": self.machine.read_text()}

    @staticmethod
    def name_of(ranks, processes):
        return f"{ranks} ranks under mpirun" if processes else f"{ranks} rank{'s' * (ranks > 1)} in one process"


def tell(name, rounds):
    step, measured = (min(one[key] for one in rounds) for key in ("estimated_ms", "measured_ms"))
    print(f"{name}: estimated {step:.0f} ms, measured {measured:.0f} ms: {step / measured - 1:+.0%}")
    fastest = min(rounds, key=lambda one: one["measured_ms"])
    estimates = min(rounds, key=lambda one: one["estimated_ms"])["estimated"]
    for kind, ms in sorted(fastest["measured"].items(), key=lambda item: -item[1])[:5]:
        print(f"  {kind:<16} estimated {estimates.get(kind, 0):8.1f} ms, measured {ms:8.1f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cases.add_bin(parser)
    parser.add_argument("--model", default="llama-30m.json", help="a file of examples/")
    parser.add_argument("--steps", type=int, default=4, help="steps of a run")
    parser.add_argument("--rounds", type=int, default=2, help="how often everything is measured")
    parser.add_argument("--output", help="default: results/estimate-DATE.json here")
    options = parser.parse_args()
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H%M")
    results = {"date": date, "model": options.model}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        runs = [(c, *how) for c in ("f32", "bf16") for how in ((1, 0), (2, 0), (2, 2))]
        rounds = {f"{compute}, {bench.name_of(ranks, processes)}": [] for compute, ranks, processes in runs}
        for _ in range(options.rounds):
            for compute, ranks, processes in runs:
                rounds[f"{compute}, {bench.name_of(ranks, processes)}"].append(
                    bench.compare(ranks, processes, compute))
        for name, all_rounds in rounds.items():
            tell(name, all_rounds)
        results["runs"] = rounds
    output = pathlib.Path(options.output or pathlib.Path(__file__).parent / "results" / f"estimate-{date}.json")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=1) + "\n")
    print(f"written to {output}")


if __name__ == "__main__":
    sys.exit(main())
