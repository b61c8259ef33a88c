#!/usr/bin/env python3
"""Estimates of training steps against steps that others have published.

    test/Benchmarks/published.py [--runs ../shared/data/runs.json] [--table NAME] [--leave-one-out]

Of each run it writes the model and the spec, asks `meshwork compile --estimate`, and divides
by the measured step. It prints for each table the mean error, the bias, Kendall's tau of the
order of TFLOP/s a GPU, and the ratios; once for the machines as their files say (others.py),
once with what other software adds to our plans. A run that does not fit the memory of its GPU
as it is told is estimated with recompute.policy = "auto": it must have fitted.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import cases
import others

RUNS = cases.ROOT.parent / "shared" / "data" / "runs.json"


def spec_of(run, machine):
    """The spec of a run, TOML; `machine` is a file."""
    tables = {"mesh": {"axes": run["axes"]}, "batch": run["batch"],
              "target": {"device": "cuda", "machine": str(machine)}}
    for key, value in run["spec"].items():
        section, name = key.split(".")
        tables.setdefault(section, {})[name] = value
    return others.toml(tables) + "\n"


class Estimates:
    """Asks for each pair of run and machine once."""

    def __init__(self, tools, folder):
        self.tools, self.folder, self.known = tools, pathlib.Path(folder), {}

    def ask(self, model, spec, *options):
        command = [str(self.tools / "meshwork"), "compile", str(model), "--spec", str(spec), "--estimate", "--json",
                   *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr[-800:]}")
        return json.loads(done.stdout)

    def estimate(self, run, machine):
        """Milliseconds of a step, and flops a second of a GPU in it, as the model has them."""
        text = others.toml(machine)
        key = (run["id"], text)
        if key not in self.known:
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                files = [pathlib.Path(folder) / name for name in ("config.json", "spec.toml", "machine.toml")]
                for file, content in zip(files, (json.dumps(run["model"]), spec_of(run, files[2]), text)):
                    file.write_text(content)
                told = self.ask(*files[:2])
                if told["memory_per_rank_bytes"]["peak"] > machine["memory"]["capacity"]:
                    told = self.ask(*files[:2], "--set", "recompute.policy=auto")
            peak = machine.get("peak", machine["flops"])["bf16"]
            self.known[key] = (told["estimate"]["step_ms"], told["estimate"]["mfu"] * peak)
        return self.known[key]

    def all(self, runs, machine_of):
        """Estimates of runs, as many at a time as there are cores."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda run: self.estimate(run, machine_of(run)), runs))


def table_of(run):
    return run["id"].split("/")[0]


def tau(first, second):
    """Kendall's: pairs in the same order less pairs in the other one, of all."""
    pairs = list(itertools.combinations(zip(first, second), 2))
    sign = [(a - c) * (b - d) for (a, b), (c, d) in pairs]
    return (sum(s > 0 for s in sign) - sum(s < 0 for s in sign)) / len(pairs) if pairs else 1.0


def scored(runs, told):
    """By table: ratios of estimated to measured steps, their mean error and bias, and tau."""
    tables = {}
    for run, (milliseconds, rate) in zip(runs, told):
        tables.setdefault(table_of(run), []).append((milliseconds * 1e-3 / run["step_seconds"], rate))
    result = {}
    for name, rows in tables.items():
        ratios = [ratio for ratio, _ in rows]
        result[name] = {"ratios": ratios, "error": statistics.mean(abs(ratio - 1) for ratio in ratios),
                        "bias": statistics.mean(ratios) - 1,
                        "tau": tau([rate for _, rate in rows], [rate * ratio for ratio, rate in rows])}
    return result


def whole(tables):
    """Mean error, bias and mean tau over all tables."""
    ratios = [ratio for table in tables.values() for ratio in table["ratios"]]
    return {"error": statistics.mean(abs(ratio - 1) for ratio in ratios), "bias": statistics.mean(ratios) - 1,
            "tau": statistics.mean(table["tau"] for table in tables.values())}


def tell(title, tables):
    print(f"{title}\n  {'table':<20} runs   error    bias   tau  estimated / measured")
    for name, one in tables.items():
        ratios = " ".join(f"{ratio:.2f}" for ratio in one["ratios"])
        print(f"  {name:<20} {len(one['ratios']):4} {one['error']:7.1%} {one['bias']:+7.1%} {one['tau']:5.2f}  {ratios}")
    one = whole(tables)
    print(f"  all: error {one['error']:.1%}, bias {one['bias']:+.1%}, mean tau {one['tau']:.2f}", flush=True)


def with_profile(run, profiles):
    return others.machine_of(run["machine"], profiles[others.profile_of(run["machine"])])


def best(errors, without):
    """The setting with the least error over all tables but one."""
    def error(setting):
        kept = [abs(ratio - 1) for name, table in errors[setting].items() if name != without
                for ratio in table["ratios"]]
        return statistics.mean(kept) if kept else 0
    return min(errors, key=error)


def leave_one_out(runs, estimates):
    """Of each profile the best host, by all tables and by all but one of them: how far that moves the errors of the
    others."""
    for name, profile in others.PROFILES.items():
        own = [run for run in runs if others.profile_of(run["machine"]) == name]
        errors = {host: scored(own, estimates.all(own, lambda run, host=host: others.machine_of(
            run["machine"], profile | {"host": host}))) for host in others.HOSTS}
        chosen = best(errors, None)
        print(f"{name}: host {chosen * 1e6:.0f} us is best")
        for table in errors[chosen]:
            other = best(errors, table)
            moved = max((abs(errors[other][one]["error"] - errors[chosen][one]["error"])
                         for one in errors[chosen] if one != table), default=0)
            print(f"  without {table}: {other * 1e6:.0f} us, which moves other tables by up to {moved:.1%}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cases.add_bin(parser)
    parser.add_argument("--runs", type=cases.path, default=RUNS, help="JSON: `runs`, each with `id` (table/run), "
                        "`model`, `axes`, `batch`, `spec`, `machine` and `step_seconds`")
    parser.add_argument("--table", help="of these alone")
    parser.add_argument("--leave-one-out", action="store_true", help="choose the hosts' times again, without each "
                        "table; takes half an hour")
    parser.add_argument("--output", type=cases.path, help="a file for the figures as JSON")
    options = parser.parse_args()
    runs = [run for run in json.loads(options.runs.read_text())["runs"] if options.table in (None, table_of(run))]
    if not runs:
        sys.exit(f"{options.runs} has no table {options.table}")
    with tempfile.TemporaryDirectory() as folder:
        estimates = Estimates(options.bin, folder)
        results = {"as told": scored(runs, estimates.all(runs, lambda run: others.machine_of(run["machine"])))}
        tell("Machines as their files say", results["as told"])
        results["with profiles"] = scored(runs, estimates.all(runs, lambda run: with_profile(run, others.PROFILES)))
        tell("With what other software adds", results["with profiles"])
        if options.leave_one_out:
            leave_one_out(runs, estimates)
    if options.output:
        options.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
