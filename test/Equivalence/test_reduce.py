"""Gradients that are reduced once a step (zero.reduce = "step"), whatever ZeRO's stage: the bits are those of stage 1,
which does so too. Of one microbatch they are those of reducing in each; of several, sums have another order. In bf16
stage 3 rounds its activations elsewhere than stage 1, so that only stage 2 can be compared."""
import unittest

import numpy as np

import configs
import tools
from test_cuda import emulated
from test_parallel import EPSILON, RATE, Agreement

BATCH, SEQUENCE, STEPS = 8, 23, 3
GPT2 = {**configs.GPT2, "vocab_size": 131, "n_head": 4, "n_inner": 101}
LLAMA = {**configs.LLAMA, "vocab_size": 131}
LAYOUTS = [(GPT2, ["dp=2"], {}),
           (LLAMA, ["dp=3"], {"batch": 6, "overlap": {"collectives": "always", "bucket": "4 KiB"}}),
           (LLAMA, ["dp=2", "tp=2"], {"shard": {"residual_sequence": ["tp"]}}),
           (GPT2, ["pp=2", "dp=2"], {"pipeline": {"schedule": "zb-h1"}}),
           (LLAMA, ["pp=2", "dp=2"], {"pipeline": {"schedule": "gpipe"}, "precision": {"compute": "bf16"}}),
           (LLAMA, ["dp=2", "fsdp=2"], {"recompute": {"policy": "full"}})]


class Reduce(Agreement):
    cost_s = 60
    batch, sequence, corpus = BATCH, SEQUENCE, configs.corpus(vocabulary=131)

    def run_stage(self, stage, reduce, model, mesh, sections, micro=1, steps=STEPS, space=None, options=()):
        space = space or self.space
        sections = {"optimizer": {"epsilon": EPSILON}, "batch": BATCH, **sections}
        zero = {"stage": stage, **({"reduce": reduce} if reduce else {})}
        plan = space.compile(model, tools.spec(sections.pop("batch"), micro, SEQUENCE, mesh={"axes": mesh}, zero=zero,
                                               **sections))
        init = space.save_weights(self.random_weights(model))
        return space.train(plan, self.corpus, steps, *options, lr=RATE, init=init)

    def assert_same(self, runs):
        first, *others = runs
        for run in others:
            self.assertEqual(first.losses, run.losses)
            self.assertEqual(first.weight_bytes, run.weight_bytes)
            for name, gradient in first.gradients.items():
                self.assertTrue(np.array_equal(gradient, run.gradients[name]), name)

    def test_bits_are_those_of_stage_1(self):
        for layout in LAYOUTS:
            with self.subTest(model=layout[0]["model_type"], mesh=layout[1], **layout[2]):
                stages = (2,) if "precision" in layout[2] else (2, 3)
                self.assert_same([self.run_stage(1, None, *layout), *(
                    self.run_stage(stage, "step", *layout) for stage in stages)])

    def test_of_one_microbatch_bits_are_those_of_each(self):
        """Not of a tied head, whose two gradients are then added up first."""
        for stage in (2, 3):
            with self.subTest(stage=stage):
                self.assert_same([self.run_stage(stage, reduce, LLAMA, ["dp=2"], {}, micro=BATCH // 2)
                                  for reduce in ("microbatch", "step")])

    def test_of_several_sums_have_another_order(self):
        """No further apart than rounding explains, and not the same: the test can tell."""
        limits = self.gradient_limits(GPT2)
        each, once = (self.run_stage(3, reduce, GPT2, ["dp=2"], {}, steps=1) for reduce in ("microbatch", "step"))
        found, expected = once.gradients, each.gradients
        self.assertFalse(all(np.array_equal(found[n], expected[n]) for n in limits))
        far = {n: np.linalg.norm(found[n] - expected[n]) / limits[n] for n in limits}
        self.assertLess(max(far.values()), 1, max(far, key=far.get))
        self.check_weights(once.weights, each.weights, limits, steps=1)

    def test_on_a_gpu(self):
        gpu = {"target": {"device": "cuda", "arch": "sm_80"}, "precision": {"compute": "bf16"}}
        with tools.Workspace(**emulated()) as space:
            self.assert_same([self.run_stage(stage, reduce, GPT2, ["dp=2"], gpu, space=space, steps=2,
                                             options=["--share-gpu"]) for stage, reduce in ((1, None), (2, "step"))])


if __name__ == "__main__":
    unittest.main()
