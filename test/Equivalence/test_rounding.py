"""Stochastic rounding of bf16 weights: it trains, and the same bits on any mesh.

Tolerance of losses in training. Weights rounded to nearest are off by an error that is
uniform in half a unit of the last place either way: a variance of 1/12 of the unit's
square. Rounded at random, at a distance f from the lower one, the variance is f (1 - f),
1/6 on average. So the limit of test_bf16 grows by the root of two.

At a learning rate of zero masters stay as they are, and every step rounds the same ones
anew. A run that begins with what philox.py makes of them, and rounds to nearest, which
leaves them so, has the same losses to the bit: on any mesh, on the CPU and on a GPU.
"""
import math
import unittest

import numpy as np
import torch

import configs
import oracle
import philox
import safetensors
import tools
from test_bf16 import MICROBATCHES, RATE, STEPS, rms
from test_cuda import GPU, emulated
from test_sharded import CORPUS, GPT2, LLAMA, spec

RANDOM = {"rounding": "stochastic"}
ONE = ({"dp": 1, "fsdp": 1, "tp": 1}, False, 0)
LAYOUTS = [ONE, ({"dp": 2, "fsdp": 1, "tp": 1}, False, 0), ({"dp": 2, "fsdp": 1, "tp": 1}, False, 1),
           ({"dp": 1, "fsdp": 1, "tp": 4}, True, 0), ({"dp": 4, "fsdp": 1, "tp": 1}, False, 3),
           ({"dp": 2, "fsdp": 1, "tp": 2}, True, 3)]
SEED = 3


class Rounding(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)

    def test_losses_of_twenty_steps(self):
        for name in ("gpt2", "llama"):
            with self.subTest(name):
                plan, nearest = (self.space.compile(configs.ALL[name], tools.spec(
                    configs.BATCH, configs.BATCH // MICROBATCHES, configs.SEQUENCE, compute="bf16",
                    precision=precision)) for precision in (RANDOM, {}))
                ids, initial = configs.corpus(), self.space.initial_weights(plan)
                run, other = (self.space.train(p, ids, STEPS, lr=RATE, init=initial) for p in (plan, nearest))
                exact, low = (oracle.train(
                    configs.ALL[name], safetensors.read(initial), ids, configs.BATCH, configs.SEQUENCE, [RATE] * STEPS,
                    dtype=dtype)[0] for dtype in (torch.float64, torch.bfloat16))
                limit = 3 * math.sqrt(2) * rms(np.subtract(low, exact))
                self.assertLess(limit, 0.15 * (exact[0] - exact[-1]), "too loose to tell")
                self.assertLess(rms(np.subtract(run.losses, exact)), limit)
                # A run begins with weights to nearest; the first update rounds at random.
                self.assertEqual(run.losses[0], other.losses[0])
                self.assertNotEqual(run.losses[1], other.losses[1])

    def losses(self, space, config, layout, weights, steps, precision, **target):
        plan = space.compile(config, spec(*layout, compute="bf16", precision=precision, **target))
        share = ["--share-gpu"] if target and np.prod(list(layout[0].values())) > 1 else []
        return space.train(plan, CORPUS, steps, *share, lr=0, init=space.save_weights(weights), seed=SEED).losses

    def check_bits(self, space, config, layout, **target):
        masters = safetensors.read(space.initial_weights(space.compile(config, spec(*ONE)), seed=SEED))
        random = self.losses(space, config, layout, masters, 3, RANDOM, **target)
        for step in (1, 2):
            rounded = {n: philox.stochastically_rounded(n, w, SEED, step - 1) for n, w in masters.items()}
            expected = self.losses(space, config, layout, rounded, step + 1, {}, **target)
            self.assertEqual(random[step], expected[step])
        self.assertNotEqual(random, self.losses(space, config, layout, masters, 3, {}, **target))

    def test_bits_are_those_documented_on_any_mesh(self):
        for config in (GPT2, LLAMA):
            for layout in LAYOUTS:
                with self.subTest(config["model_type"], layout=layout):
                    self.check_bits(self.space, config, layout)

    def test_bits_of_gpus(self):
        with tools.Workspace(**emulated()) as space:
            for config, layout in ((LLAMA, ONE), (GPT2, LAYOUTS[-1])):
                with self.subTest(config["model_type"], layout=layout):
                    self.check_bits(space, config, layout, **GPU)


if __name__ == "__main__":
    unittest.main()
