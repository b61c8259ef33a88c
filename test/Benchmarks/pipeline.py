#!/usr/bin/env python3
"""A pipeline's step against the simulation of its schedule, and against one rank.

    test/Benchmarks/pipeline.py [--model llama-30m.json] [--schedule 1f1b] [--microbatches 8] [--steps 6]

Two stages with a thread each, and one rank with two threads, in turns. What each stage's forward and
backward take is read from the trace and given to `meshwork schedule`; step and update are added. The
goals: a step within 5 % of the simulation, and at most 1.15 * (1 + bubble) of one rank's.
"""
import argparse
import collections
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
MICRO, SEQUENCE, STAGES = 2, 128, 2
ACTION = re.compile(r"(\d+)([FBIW])(\d+)$")


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        (self.folder / "text").write_bytes((ROOT / "LICENSE").read_bytes() * 20)

    def run(self, tool, *arguments):
        command = [str(a) for a in (self.options.bin / tool, *arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr[-800:]}")
        return done.stdout

    def compile(self, name, axes, pipeline=""):
        spec, plan = self.folder / f"{name}.toml", self.folder / f"{name}.mwplan"
        spec.write_text(f'[mesh]\naxes = ["{axes}"]\n[batch]\nglobal = {MICRO * self.options.microbatches}\n'
                        f'micro = {MICRO}\nsequence = {SEQUENCE}\n[precision]\ncompute = "f32"\n{pipeline}')
        self.run("meshwork", "compile", ROOT / "examples" / self.options.model, "--spec", spec, "-o", plan)
        return plan

    def train(self, plan, threads, *more):
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        self.run("meshwork-run", plan, "--data", self.folder / "text", "--tokenizer", "bytes", "--steps",
                 self.options.steps, "--threads", threads, "--metrics", metrics, *more)
        return [json.loads(line)["step_ms"] for line in metrics.read_text().splitlines()][1:]

    def measured(self, plan):
        """Steps in ms; (stage, letter) -> median ms of an action; the longest rank's step and update."""
        trace = self.folder / "trace.json"
        trace.unlink(missing_ok=True)
        steps = self.train(plan, 1, "--trace", trace)
        spans = {}
        for event in json.loads(trace.read_text())["traceEvents"]:
            action = event.get("args", {}).get("action")
            if event["ph"] == "X" and event["tid"] == 0 and event["args"]["step"] > 0:
                key = event["pid"], event["args"]["step"], action
                begin, end = event["ts"], event["ts"] + event["dur"]
                known = spans.get(key, (begin, end))
                spans[key] = min(known[0], begin), max(known[1], end)
        actions, around = collections.defaultdict(list), collections.defaultdict(float)
        for (rank, step, action), (begin, end) in spans.items():
            match = ACTION.match(action)
            if match:
                actions[int(match[1]), match[2]].append((end - begin) / 1e3)
            else:
                around[rank, step] += (end - begin) / 1e3
        return steps, {key: statistics.median(times) for key, times in actions.items()}, statistics.median(around.values())

    def simulated(self, actions):
        forward = [actions[s, "F"] for s in range(STAGES)]
        both = [actions[s, "B"] / 2 if (s, "B") in actions else 0 for s in range(STAGES)]
        inputs = [actions.get((s, "I"), both[s]) for s in range(STAGES)]
        weights = [actions.get((s, "W"), both[s]) for s in range(STAGES)]
        costs = self.folder / "costs.toml"
        costs.write_text(f"forward = {forward}\ninput_grad = {inputs}\nweight_grad = {weights}\n")
        return json.loads(self.run("meshwork", "schedule", self.options.schedule, "--stages", STAGES, "--microbatches",
                                   self.options.microbatches, "--costs", costs, "--json"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="llama-30m.json")
    parser.add_argument("--schedule", default="1f1b")
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--turns", type=int, default=3)
    cases.add_bin(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="meshwork-") as folder:
        bench = Bench(options, folder)
        stages = bench.compile("stages", f"pp={STAGES}", f'[pipeline]\nschedule = "{options.schedule}"\n')
        one = bench.compile("one", "dp=1")
        for turn in range(options.turns):
            alone = min(bench.train(one, STAGES))
            steps, actions, around = bench.measured(stages)
            said = bench.simulated(actions)
            expected = said["makespan"] + around
            print(f"turn {turn}: step {min(steps):.1f} ms, simulated {expected:.1f} ms, ratio {min(steps) / expected:.3f}; "
                  f"one rank {alone:.1f} ms, ratio {min(steps) / alone:.3f}, "
                  f"goal {1.15 * (1 + said['bubble_fraction']):.3f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
