"""Weights that a step gathers once over outer axes and for each use over inner ones (zero.gathered = ["fsdp"]): not a
bit differs from gathering them over all axes for each use, and gradients and weights are those of one rank."""
import unittest

import numpy as np

import configs
import test_fp8
import tools
from test_cuda import emulated
from test_parallel import EPSILON, RATE, Agreement

BATCH, SEQUENCE, STEPS = 8, 23, 3
# Sizes that four ranks do not divide, and a head that is tied to the embedding.
GPT2 = {**configs.GPT2, "vocab_size": 131, "n_head": 4, "n_inner": 101}
LLAMA = {**configs.LLAMA, "vocab_size": 136}
FOUR = ["dp=2", "fsdp=2"]
# Model, mesh, zero.axes with the inner one first: as weights lie, so that sums over ranks have one order.
LAYOUTS = [(GPT2, FOUR, ["fsdp", "dp"], {"recompute": {"policy": "full"}}),
           (LLAMA, FOUR, ["dp", "fsdp"], {"recompute": {"policy": "none"}, "overlap": {"collectives": "always"}}),
           (LLAMA, ["dp=3", "fsdp=2"], ["fsdp", "dp"], {"batch": {"global": 12}}),
           (LLAMA, [*FOUR, "tp=2"], ["fsdp", "dp"], {"shard": {"residual_sequence": ["tp"]}}),
           (GPT2, ["pp=2", *FOUR], ["fsdp", "dp"], {"pipeline": {"schedule": "zb-h1"}}),
           (LLAMA, ["dp=2", "cp=2"], ["cp", "dp"], {"context": {"layout": "zigzag"}})]


def spec(mesh, axes, gathered, batch=None, **sections):
    return tools.spec((batch or {"global": BATCH})["global"], 1, SEQUENCE, mesh={"axes": mesh},
                      zero={"stage": 3, "axes": axes, "gathered": gathered}, **sections)


class Hierarchy(Agreement):
    cost_s = 60
    batch, sequence, corpus = BATCH, SEQUENCE, configs.corpus(vocabulary=131)

    def run_layout(self, gathered, model, mesh, axes, sections, init, steps=STEPS, space=None, options=()):
        space = space or self.space
        plan = space.compile(model, spec(mesh, axes, gathered, optimizer={"epsilon": EPSILON}, **sections))
        return space.train(plan, self.corpus, steps, *options, lr=RATE, init=init)

    def assert_same(self, *layout, **options):
        free, kept = (self.run_layout(gathered, *layout, **options) for gathered in ("free", layout[2][:1]))
        self.assertEqual(free.losses, kept.losses)
        self.assertEqual(free.weight_bytes, kept.weight_bytes)
        for name, gradient in free.gradients.items():
            self.assertTrue(np.array_equal(gradient, kept.gradients[name]), name)

    def test_changes_no_bit(self):
        for model, mesh, axes, sections in LAYOUTS:
            with self.subTest(model=model["model_type"], mesh=mesh, **sections):
                init = self.space.save_weights(self.random_weights(model))
                self.assert_same(model, mesh, axes, sections, init)

    def test_changes_no_bit_in_fp8(self):
        """Copies in FP8 are made of the stored parts, and gathered in their place; or, in each microbatch, of weights."""
        model = {**test_fp8.LLAMA, "vocab_size": 136}
        for casts in ("step", "microbatch"):
            with self.subTest(casts=casts):
                plans = [self.space.compile(model, tools.spec(
                    8, 1, 32, compute="bf16", mesh={"axes": FOUR}, zero={
                        "stage": 3, "axes": ["fsdp", "dp"], "gathered": gathered},
                    precision={**test_fp8.FP8, "weight_casts": casts})) for gathered in ("free", ["fsdp"])]
                free, kept = (self.space.train(plan, self.corpus, STEPS, lr=RATE) for plan in plans)
                self.assertEqual(free.losses, kept.losses)
                self.assertEqual(free.weight_bytes, kept.weight_bytes)

    def test_changes_no_bit_on_a_gpu(self):
        gpu = {"target": {"device": "cuda", "arch": "sm_80"}, "precision": {"compute": "bf16"}}
        with tools.Workspace(**emulated()) as space:
            init = space.save_weights(self.random_weights(GPT2))
            self.assert_same(GPT2, FOUR, ["fsdp", "dp"], gpu, init, space=space, options=["--share-gpu"], steps=2)

    def test_equals_one_rank(self):
        init = self.space.save_weights(self.random_weights(GPT2))
        limits = self.gradient_limits(GPT2)
        one = self.run_layout("free", GPT2, ["dp=1"], ["dp"], {}, init, steps=1)
        many = self.run_layout(["fsdp"], GPT2, FOUR, ["dp", "fsdp"], {}, init, steps=1)
        self.assertAlmostEqual(many.losses[0] / one.losses[0], 1, delta=1e-6)
        found, expected = many.gradients, one.gradients
        far = {n: np.linalg.norm(found[n] - expected[n]) / limits[n] for n in limits}
        self.assertLess(max(far.values()), 1, max(far, key=far.get))
        self.check_weights(many.weights, one.weights, limits, steps=1)


if __name__ == "__main__":
    unittest.main()
