#!/usr/bin/env python3
"""Plans that others found best, beside the best that `meshwork tune` finds for the same machine.

    test/Benchmarks/tuned.py [--runs ../shared/data/runs.json] [--table nanotron]

Each published plan is estimated, and the search looks among the plans that its software could run. Keys that the
published plan gives are fixed, such as ZeRO and recompute. The mesh, the microbatch, the schedule and sequence
parallelism are searched, the last two as far as some run of the table has them. Both have the machine with what that
software adds, and what is found leaves room for what it keeps (others.py). A ratio of 1.03 says: the published plan is
3 % slower than what the search would have run, by our estimate. Below 1 it is a plan that the search leaves out, or one
with another number of virtual stages.
"""
import argparse
import collections
import json
import math
import pathlib
import sys
import tempfile

import cases
import others
import published
import searches

# Tables whose authors looked for the best plan, or whose rules for it they publish.
TABLES = ("sc21-t1", "korthikanti", "nanotron")
CLOSE = 1.03
SCHEDULES = ("1f1b", "interleaved-1f1b")

Case = collections.namedtuple("Case", "run fixed schedules")
Found = collections.namedtuple("Found", "milliseconds name")


def cases_of(runs):
    """The best run of each model and number of ranks, and what its software could do."""
    tables = collections.defaultdict(list)
    for run in runs:
        tables[published.table_of(run)].append(run)
    for rows in tables.values():
        best = {}
        for run in rows:
            key = (json.dumps(run["model"]), ranks_of(run), run["batch"]["global"])
            if key not in best or run["step_seconds"] < best[key]["step_seconds"]:
                best[key] = run
        for run in best.values():
            yield Case(run, fixed_of(run, rows), [one for one in SCHEDULES if uses(rows, "pipeline.schedule", one)] or ["1f1b"])


def uses(rows, key, value):
    return any(row["spec"].get(key) == value for row in rows)


def fixed_of(run, rows):
    """TOML values: the run's own, but for what the search chooses."""
    chosen = ("pipeline.schedule", "pipeline.virtual_stages", "shard.residual_sequence")
    fixed = {key: json.dumps(value) for key, value in run["spec"].items() if key not in chosen}
    fixed.setdefault("zero.stage", "0")
    fixed.setdefault("offload.optimizer", "false")
    if not any("shard.residual_sequence" in row["spec"] for row in rows):
        fixed["shard.residual_sequence"] = "[]"
    return fixed


def ranks_of(run):
    return math.prod(int(axis.split("=")[1]) for axis in run["axes"])


class Search:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)

    def tune(self, case, machine, schedule):
        """The best with this schedule, or without a pipeline."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            model, file = (pathlib.Path(folder) / name for name in ("config.json", "machine.toml"))
            model.write_text(json.dumps(case.run["model"]))
            file.write_text(others.toml(machine))
            fixed = case.fixed | {"pipeline.schedule": json.dumps(schedule)}
            words = [*searches.axes({"fsdp": 1, "cp": 1, "ep": 1}), *searches.fixed(fixed)]
            found = searches.best_of(self.options.bin, model, ranks_of(case.run), file, case.run["batch"], words)
        return [Found(best["step_ms"], best["name"]) for best in (found["best"][:1] if found else [])]

    def best(self, case, machine):
        found = [one for schedule in case.schedules for one in self.tune(case, machine, schedule)]
        return min(found) if found else None


def tell(case, estimated, best):
    if best is None:
        print(f"  {case.run['id']:<28} nothing fits", flush=True)
        return
    print(f"  {case.run['id']:<28} {estimated / best.milliseconds:6.3f}  {estimated:9.0f}  {best.milliseconds:9.0f}  {best.name}",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cases.add_bin(parser)
    parser.add_argument("--runs", type=cases.path, default=published.RUNS, help="JSON, as published.py reads it")
    parser.add_argument("--table", action="append", help=f"of these alone; else {', '.join(TABLES)}")
    options = parser.parse_args()
    wanted = options.table or TABLES
    runs = [run for run in json.loads(options.runs.read_text())["runs"] if published.table_of(run) in wanted]
    if not runs:
        sys.exit(f"{options.runs} has no table of {', '.join(wanted)}")
    print(f"  {'published':<28} ratio  published       best  milliseconds, and what was found")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        search, estimates = Search(options, folder), published.Estimates(options.bin, folder)
        for case in cases_of(runs):
            machine = published.with_profile(case.run, others.PROFILES)
            estimated = estimates.estimate(case.run, machine)[0]
            best = search.best(case, others.with_room(machine, case.run["machine"]))
            tell(case, estimated, best)
            ratios += [estimated / best.milliseconds] if best else []
    print(f"  {sum(ratio <= CLOSE for ratio in ratios)} of {len(ratios)} are within {CLOSE - 1:.0%} of the best")


if __name__ == "__main__":
    main()
