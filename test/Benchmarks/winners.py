#!/usr/bin/env python3
"""The plan that `meshwork tune` finds best for four ranks here, beside all others as they are measured.

    test/Benchmarks/winners.py [--model llama-tiny] [--rounds 5]

Measures this machine, and has the search look for the best plan over each mesh of dp, tp, pp and cp, and over all of
them. Each of these plans is compiled and run, in turns: a round runs each of them once. A plan's step is the median of
its rounds, each the median of its steps. The winner should take at most 1.1 of the fastest.
"""
import argparse
import itertools
import json
import pathlib
import re
import statistics
import subprocess
import tempfile

import cases
import searches

RANKS, BATCH, GOAL = 4, {"global": 16, "sequence": 128}, 1.1
MODELS = ("llama-tiny", "gpt2-tiny", "quickstart-llama")
AXES = ("dp", "tp", "pp", "cp")


def meshes():
    """Sizes of all axes, whose product are the ranks."""
    sizes = [size for size in range(1, RANKS + 1) if RANKS % size == 0]
    for mesh in itertools.product(sizes, repeat=len(AXES)):
        if mesh[0] * mesh[1] * mesh[2] * mesh[3] == RANKS:
            yield dict(zip(AXES, mesh))


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.machine = self.folder / "machine.toml"
        (self.folder / "text").write_bytes((cases.ROOT / "LICENSE").read_bytes() * 20)

    def run(self, tool, *arguments):
        done = subprocess.run([str(one) for one in (self.options.bin / tool, *arguments)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{tool} {' '.join(map(str, arguments))}: {done.stderr[-800:]}")
        return done.stdout

    def measure_machine(self):
        """All ranks share its cores: they are one node."""
        self.run("meshwork-run", "--measure-machine", self.machine)
        text, changed = re.subn(r"(?m)^ranks_per_node = \d+", f"ranks_per_node = {RANKS}", self.machine.read_text())
        assert changed == 1, text
        self.machine.write_text(text)

    def tune(self, model, mesh):
        """The best for a mesh, or for all: name, milliseconds by estimate, and a plan. None where no plan may be so."""
        spec, plan = self.folder / "best.toml", self.folder / f"{len(list(self.folder.iterdir()))}.mwplan"
        spec.unlink(missing_ok=True)
        file = cases.ROOT / "examples" / f"{model}.json"
        found = searches.best_of(self.options.bin, file, RANKS, self.machine, BATCH,
                                 [*searches.axes({"ep": 1, **mesh}), "-o", spec])
        if found is None:
            return None
        self.run("meshwork", "compile", file, "--spec", spec, "-o", plan)
        return found["best"][0]["name"], found["best"][0]["step_ms"], plan

    def measure(self, plan):
        """Milliseconds of a step; the first warms caches."""
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        self.run("meshwork-run", plan, "--data", self.folder / "text", "--tokenizer", "bytes", "--steps", self.options.steps + 1,
                 "--metrics", metrics)
        return statistics.median(json.loads(line)["step_ms"] for line in metrics.read_text().splitlines()[1:])

    def rounds(self, plans):
        """Of each plan its rounds; every other round goes backwards, as machines change their speed."""
        steps = {name: [] for name in plans}
        for number in range(self.options.rounds):
            for name in list(plans)[:: 1 if number % 2 == 0 else -1]:
                steps[name].append(self.measure(plans[name]))
        return {name: statistics.median(all_rounds) for name, all_rounds in steps.items()}


def compare(bench, model):
    """Prints all plans by their measured steps; the winner's over the least."""
    winner = bench.tune(model, {})
    found = {name: (ms, plan) for name, ms, plan in filter(None, [winner, *(bench.tune(model, mesh) for mesh in meshes())])}
    measured = bench.rounds({name: plan for name, (_, plan) in found.items()})
    ratio = measured[winner[0]] / min(measured.values())
    print(f"{model}: the winner takes {ratio:.2f} of the fastest (asked: {GOAL})")
    for name, ms in sorted(measured.items(), key=lambda one: one[1]):
        print(f"  measured {ms:8.1f} ms, estimated {found[name][0]:8.1f} ms  {'*' if name == winner[0] else ' '} {name}", flush=True)
    return {"ratio": ratio, "plans": [{"name": name, "measured_ms": ms, "estimated_ms": found[name][0]} for name, ms in measured.items()]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cases.add_bin(parser)
    parser.add_argument("--model", action="append", help=f"of examples/; else {', '.join(MODELS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5, help="steps of a run that count")
    parser.add_argument("--output", type=cases.path, help="a file for the figures as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        bench.measure_machine()
        results = {model: compare(bench, model) for model in options.model or MODELS}
    if options.output:
        options.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
