"""`--then`: a run goes on with another plan as two runs would, to the bit; whatever kills it."""
import json
import pathlib
import shutil
import subprocess
import unittest

import configs
import tools

MPIRUN = ("mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2")


class Then(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)
        cls.data = cls.space.tokens(configs.corpus())
        cls.short = cls.plan(4, 16, ["dp=2"])
        cls.long = cls.plan(6, 31, ["tp=2"])

    @classmethod
    def plan(cls, batch, sequence, axes, config=configs.LLAMA, **sections):
        return cls.space.compile(config, tools.spec(batch, 1, sequence, mesh={"axes": axes}, **sections))

    def options(self, folder, *more):
        return ["--data", self.data, "--data-type", "u16", "--lr", "1e-2", "--schedule", "cosine", "--decay-steps", "8",
                "--checkpoint", folder, *more]

    def run_then(self, *more, launcher=(), folder=None):
        """(lines of the metrics, weights)."""
        metrics, weights = self.space.file(".jsonl"), self.space.file(".safetensors")
        self.space.must("meshwork-run", self.short, "--then", f"{self.long}@3", "--steps", "8",
                        *self.options(folder or self.space.file(".run"), "--metrics", metrics, "--save", weights, *more),
                        launcher=launcher)
        return [json.loads(line) for line in pathlib.Path(metrics).read_text().splitlines()], pathlib.Path(weights).read_bytes()

    def by_hand(self):
        folder, weights = self.space.file(".run"), self.space.file(".safetensors")
        self.space.must("meshwork-run", self.short, "--steps", "3", *self.options(folder))
        self.space.must("meshwork-run", self.long, "--steps", "8", *self.options(folder, "--resume", "auto", "--save", weights))
        return pathlib.Path(weights).read_bytes()

    def test_is_two_runs(self):
        expected = self.by_hand()
        for launcher in ((), MPIRUN):
            with self.subTest(launcher):
                lines, weights = self.run_then(launcher=launcher)
                self.assertEqual(weights, expected)
                self.assertEqual([line["step"] for line in lines], list(range(8)))
                self.assertEqual([line["tokens"] for line in lines],
                                 [64 * (i + 1) for i in range(3)] + [192 + 186 * (i + 1) for i in range(5)])

    def test_goes_on_where_it_stopped(self):
        """In each plan, and at their border; the checkpoints tell which plan it was."""
        expected = self.by_hand()
        for steps in (2, 3, 5):
            with self.subTest(steps):
                folder = self.space.file(".run")
                first = ["--then", f"{self.long}@3"] if steps > 3 else []
                self.space.must("meshwork-run", self.short, *first, "--steps", steps, *self.options(folder))
                lines, weights = self.run_then("--resume", "auto", folder=folder)
                self.assertEqual(weights, expected)
                self.assertEqual([line["step"] for line in lines], list(range(steps, 8)))
                self.assertEqual(lines[-1]["tokens"], 192 + 5 * 186)

    def test_a_plan_is_read_once(self):
        """What was checked before the first step runs, though its file is gone by then."""
        gone, weights = self.space.file(".mwplan"), self.space.file(".safetensors")
        shutil.copy(self.long, gone)
        run = subprocess.Popen([str(tools.BIN / "meshwork-run"), self.short, "--then", f"{gone}@3", "--steps", "8", "--log-every", "1",
                                *self.options(self.space.file(".run"), "--save", weights)], stdout=subprocess.PIPE, text=True)
        with run:
            for line in run.stdout:
                if line.startswith("step 0"):
                    pathlib.Path(gone).unlink()
        self.assertEqual(run.returncode, 0)
        self.assertEqual(pathlib.Path(weights).read_bytes(), self.by_hand())

    def test_what_cannot_follow_is_refused_before_the_first_step(self):
        def refused(text, plan, *more, code=64, steps="8"):
            folder = self.space.file(".run")
            done = self.space.call("meshwork-run", self.short, "--then", f"{plan}@3", "--steps", steps,
                                   *self.options(folder, *more))
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr)
            self.assertNotIn("step 0", done.stdout)
            self.assertFalse(pathlib.Path(folder).exists())
        refused("the plan before is of another model; missing: ", self.plan(4, 16, ["dp=2"], configs.QWEN3), code=65)
        refused("the plan before has the states of another optimizer; missing: ",
                self.plan(4, 16, ["dp=2"], optimizer={"kind": "sgd", "momentum": 0.9}), code=65)
        refused("sequences of 31 tokens, the plan before of 16: with --order epochs", self.long, "--order", "epochs")
        refused("begins with step 3, expected more than 0 and less than --steps, which is 3", self.long, steps="3")
        refused("No such file", "nothing.mwplan", code=66)
        refused("exclude each other", self.long, "--trace", self.space.file(".json"))


if __name__ == "__main__":
    unittest.main()
