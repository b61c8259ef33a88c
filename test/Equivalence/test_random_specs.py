"""Whatever is put together trains as one rank does.

Models, layouts and all that a spec says beside them are drawn at random (drawn.py), compiled, run,
and compared with the same training on one rank. The draws are the same each time, and few; for a
hunt, MESHWORK_RANDOM_SPECS is how many, and MESHWORK_RANDOM_SEED where they begin.

In f32 ranks and one rank differ by the order of sums: of n numbers by at most n units in the last
place, where n, tokens times width, is below 2^15, so 2^-9 of a tensor's norm at the worst, and some
2^-20 as errors fall. What a rank or a microbatch leaves out or counts twice is a 24th of a sum, so
a tolerance of 2^-12 tells them apart. Gradients that are zero but for rounding (of keys' biases) are
held against the norm of all.

In bf16 what is added up in another order differs by 2^-9 at each addition, which layers carry on: up
to a quarter of a gradient's norm where heads have two elements. There only what is counted twice or
left out by whole ranks shows.
"""
import os
import pathlib
import random
import sys
import unittest

import numpy as np

import configs
import drawn
import same_bits
import tools

COUNT = int(os.environ.get("MESHWORK_RANDOM_SPECS", 0))
SEED = int(os.environ.get("MESHWORK_RANDOM_SEED", 1))
TOLERANCE = {"f32": 2.0 ** -12, "bf16": 2.0 ** -1}
LOSS_TOLERANCE = {"f32": 2.0 ** -12, "bf16": 2.0 ** -6}
OF_ALL = 1e-3  # a tensor's norm counts as this share of the norm of all, at least
RATE = "1e-2"
# Of ranks that are processes: by MPI, by sockets.
LAUNCHERS = same_bits.MPIRUN, [sys.executable, str(pathlib.Path(__file__).with_name("launch.py"))]
TOKENS = configs.corpus(vocabulary=128)


def norm(values):
    return float(np.sqrt(sum(np.square(value, dtype=np.float64).sum() for value in values)))


class RandomSpecs(unittest.TestCase):
    cost_s = 90

    def setUp(self):
        self.space = tools.Workspace(LD_LIBRARY_PATH=str(tools.BIN.parent / "emulator"))
        self.addCleanup(self.space.close)
        self.data = self.space.tokens(TOKENS)

    def cases(self, usual, **layout):
        """Draws of their own for each number, so that a case can be drawn again alone."""
        for seed in range(SEED, SEED + (COUNT or usual)):
            draw = random.Random(seed)
            model = drawn.Model(draw, layout.get("device", "cpu"))
            training = drawn.Training(draw)
            made = drawn.Layout(draw, model, training, **layout)
            if made.device == "cpu" and 1 < made.ranks <= 4:
                made.launcher = [*LAUNCHERS[seed % 2], str(made.ranks)]
            yield seed, draw, model, training, made

    def plan(self, model, spec, may_be_refused=False):
        """None where it is refused."""
        plan = self.space.file(".mwplan")
        done = self.space.call("meshwork", "compile", self.space.model(model.config), "--spec",
                               self.space.write(".toml", spec.spec()), "-o", plan)
        self.assertIn(done.returncode, (0, 78) if may_be_refused else (0,), done.stderr)
        return plan if done.returncode == 0 else None

    def train(self, plan, options, steps, launcher=()):
        return self.space.train(plan, self.data, steps, *options, lr=RATE, launcher=launcher)

    def check_same(self, ours, theirs, tolerance):
        self.assertEqual(set(ours), set(theirs))
        whole = norm(theirs.values())
        for name, expected in theirs.items():
            self.assertEqual(ours[name].shape, expected.shape, name)
            far = norm([ours[name] - expected])
            self.assertLessEqual(far, tolerance * max(norm([expected]), OF_ALL * whole), name)

    def compare(self, run, one, training):
        np.testing.assert_allclose(run.losses, one.losses, rtol=LOSS_TOLERANCE[training.compute])
        self.check_same(run.gradients, one.gradients, TOLERANCE[training.compute])
        if not self.goes_by_signs(training):
            self.check_same(run.weights, one.weights, TOLERANCE[training.compute])

    def goes_by_signs(self, training):
        """Rounding turns them where a gradient is zero, so what is behind its first step differs."""
        return training.optimizer["kind"] == "lion"

    def check_case(self, model, training, layout):
        plan = self.plan(model, layout, may_be_refused=bool(layout.pins))
        if plan is None:
            return
        # Weights that differ in the last bit may be rounded to other 8 bits.
        steps = 1 if self.goes_by_signs(training) or training.weights else 2
        run = self.train(plan, layout.options, steps, layout.launcher)
        one = self.train(self.plan(model, training), training.options, steps)
        self.compare(run, one, training)
        if training.compute == "f32":  # else scores are rounded, and others chosen
            for name in ("expert_load", "dropped"):
                self.assertEqual(run.metrics[0].get(name), one.metrics[0].get(name))

    def test_ranks_equal_one(self):
        for seed, _, model, training, layout in self.cases(20):
            with self.subTest(seed=seed):
                self.check_case(model, training, layout)

    def test_small_forms_equal_one_rank(self):
        """`verify --by-running` raises no false alarm, and refuses what `compile` refuses at most."""
        for seed, _, model, training, layout in self.cases(30):
            with self.subTest(seed=seed):
                done = self.space.call("meshwork", "verify", self.space.model(model.config), "--spec",
                                       self.space.write(".toml", layout.spec()), "--by-running")
                self.assertIn(done.returncode, (0, 78) if layout.pins else (0,), done.stderr)

    def test_emulated_gpus_equal_one_rank(self):
        for seed, _, model, training, layout in self.cases(5, device="cuda", most_ranks=4):
            with self.subTest(seed=seed):
                self.check_case(model, training, layout)

    def test_gradients_in_few_bits(self):
        """A step's loss has the bits that it has without. Gradients are off by what rounding can do to the sums of a
        layout, each block's largest element being some times its mean one; in f32 by as much as the step tells."""
        for seed, _, model, training, layout in self.cases(14):
            if layout.sections.get("zero", {}).get("stage", 0) == 0:
                continue
            how, limit = (("int8", 0.1), ("int4", 1.0))[seed % 2]
            with self.subTest(seed=seed, how=how):
                usual = self.plan(model, layout, may_be_refused=bool(layout.pins))
                if usual is None:
                    continue
                layout.sections["zero"] |= {"gradients": how, "gradient_error": True}
                exact, run = (self.train(plan, layout.options, 1, layout.launcher)
                              for plan in (usual, self.plan(model, layout)))
                self.assertEqual(run.losses, exact.losses)
                self.check_same(run.gradients, exact.gradients, limit)
                far = norm([run.gradients[name] - expected for name, expected in exact.gradients.items()])
                told, noise = run.metrics[0]["gradient_error"], TOLERANCE["f32"] * norm(exact.gradients.values())
                if training.compute == "f32":
                    self.assertLess(abs(told - far), 0.2 * told + noise)

    def test_a_run_goes_on_with_another_layout(self):
        for seed, draw, model, training, layout in self.cases(6):
            training.optimizer = drawn.OPTIMIZERS[seed % 3]
            other = drawn.Layout(draw, model, training)
            with self.subTest(seed=seed):
                first, second = (self.plan(model, one, may_be_refused=bool(one.pins)) for one in (layout, other))
                if first is None or second is None:
                    continue
                folder = ["--checkpoint", self.space.file(".checkpoints")]
                self.train(first, [*layout.options, *folder], 2)
                run = self.train(second, [*other.options, *folder, "--resume", "auto"], 3)
                one = self.train(self.plan(model, training), training.options, 3)
                one.losses = one.losses[-1:]
                self.compare(run, one, training)


if __name__ == "__main__":
    unittest.main()
