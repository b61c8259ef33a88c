"""Weights in FP8 are rounded once a step (precision.weight_casts): not a bit differs from rounding them
in each microbatch, the plan's lists of microbatches read no weight, and memory is what a closed form
says."""
import math
import re
import unittest

import numpy as np

import configs
import test_fp8
import tools
from test_cuda import emulated

LAYERS, HIDDEN, FFN = 4, 64, 96
CONFIG = {**test_fp8.LLAMA, "num_hidden_layers": LAYERS}
# 64 tokens, a multiple of 16, on each data-parallel rank; two microbatches, or four of one such rank.
BATCH, MICRO, SEQUENCE = 8, 2, 32
STEPS = 3
STAGES = {"shard": {"layers": ["pp"]}}
# Axes, sequence parallelism, ZeRO's stage; further sections.
LAYOUTS = [(({"dp": 1}, False, 0), {}), (({"dp": 2}, False, 1), {}), (({"dp": 2}, False, 2), {}),
           (({"dp": 2}, False, 3), {}), (({"dp": 2}, False, 3), {"zero": {"gathered": "keep"}}),
           (({"tp": 2}, True, 0), {}), (({"dp": 2, "tp": 2}, True, 3), {}),
           (({"pp": 2}, False, 0), {**STAGES, "pipeline": {"schedule": "zb-v"}}),
           (({"pp": 2, "dp": 2}, False, 3), STAGES)]


class WeightCasts(unittest.TestCase):
    cost_s = 120

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)

    def spec(self, casts, layout=test_fp8.ONE, micro=MICRO, precision=test_fp8.FP8, **more):
        axes, sequence, stage = layout
        keys = {**precision, **({"weight_casts": casts} if casts else {})}
        shard = {**({"residual_sequence": ["tp"]} if sequence else {}), **more.pop("shard", {})}
        return tools.spec(BATCH, micro, SEQUENCE, compute="bf16", shard=shard, precision=keys,
                          mesh={"axes": [f"{name}={size}" for name, size in axes.items()]},
                          zero={"stage": stage, **more.pop("zero", {})}, **more)

    def compile(self, *arguments, model=CONFIG, **more):
        return self.space.compile(model, self.spec(*arguments, **more))

    def assert_same(self, plans):
        weights = [self.space.explain(plan)["memory_per_rank_bytes"]["weights"] for plan in plans]
        self.assertGreater(weights[0], weights[1], "cannot tell")
        runs = [self.space.train(plan, test_fp8.CORPUS, STEPS, lr=test_fp8.RATE) for plan in plans]
        self.assertEqual(runs[0].losses, runs[1].losses)
        self.assertEqual(runs[0].weight_bytes, runs[1].weight_bytes)
        for name, gradient in runs[0].gradients.items():
            self.assertTrue(np.array_equal(gradient, runs[1].gradients[name]), name)

    def test_change_no_bit(self):
        for i, (layout, more) in enumerate(LAYOUTS):
            precision = (test_fp8.FP8, test_fp8.DELAYED)[i % 2]
            with self.subTest(layout=layout, **precision, **more):
                self.assert_same([self.compile(casts, layout, precision=precision, **more)
                                  for casts in ("step", "microbatch")])

    def test_change_no_bit_of_one_microbatch(self):
        for layout, more in (LAYOUTS[0], LAYOUTS[3]):
            with self.subTest(layout=layout):
                micro = BATCH // layout[0].get("dp", 1)
                self.assert_same([self.compile(casts, layout, micro=micro, **more)
                                  for casts in ("step", "microbatch")])

    def test_of_a_gpu_change_no_bit(self):
        gpu = {"target": {"device": "cuda", "arch": "sm_90a"}}
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_CC="9.0")) as space:
            runs = [space.train(space.compile(CONFIG, self.spec(casts, **gpu)), test_fp8.CORPUS, 2,
                                lr=test_fp8.RATE) for casts in ("step", "microbatch")]
            self.assertEqual(runs[0].losses, runs[1].losses)
            self.assertEqual(runs[0].weight_bytes, runs[1].weight_bytes)

    def shared(self):
        """All layers have the first one's weight."""
        with open(self.space.model(CONFIG)) as text:
            model = text.read()
        for layer in range(1, LAYERS):
            model = re.sub(rf"%l{layer}_up_weight = .*", "", model).replace(f"%l{layer}_up_weight", "%l0_up_weight")
        return self.space.write(".mlir", model)

    def test_of_layers_that_share_one(self):
        model = self.shared()
        for layout, more in (LAYOUTS[0], LAYOUTS[7]):
            with self.subTest(layout=layout):
                self.assert_same([self.compile(casts, layout, model=model, **more)
                                  for casts in ("step", "microbatch")])
        copies = (1 + LAYERS * 6) * 2
        self.assertEqual(self.casts(self.compile("step", model=model))["step"], copies)

    def casts(self, plan):
        """Of each list, how many tensors kernels write in 8 bits."""
        found, current = {}, None
        for line in self.space.must("meshwork", "explain", plan, "--schedule").stdout.splitlines():
            if re.fullmatch("once|step|forward|backward|update", line):
                current = line
                found[current] = 0
            elif current and " launch " in line:
                found[current] += len(re.findall("f8_e4m3|e4m3", line.split("->")[1]))
        return found

    def test_microbatches_cast_no_weight(self):
        step, each = (self.casts(self.compile(casts)) for casts in ("step", "microbatch"))
        self.assertEqual((step["step"], each["step"]), (LAYERS * 7 * 2, 0))
        for name in ("forward", "backward"):
            self.assertEqual(each[name] - step[name], LAYERS * 7, name)

    def test_are_few_launches(self):
        """Parts of maxima, their maxima, both copies of all weights; and zeros."""
        gpu = {"target": {"device": "cuda", "arch": "sm_90a"}}
        text = self.space.must("meshwork", "explain", self.compile("step", **gpu), "--schedule").stdout
        step = text.split("\nstep\n")[1].split("\n\n")[0]
        self.assertLessEqual(step.count(" launch "), 4, step)

    def test_auto(self):
        """Once a step where that gains: of several microbatches, and where gathers move less."""
        for casts, layout, micro in (("microbatch", ({"dp": 1}, False, 0), 8), ("step", ({"dp": 1}, False, 0), 4),
                                     ("microbatch", ({"dp": 2}, False, 2), 4), ("step", ({"dp": 2}, False, 3), 4)):
            with self.subTest(layout=layout, micro=micro):
                default, chosen = (self.casts(self.compile(c, layout, micro=micro)) for c in (None, casts))
                self.assertEqual(default, chosen)
                self.assertEqual(default["step"] > 0, casts == "step")

    def test_cost_two_bytes_of_what_a_rank_holds(self):
        head = HIDDEN // 4
        sizes = LAYERS * [HIDDEN * HIDDEN, 2 * head * HIDDEN, 2 * head * HIDDEN, HIDDEN * HIDDEN, *3 * [FFN * HIDDEN]]
        for layout, ranks in ((({"dp": 1}, False, 0), 1), (({"dp": 2}, False, 1), 1), (({"dp": 2}, False, 3), 2),
                              (({"tp": 2}, True, 0), 2)):
            weights = [self.space.explain(self.compile(casts, layout))["memory_per_rank_bytes"]["weights"]
                       for casts in ("step", "microbatch")]
            copies = sum(2 * math.ceil(n / ranks / 64) * 64 for n in sizes)
            self.assertEqual(weights[0] - weights[1], copies, layout)

    def test_gathers_move_8_bits(self):
        sent = {}
        for casts in ("step", "microbatch"):
            moved = self.space.explain(self.compile(casts, ({"dp": 2}, False, 3)))["collectives"]
            sent[casts] = sum(c["bytes_sent_per_rank"] for c in moved
                              if c["kind"] == "all_gather" and c["phase"] != "update")
        linear = LAYERS * (2 * HIDDEN * HIDDEN + 4 * (HIDDEN // 4) * HIDDEN + 3 * FFN * HIDDEN)
        # Half of each weight, for the forward and for the backward pass, of two microbatches, by a byte less.
        self.assertEqual(sent["microbatch"] - sent["step"], linear // 2 * 2 * 2)


if __name__ == "__main__":
    unittest.main()
