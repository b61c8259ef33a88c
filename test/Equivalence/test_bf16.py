"""bf16 against the f64 oracle.

Tolerance. There is no exact bf16 answer: each stored value is rounded by up to 2^-9,
and where is up to the implementation. So the same weights and tokens also go through
PyTorch in bf16, which rounds after every operation, at least as often as a fused
implementation does. Its distance to f64 is one draw of the error that rounding at
those places makes. Over 20 losses (as root mean square), or the elements of a
gradient (as L2 norm), such a draw is stable to a few ten per cent, so two
implementations of which neither is wrong stay within a factor of two of each other;
losses of one trajectory are correlated, there it is three. To a gradient the sum over
microbatches adds one rounding each, 2^-9 of the norm.
"""
import unittest

import numpy as np
import torch

import configs
import models
import oracle
import safetensors
import tools

STEPS, RATE = 20, 3e-3
ROUNDING = 2.0 ** -9
MICROBATCHES = 2


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


class Bf16(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)

    def plan(self, config):
        return self.space.compile(config, tools.spec(
            configs.BATCH, configs.BATCH // MICROBATCHES, configs.SEQUENCE, compute="bf16"))

    def test_losses_of_twenty_steps(self):
        for name in ("gpt2", "llama"):
            with self.subTest(name):
                config = configs.ALL[name]
                plan, ids = self.plan(config), configs.corpus()
                initial = self.space.initial_weights(plan)
                run = self.space.train(plan, ids, STEPS, lr=RATE, init=initial)
                arrays = safetensors.read(initial)
                shape = (configs.BATCH, configs.SEQUENCE, [RATE] * STEPS)
                exact, _, _ = oracle.train(config, arrays, ids, *shape)
                low, _, _ = oracle.train(config, arrays, ids, *shape,
                                         dtype=torch.bfloat16)
                limit = 3 * rms(np.subtract(low, exact))
                self.assertLess(limit, 0.1 * (exact[0] - exact[-1]), "too loose to tell")
                self.assertLess(rms(np.subtract(run.losses, exact)), limit)
                self.assertNotEqual(run.losses, exact)

    def test_gradient_of_every_weight(self):
        # Of experts PyTorch rounds the scores that choose; a choice is then another one.
        for name, config in configs.DENSE.items():
            with self.subTest(name):
                self.check_gradients(config)

    def test_gradients_of_many_microbatches(self):
        """Sums over 128 microbatches, against those of one: in f32 by default; a warning tells
        what bf16 costs."""
        config, ids, batch, sequence = configs.LLAMA, configs.corpus(), 128, 4
        init = self.space.save_weights(models.random_weights(config, 17))

        def gradients(micro, **precision):
            plan = self.space.compile(config, tools.spec(batch, micro, sequence, precision={
                "compute": "bf16", **precision}))
            return self.space.train(plan, ids, 1, lr=0, init=init).gradients

        one, many, rounded = gradients(batch, gradients="f32"), gradients(1), gradients(1, gradients="bf16")
        off = {kind: max(oracle.relative_error(found[n], one[n]) for n in one)
               for kind, found in (("default", many), ("bf16", rounded))}
        self.assertLess(off["default"], 0.01)
        self.assertGreater(off["bf16"], off["default"])

    def check_gradients(self, config):
        ids = configs.corpus()
        arrays = {n: w.detach().numpy()
                  for n, w in models.random_weights(config, 17).items()}
        run = self.space.train(self.plan(config), ids, 1, lr=0,
                               init=self.space.save_weights(arrays))
        batch = oracle.windows(ids, configs.BATCH, configs.SEQUENCE, 0, 0)
        exact, low = (oracle.gradients(config, models.weights_from(config, arrays, t),
                                       *batch) for t in (torch.float64, torch.bfloat16))
        found = run.gradients
        wrong = {}
        for name, expected in exact[1].items():
            error = oracle.relative_error(found[name], expected)
            limit = (2 * oracle.relative_error(low[1][name], expected)
                     + MICROBATCHES * ROUNDING)
            self.assertLess(limit, 0.5, f"{name}: too loose to tell")
            if not error < limit:
                wrong[name] = (error, limit)
        self.assertEqual(wrong, {}, "relative L2 errors and their limits")


if __name__ == "__main__":
    unittest.main()
