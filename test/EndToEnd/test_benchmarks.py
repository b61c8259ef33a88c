"""What benchmarks reckon with, without running them. Their modules are imported by a process of its own:
others of the tests have modules of the same names."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import shell

FOLDER = shell.ROOT / "test" / "Benchmarks"

FLOORS = """
import floors
MACHINE = "[flops]\\nf32 = 4e12\\nbf16 = 5e12\\n[memory]\\nbandwidth = 3e9\\nkernels = 6e9\\n"
ours, theirs = floors.rates(MACHINE), {"f32": 2500.0, "bf16": 9000.0, "copy": 7.0}
assert ours == {"f32": 4000.0, "bf16": 5000.0, "copy": 6.0}, ours
peak = floors.best([theirs, ours])
assert peak == {"f32": 4000.0, "bf16": 9000.0, "copy": 7.0}, peak
row = {"name": "h.1.c", "operation": "MatMul", "flops": 4e12, "bytes": 0, "ms_per_step": 1000, "calls_per_step": 1}
table = floors.table([row], peak["f32"], peak["f32"], peak["copy"])
assert table[0]["ratio"] == 1, table
"""
EXHAUSTIVE = """
import exhaustive
for name, told in exhaustive.SPACES.items():
    space = exhaustive.Space(*told)
    specs = list(space.specs())
    assert 70 <= len(set(specs)) == len(specs) <= 300, (name, len(specs))
    assert all(space.fixed.items() <= space.settings(spec).items() for spec in specs), name
assert exhaustive.limit_of(exhaustive.Space(*exhaustive.SPACES["experts"])) == 12e9
"""
RELATIVE = """
import argparse, os, pathlib, sys
import cases
os.chdir(sys.argv[1])
parser = argparse.ArgumentParser()
cases.add_bin(parser)
found = parser.parse_args(["--bin", "here"]).bin
assert found == pathlib.Path(sys.argv[1]).resolve() / "here", found
"""
BUILDS = """
import pathlib, sys
import builds
assert builds.ratio(4, 3) == {"before": 4, "after": 3, "ratio": 0.75}
order = []
found = builds.in_turns(["before", "after"], 3, lambda side: order.append(side) or len(order))
assert order == ["before", "after", "after", "before", "before", "after"], order
assert found == [[1, 4, 5], [2, 3, 6]], found
assert builds.llama("405b") == builds.LLAMA_405B
one = builds.Compiled(pathlib.Path(sys.argv[1]), builds.GPT2_XL | {"n_layer": 1}, builds.COMPILED["gpt2-1.5b, cuda"][1])
assert one.estimate() > 0
"""
PUBLISHED = """
import others, published
assert published.tau([1, 2, 3], [1, 3, 2]) == 1 / 3
assert published.tau([3, 2, 1], [1, 2, 3]) == -1
runs = [{"id": f"t/{i}", "step_seconds": seconds} for i, seconds in enumerate((1, 2, 4))]
table = published.scored(runs, [(1100, 0.5), (1800, 0.4), (4000, 0.3)])["t"]
assert [round(ratio, 9) for ratio in table["ratios"]] == [1.1, 0.9, 1], table
assert round(table["error"], 9) == round(0.2 / 3, 9) and round(table["bias"], 9) == 0, table
assert table["tau"] == 1, table # measured: 0.55, 0.36, 0.3
assert round(published.whole({"a": table, "b": dict(table, tau=0)})["tau"], 9) == 0.5
names = [others.profile_of(text) for text in ("A100; attention not fused", "H100; FlashAttention-2, eager",
                                              "H100; FlashAttention-2, compiled", "H100; cuDNN attention")]
assert names == [*others.PROFILES, "compiled"], names
plain, half = others.machine_of("H100"), others.machine_of("H100 of 500 W")
assert abs((half["flops"]["bf16"] / plain["flops"]["bf16"]) ** 3 - 5 / 7) < 1e-12
assert others.machine_of("A100, 4 adapters")["node"]["adapters"] == 4
slow = others.machine_of("H100", {"traffic": 2, "host": 1e-5})
assert slow["memory"]["kernels"] * 2 == plain["memory"]["kernels"] and slow["host"] == {"instruction": 1e-5}
"""

TUNED = """
import tuned
run = {"id": "a/1", "model": {"n_layer": 4}, "axes": ["pp=2", "dp=4"], "batch": {"global": 8}, "machine": "H100", "step_seconds": 2,
       "spec": {"zero.stage": 1, "recompute.policy": "full", "pipeline.schedule": "1f1b"}}
slower = dict(run, id="a/2", step_seconds=3, spec={"pipeline.schedule": "interleaved-1f1b", "pipeline.virtual_stages": 2})
other = dict(run, id="b/1", spec={"shard.residual_sequence": ["tp"]})
first, second = tuned.cases_of([slower, run, other])
assert (first.run, second.run) == (run, other)
assert first.schedules == ["1f1b", "interleaved-1f1b"] and second.schedules == ["1f1b"]
assert first.fixed == {"zero.stage": "1", "recompute.policy": '"full"', "offload.optimizer": "false",
                       "shard.residual_sequence": "[]"}, first.fixed
assert second.fixed == {"zero.stage": "0", "offload.optimizer": "false"}, second.fixed
assert tuned.ranks_of(run) == 8
"""
NOTHING = """
import pathlib, sys
import searches
model, words = sys.argv[2], [*searches.axes({"dp": 2}), *searches.fixed({"recompute.policy": "none", "expect.memory_per_rank": "1 MiB"})]
batch = {"global": 2, "sequence": 64}
assert searches.best_of(pathlib.Path(sys.argv[1]), model, 2, "h100x8", batch, words) is None
assert searches.best_of(pathlib.Path(sys.argv[1]), model, 2, "h100x8", batch, words[:4])["best"]
"""
MADEUP = """
import pathlib, random, sys, tomllib
import madeup
text = madeup.changed("a = 1 # one\\n[b] # two\\na = 2\\n", "b", "a", lambda old: 10 * old)
assert tomllib.loads(text) == {"a": 1, "b": {"a": 20}}, text
asked = [madeup.ask(random.Random(seed)) for seed in (1, 1, 2)]
assert asked[0] == asked[1] != asked[2]
for seed in range(20):
    machine = tomllib.loads(madeup.machine(random.Random(seed)))
    assert machine["ranks_per_node"] in (1, 2, 4, 8) and machine["link"]["between_nodes"]["bandwidth"] <= 46e9
small = {**madeup.exhaustive.LLAMA, "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 8}
words = [*madeup.searches.axes({"dp": 2}), *madeup.searches.fixed({"recompute.policy": "none", "zero.stage": "1"})]
one = asked[0]._replace(model=small, ranks=2, batch={"global": 2, "sequence": 64}, words=words)
assert madeup.compare(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), 0, one) is True
"""
WINNERS = """
import winners
meshes = list(winners.meshes())
assert len(meshes) == 10 and {"dp": 2, "tp": 1, "pp": 2, "cp": 1} in meshes, meshes
class Turns(winners.Bench):
    def __init__(self, steps):
        self.options, self.order, self.steps = type("Options", (), {"rounds": 3}), [], steps
    def measure(self, plan):
        self.order.append(plan)
        return self.steps[plan].pop(0)
turns = Turns({"p": [3, 1, 2], "q": [9, 5, 4]})
assert turns.rounds({"a": "p", "b": "q"}) == {"a": 2, "b": 5}
assert turns.order == ["p", "q", "q", "p", "p", "q"], turns.order
"""


class Benchmarks(unittest.TestCase):
    def run_there(self, code, *arguments):
        done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=FOLDER, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_floor_is_of_the_faster_side(self):
        self.run_there(FLOORS)

    def test_two_builds_take_turns(self):
        self.run_there(BUILDS, str(shell.BIN))

    def test_a_loop_has_each_spec_once(self):
        self.run_there(EXHAUSTIVE)

    def test_a_search_on_a_machine_that_nobody_built(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_there(MADEUP, str(shell.BIN), folder)

    def test_the_best_published_run_of_a_table_is_looked_for(self):
        self.run_there(TUNED)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "runs.json"
            model = json.loads((shell.ROOT / "examples" / "llama-tiny.json").read_text())
            run = {"id": "a/slow", "model": model, "axes": ["tp=2"], "spec": {"recompute.policy": "full"}, "step_seconds": 1,
                   "batch": {"global": 8, "micro": 1, "sequence": 64}, "machine": "A100; attention not fused"}
            path.write_text(json.dumps({"runs": [run, dict(run, id="b/not-asked")]}))
            done = subprocess.run([sys.executable, str(FOLDER / "tuned.py"), "--bin", str(shell.BIN), "--runs", str(path),
                                   "--table", "a"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"a/slow +\d+\.\d+ +\d+ +\d+  \S.*full\n  0 of 1 are within 3% of the best\n$")

    def test_a_search_may_find_nothing(self):
        self.run_there(NOTHING, str(shell.BIN), str(shell.ROOT / "examples" / "llama-tiny.json"))

    def test_plans_are_measured_in_turns(self):
        self.run_there(WINNERS)

    def test_published_runs_are_scored(self):
        self.run_there(PUBLISHED)
        with tempfile.TemporaryDirectory() as folder:
            path, output = pathlib.Path(folder) / "runs.json", pathlib.Path(folder) / "scores.json"
            model = json.loads((shell.ROOT / "examples" / "llama-tiny.json").read_text())
            runs = [{"id": f"{table}/{i}", "model": model, "axes": ["dp=2"], "spec": {"zero.stage": 1},
                     "batch": {"global": 8, "micro": 4, "sequence": 64}, "machine": machine, "step_seconds": 1e-3}
                    for table, machine in (("a", "A100; attention not fused"), ("b", "H100; FlashAttention-2, eager"),
                                           ("b", "A100; FlashAttention"), ("b", "H100 of 500 W; compiled"))
                    for i in range(2)]
            path.write_text(json.dumps({"runs": runs}))
            command = [sys.executable, str(FOLDER / "published.py"), "--bin", str(shell.BIN), "--runs", str(path)]
            done = subprocess.run([*command, "--output", str(output)], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            scores = json.loads(output.read_text())
            self.assertEqual([(name, set(tables)) for name, tables in scores.items()],
                             [("as told", {"a", "b"}), ("with profiles", {"a", "b"})])
            for name in "ab":  # other software makes no step faster
                for told, slower in zip(*(scores[kind][name]["ratios"] for kind in scores)):
                    self.assertLess(told, slower)
            self.assertRegex(done.stdout, r"  all: error [\d.]+%, bias [+-][\d.]+%, mean tau -?[\d.]+\n")
            done = subprocess.run([*command, "--table", "c"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (1, f"{path} has no table c\n"))

    def test_folders_of_tools_may_be_relative(self):
        """Every script that has --bin takes it from here."""
        with tempfile.TemporaryDirectory() as folder:
            self.run_there(RELATIVE, folder)
        self.run_there("import sys, cases\nsys.argv[1:] = ['--bin', 'build/bin']\n"
                       "assert cases.arguments('About.').bin.is_absolute()")
        scripts = [path for path in FOLDER.glob("*.py") if "options.bin" in path.read_text()]
        self.assertGreater(len(scripts), 4)
        for path in scripts:
            if path.name != "frameworks.py":
                self.assertRegex(path.read_text(), r"cases\.(add_bin\(parser\)|arguments\(__doc__\))", path.name)
                self.run_there(f"import {path.stem}")


if __name__ == "__main__":
    unittest.main()
