"""`pipeline.schedule = "auto"` plans with what the stages take on the spec's machine, within the
spec's memory; what it, and others, take is estimated as `meshwork explain` does."""
import pathlib
import re
import unittest

import configs
import tools

SEQUENCE, MICROBATCHES, STAGES = 32, 6, 4
# The head is the most expensive stage, the cut keeps it alone with one layer.
MODEL = {**configs.ALL["llama"], "num_hidden_layers": 6, "vocab_size": 2048, "hidden_size": 64}
NAMED = ("gpipe", "1f1b", "zb-h1", "zb-h2")


class AutoSchedule(unittest.TestCase):
    cost_s = 30

    def setUp(self):
        self.space = tools.Workspace()
        self.addCleanup(self.space.close)
        self.model = self.space.model(MODEL)

    def spec(self, schedule, **sections):
        return self.space.write(".toml", tools.spec(
            MICROBATCHES, 1, SEQUENCE, mesh={"axes": [f"pp={STAGES}"]}, pipeline={"schedule": schedule}, **sections))

    def compile(self, schedule, **sections):
        plan = self.space.file(".mwplan")
        return plan, self.space.must("meshwork", "compile", self.model, "--spec", self.spec(schedule, **sections),
                                     "-o", plan)

    def explain(self, plan):
        told = self.space.explain(plan)
        return told["estimate"]["step_ms"], told["memory_per_rank_bytes"]["peak"]

    def test_it_goes_by_the_times_of_the_stages(self):
        """It ends no later than what is known by name, and earlier than what a search finds that takes all
        work for equal."""
        chosen, _ = self.compile("auto")
        step_ms, _ = self.explain(chosen)
        for name in NAMED:
            # A backward in one list takes a little less than its two parts.
            self.assertLess(step_ms, 1.005 * self.explain(self.compile(name)[0])[0], name)
        equal = self.space.file(".csv")
        self.space.must("meshwork", "schedule", "auto", "--stages", STAGES, "--virtual", 1, "--microbatches",
                        MICROBATCHES, "--csv", equal)
        plan, _ = self.compile(equal)
        self.assertNotEqual(self.space.explain(plan)["schedule"], self.space.explain(chosen)["schedule"])
        self.assertLess(step_ms, 0.99 * self.explain(plan)[0])
        again, _ = self.compile("auto")
        self.assertEqual(*(pathlib.Path(path).read_bytes() for path in (chosen, again)))

    def test_it_keeps_no_more_than_the_memory_holds(self):
        free, told = self.compile("auto")
        self.assertNotIn("schedule:", told.stderr)
        wide = self.explain(free)
        # The two parts of a backward hand on a little that one list does not.
        tight = self.explain(self.compile("1f1b")[0])[1] + 2000
        self.assertGreater(wide[1], tight)
        plan, told = self.compile("auto", expect={"memory_per_rank": f"{tight} B"})
        self.assertRegex(told.stderr, r"schedule: auto; microbatches of a virtual stage that a rank may keep: \d+")
        step_ms, peak = self.explain(plan)
        self.assertLessEqual(peak, tight)
        self.assertGreaterEqual(step_ms, wide[0])

    def test_a_change_of_the_spec_is_estimated_as_the_plan_is(self):
        """With bubble and transfers: what would fit is told with the time that its plan has."""
        done = self.space.call("meshwork", "compile", self.model, "--spec", self.spec(
            "1f1b", recompute={"policy": "none"}, expect={"memory_per_rank": "1 MiB"}), "-o", self.space.file(".x"))
        self.assertEqual(done.returncode, 78)
        told = re.search(r"recompute.policy = full: .*?(\d+) bytes, about (\S+ \w+) a step", done.stderr)
        plan, _ = self.compile("1f1b", recompute={"policy": "full"})
        self.assertEqual(int(told[1]), self.explain(plan)[1])
        text = self.space.must("meshwork", "explain", plan).stdout
        self.assertIn(f"Estimated time on cpu: {told[2]} a step,", text)


if __name__ == "__main__":
    unittest.main()
