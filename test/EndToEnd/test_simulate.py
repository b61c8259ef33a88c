"""`meshwork simulate`: a plan's step on one machine or another, and a month of steps."""
import csv
import json
import tomllib
import unittest

import shell

LLAMA = ("examples/large/llama-3.1-8b.json", "--spec", "examples/large/gpus-64.toml")
MESH = 'mesh.axes=["pp=2", "dp=4", "tp=8"]'
MONTH = ("--set", "failures.hours=6300", "--set", "storage.bandwidth=100e9")
# What profiles say of stages, and the bubbles published for them: Qi et al., arXiv 2401.10241, tables 5 and 9.
PROFILES = shell.ROOT / "test/Schedules/zero_bubble.csv"


class Simulate(unittest.TestCase):
    cost_s = 25

    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)
        cls.space.must("meshwork", "compile", *LLAMA, "--set", MESH, "--set", "batch.global=32",
                       "--set", 'target.arch="sm_90a"', "-o", "big.mwplan")
        cls.space.must("meshwork", "compile", "examples/llama-tiny.json", "--spec", "examples/pp2.toml",
                       "-o", "pp.mwplan")

    def simulate(self, plan, *options):
        return json.loads(self.space.must("meshwork", "simulate", plan, "--json", *options).stdout)

    def fails(self, code, words, *options, plan="big.mwplan"):
        done = self.space.run("meshwork", "simulate", plan, *options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        for word in words:
            self.assertIn(word, done.stderr)

    def test_the_plans_own_machine_gives_what_explain_says(self):
        for plan in ("big.mwplan", "pp.mwplan"):
            told = json.loads(self.space.must("meshwork", "explain", plan, "--json").stdout)["estimate"]
            own = self.simulate(plan)
            for key in ("machine", "step_ms", "tokens_per_second", "mfu", "exposed_ms", "bubble_fraction",
                        "idle_fraction"):
                self.assertEqual(own[key], told[key], key)
            self.assertEqual(own["planned_step_ms"], own["step_ms"])
            self.assertIsNone(own["month"])

    def test_no_link_gets_better_and_the_step_slower(self):
        usual = self.simulate("big.mwplan")["step_ms"]
        changes = [(f"link.{link}.{key}", factor) for link in ("within_node", "between_nodes")
                   for key, factor in (("bandwidth", 0.1), ("latency", 10), ("hop", 10), ("half_size", 10))]
        slower, file = 0, (shell.ROOT / "examples/machines/h100x8.toml").read_text()
        for key, factor in [*changes, ("overlap.slowdown", 2), ("nodes.late", 3), ("nodes.jitter", 2),
                            ("ranks.jitter", 2)]:
            value = tomllib.loads(file)
            for name in key.split("."):
                value = value.get(name, {})
            value = value * factor if value else 1e-4
            step = self.simulate("big.mwplan", "--set", f"{key}={value!r}")["step_ms"]
            self.assertGreaterEqual(step, usual, key)
            slower += step > usual
        self.assertGreater(slower, 6)

    def test_another_machine(self):
        h200 = self.simulate("big.mwplan", "--machine", "h200x8")
        self.assertEqual(h200["machine"], "h200x8")
        self.assertNotEqual(h200["step_ms"], h200["planned_step_ms"])
        same = self.simulate("big.mwplan", "--machine", str(shell.ROOT / "examples/machines/h200x8.toml"))
        self.assertEqual(same, h200)
        text = self.space.must("meshwork", "simulate", "big.mwplan", "--machine", "a100x8").stdout
        self.assertRegex(text, r"(?m)^On the plan's own machine a step takes .*: here [\d.]+ times as long$")

    def test_a_month(self):
        month = self.simulate("big.mwplan", *MONTH)["month"]
        self.assertEqual(month["nodes"], 8)
        self.assertAlmostEqual(month["failures"], 8 * 720 / 6300, places=9)
        self.assertEqual(month["checkpoint_bytes"], 12 * 8_030_261_248)  # masters and two moments, f32
        self.assertEqual(month["checkpoint_write_s"], month["checkpoint_bytes"] / 100e9)
        self.assertLess(month["goodput"], 1)
        worse = self.simulate("big.mwplan", *MONTH, "--set", "failures.hours=2", "--set", "failures.restart=600")["month"]
        self.assertLess(worse["goodput"], month["goodput"])
        self.assertLess(worse["checkpoint_every"], month["checkpoint_every"])
        self.assertEqual(worse["restart_s"], 600 + month["restart_s"])
        text = self.space.must("meshwork", "simulate", "big.mwplan", *MONTH).stdout
        self.assertRegex(text, r"A month on 8 nodes, each of which fails every 6300 hours: 0\.9 failures")
        self.assertRegex(text, rf"best: one each {month['checkpoint_every']} steps .* goodput [\d.]+ %")

    def test_experts_of_one_rank_get_more(self):
        self.space.must("meshwork", "compile", "examples/mixtral-tiny.json", "--spec", "examples/ep2.toml", "-o", "ep.mwplan")
        even, uneven = (self.simulate("ep.mwplan", "--set", f"experts.load={load}")["step_ms"] for load in (1, 2))
        self.assertGreater(uneven, even)
        dense = [self.simulate("pp.mwplan", "--set", f"experts.load={load}")["step_ms"] for load in (1, 2)]
        self.assertEqual(*dense)

    def test_a_trace_is_one_of_the_plan(self):
        """Every rank of this plan has its own program, so a trace of the simulation is one of all ranks."""
        self.space.must("meshwork", "simulate", "pp.mwplan", "--trace", "planned.json")
        told = json.loads(self.space.must("meshwork", "explain", "pp.mwplan", "--measured", "planned.json", "--json").stdout)
        measured = told["measured"]
        self.assertAlmostEqual(measured["step"]["ratio"], 1, delta=0.02)
        for one in measured["lists"]:
            if one["ratio"] is not None:
                self.assertAlmostEqual(one["ratio"], 1, delta=0.02, msg=one["list"])
        alone = self.space.must("meshwork", "simulate", "pp.mwplan", "--trace", "-").stdout
        self.assertEqual(json.loads(alone), json.loads(self.space.read("planned.json")))
        self.space.must("meshwork", "simulate", "big.mwplan", "--trace", "big.json")
        self.assertGreater(len(json.loads((self.space.path / "big.json").read_text())["traceEvents"]), 1000)

    def test_a_pipeline_with_measured_times(self):
        """What profiles say of stages, on the plans' own tables, gives the published bubbles. The last action of a step is an
        update, which they leave out."""
        profiles = list(csv.DictReader(PROFILES.read_text().splitlines()))
        self.assertEqual(len(profiles), 12)
        for row in profiles:
            self.write_costs({key: 1e-3 * float(row[key]) for key in ("forward", "input_grad", "weight_grad", "transfer")})
            for schedule in ("1f1b", "zb-h1", "zb-h2"):
                self.compare_bubble(schedule, row)
        text = self.space.must("meshwork", "simulate", "stages.mwplan", "--costs", "costs.toml").stdout
        self.assertRegex(text, r"(?m); actions of the pipeline take what --costs says$")
        self.assertNotIn("not hidden", text)

    def compare_bubble(self, schedule, row):
        self.compile_stages(int(row["stages"]), int(row["microbatches"]), schedule)
        own = self.simulate("stages.mwplan", "--costs", "costs.toml")
        told = json.loads(self.space.must("meshwork", "schedule", schedule, "--stages", row["stages"], "--microbatches",
                                          row["microbatches"], "--costs", "costs.toml", "--json").stdout)
        self.assertAlmostEqual(own["bubble_fraction"], float(row[schedule]), delta=1e-4, msg=(schedule, row))
        self.assertAlmostEqual(own["bubble_fraction"], told["bubble_fraction"], delta=1e-5)
        self.assertGreater(own["step_ms"], told["makespan"] * 1e3)
        self.assertLess(own["step_ms"], told["makespan"] * 1e3 + own["planned_step_ms"])
        self.assertIsNone(own["exposed_ms"])

    def compile_stages(self, stages, microbatches, schedule):
        """One layer in each stage."""
        model = json.loads((shell.ROOT / "examples/llama-tiny.json").read_text()) | {"num_hidden_layers": stages}
        self.space.write("stages.json", json.dumps(model))
        keys = {"mesh.axes": f'["pp={stages}"]', "batch.global": microbatches, "batch.micro": 1,
                "pipeline.schedule": schedule, "pipeline.layers": [1] * stages}
        self.space.must("meshwork", "compile", "stages.json", "--spec", "examples/pp2.toml",
                        *(word for key, value in keys.items() for word in ("--set", f"{key}={value}")), "-o", "stages.mwplan")

    def write_costs(self, times):
        self.space.write("costs.toml", "".join(f"{key} = {value!r}\n" for key, value in times.items()))

    def test_costs_that_cannot_be(self):
        self.write_costs({"forward": [1, 1], "input_grad": 1, "weight_grad": 1})
        self.space.must("meshwork", "simulate", "pp.mwplan", "--costs", "costs.toml")
        self.fails(64, ["--costs", "--trace"], "--costs", "costs.toml", "--trace", "t.json", plan="pp.mwplan")
        self.space.must("meshwork", "compile", "examples/llama-tiny.json", "--spec", "examples/dp2.toml", "-o", "dp.mwplan")
        self.fails(64, ["--costs", "dp.mwplan", "no pipeline"], "--costs", "costs.toml", plan="dp.mwplan")
        self.write_costs({"forward": [1, 1, 1], "input_grad": 1})
        self.fails(65, ["costs.toml:1", "forward", "weight_grad: missing"], "--costs", "costs.toml", plan="pp.mwplan")
        self.fails(66, ["none.toml"], "--costs", "none.toml", plan="pp.mwplan")

    def test_what_cannot_be(self):
        self.fails(64, ['--machine: found "h100"', "h100x8"], "--machine", "h100")
        self.fails(64, ['device "cpu"', '"cuda"'], "--machine", "xeon-2")
        self.fails(78, ['did you mean "nodes.jitter"?'], "--set", "nodes.jiter=0.1")
        self.fails(78, ["failures.hours", "storage.bandwidth"], "--set", "failures.hours=10")
        self.fails(78, ["link.between_nodes.bandwidth", "expected"], "--set", "link.between_nodes.bandwidth=-1")
        self.fails(66, ["none.toml"], "--machine", "none.toml")
        self.fails(64, ["big.mwplan"], "--trace", "big.mwplan")
        self.fails(65, ["README.md"], plan="README.md")


if __name__ == "__main__":
    unittest.main()
