"""dp, fsdp, tp, sequence parallelism and ZeRO stages on up to 8 ranks against one rank: loss,
every gradient, every updated weight. Of the legal combinations, some that have all pairs.

Tolerances are those of test_parallel: splits reorder sums, and nothing else.
"""
import itertools
import unittest

import numpy as np

import configs
import pairs
import tools
from test_parallel import EPSILON, RATE, Agreement

# Sizes that the axes divide; key heads fewer than the ranks of the widest tp.
GPT2 = {**configs.GPT2, "vocab_size": 136, "n_head": 4}
LLAMA = {**configs.LLAMA, "vocab_size": 136}
BATCH, SEQUENCE = 4, 24
CORPUS = configs.corpus(vocabulary=136)


def cases():
    """(model, dp, fsdp, tp, sequence parallel, zero stage) of more than one rank."""
    for case in itertools.product(("gpt2", "llama"), (1, 2, 4), (1, 2), (1, 2, 4), (False, True), range(4)):
        _, dp, fsdp, tp, sequence, stage = case
        data = dp * fsdp
        if data <= BATCH and 1 < data * tp <= 8 and not (sequence and tp == 1) and not (stage and data == 1):
            yield case


def spec(axes, sequence, stage, micro=1, gathered=None, **sections):
    # ZeRO over fsdp where there is such an axis (HSDP), else over dp.
    zero = {"stage": stage}
    if stage:
        zero["axes"] = ["fsdp"] if axes["fsdp"] > 1 else ["dp"]
    if gathered:
        zero["gathered"] = gathered
    shard = {"residual_sequence": ["tp"]} if sequence else {}
    mesh = {"axes": [f"{name}={size}" for name, size in axes.items()]}
    return tools.spec(BATCH, micro, SEQUENCE, mesh=mesh, shard=shard, zero=zero,
                      optimizer={"epsilon": EPSILON}, **sections)


class Sharded(Agreement):
    batch, sequence, corpus = BATCH, SEQUENCE, CORPUS

    def run_layout(self, config, layout, steps, weights, **options):
        plan = self.space.compile(config, spec(*layout, **options))
        return self.space.train(plan, self.corpus, steps, lr=RATE, init=weights)

    def check_all(self, config, chosen):
        weights = self.space.save_weights(self.random_weights(config))
        limits = self.gradient_limits(config)
        one = ({"dp": 1, "fsdp": 1, "tp": 1}, False, 0)
        base = self.run_layout(config, one, 1, weights)
        base_gradients, base_weights = base.gradients, base.weights
        for dp, fsdp, tp, sequence, stage in chosen:
            layout = ({"dp": dp, "fsdp": fsdp, "tp": tp}, sequence, stage)
            with self.subTest(layout=layout):
                run = self.run_layout(config, layout, 1, weights)
                self.assertAlmostEqual(run.losses[0] / base.losses[0], 1, delta=1e-6)
                found = run.gradients
                self.assertEqual(set(found), set(limits))
                far = {n: np.linalg.norm(found[n] - base_gradients[n]) / limits[n]
                       for n in limits}
                self.assertLess(max(far.values()), 1, max(far, key=far.get))
                self.check_weights(run.weights, base_weights, limits, steps=1)

    def test_layouts(self):
        chosen = pairs.choose(cases())
        for model, config in (("gpt2", GPT2), ("llama", LLAMA)):
            with self.subTest(model):
                self.check_all(config, [layout for name, *layout in chosen if name == model])

    def test_sequences_split_over_an_axis_of_nothing_else(self):
        """Gradients of q, k and v are then cut to a rank's tokens before they are one tensor."""
        weights = self.space.save_weights(self.random_weights(GPT2))
        limits = self.gradient_limits(GPT2)
        runs = []
        for tp in (1, 2):
            split = {name: ["tp"] for name in ("residual_sequence", "vocab")} | {"heads": [], "ffn": []}
            text = tools.spec(BATCH, 1, SEQUENCE, mesh={"axes": ["dp=1", f"tp={tp}"]}, shard=split,
                              optimizer={"epsilon": EPSILON})
            runs.append(self.space.train(self.space.compile(GPT2, text), self.corpus, 1, lr=RATE, init=weights))
        expected, found = (run.gradients for run in runs)
        far = {n: np.linalg.norm(found[n] - expected[n]) / limits[n] for n in limits}
        self.assertLess(max(far.values()), 1, max(far, key=far.get))

    def test_recompute_means_the_same(self):
        one = {"dp": 1, "fsdp": 1, "tp": 1}
        four = {"dp": 2, "fsdp": 1, "tp": 2}
        layouts = [(one, False, 0), (four, False, 1), (four, True, 3)]
        for config in (GPT2, LLAMA):
            weights = self.space.save_weights(self.random_weights(config))
            limits = self.gradient_limits(config)
            base = self.run_layout(config, layouts[0], 1, weights, recompute={"policy": "none"})
            base_gradients = base.gradients
            for layout, policy in itertools.product(layouts, ("none", "selective", "full")):
                with self.subTest(model=config["model_type"], layout=layout, policy=policy):
                    run = self.run_layout(config, layout, 1, weights, recompute={"policy": policy})
                    self.assertAlmostEqual(run.losses[0] / base.losses[0], 1, delta=1e-6)
                    found = run.gradients
                    far = {n: np.linalg.norm(found[n] - base_gradients[n]) / limits[n] for n in limits}
                    self.assertLess(max(far.values()), 1, max(far, key=far.get))

    def test_kept_weights_change_no_bit(self):
        weights = self.space.save_weights(self.random_weights(LLAMA))
        for axes in ({"dp": 2, "fsdp": 1, "tp": 1}, {"dp": 2, "fsdp": 1, "tp": 2}):
            for policy in ("none", "full"):
                kept, freed = (self.run_layout(LLAMA, (axes, False, 3), 2, weights, recompute={"policy": policy},
                                               gathered=gathered) for gathered in ("keep", "free"))
                self.assertEqual(kept.losses, freed.losses)
                for name, value in freed.weights.items():
                    np.testing.assert_array_equal(value, kept.weights[name], name)

    def test_overlap_changes_no_bit(self):
        """What runs beside computation sums the same numbers in the same order."""
        weights = self.space.save_weights(self.random_weights(GPT2))
        layouts = [({"dp": 2, "fsdp": 1, "tp": 1}, False, stage) for stage in range(4)]
        layouts += [({"dp": 2, "fsdp": 1, "tp": 2}, True, stage) for stage in (1, 3)]
        layouts += [({"dp": 1, "fsdp": 2, "tp": 2}, False, 2)]
        for layout in layouts:
            with self.subTest(layout=layout):
                runs = [self.run_layout(GPT2, layout, 3, weights, overlap={"collectives": mode, "bucket": "4 KiB"})
                        for mode in ("never", "always")]
                self.assertEqual(runs[0].losses, runs[1].losses)
                for kind in ("gradients", "weights"):
                    plain, beside = (getattr(run, kind) for run in runs)
                    for name, value in plain.items():
                        np.testing.assert_array_equal(value, beside[name], f"{kind} {name}")

    def test_losses_of_ten_steps(self):
        weights = self.space.save_weights(self.random_weights(LLAMA))
        one = {"dp": 1, "fsdp": 1, "tp": 1}
        base = self.run_layout(LLAMA, (one, False, 0), 10, weights, micro=2).losses
        for layout in (({"dp": 2, "fsdp": 1, "tp": 2}, True, 1),
                       ({"dp": 2, "fsdp": 1, "tp": 2}, True, 2),
                       ({"dp": 1, "fsdp": 2, "tp": 4}, True, 3),
                       ({"dp": 2, "fsdp": 2, "tp": 2}, False, 3)):
            with self.subTest(layout=layout):
                run = self.run_layout(LLAMA, layout, 10, weights)
                np.testing.assert_allclose(run.losses, base, rtol=1e-5)

    def test_dropout_does_not_depend_on_the_layout(self):
        """Masks are functions of the global index, so all layouts drop the same."""
        config = {**GPT2, "embd_pdrop": 0.1, "attn_pdrop": 0.2, "resid_pdrop": 0.3}
        weights = self.space.save_weights(self.random_weights(config))
        losses = [self.run_layout(config, layout, 2, weights).losses
                  for layout in (({"dp": 1, "fsdp": 1, "tp": 1}, False, 0),
                                 ({"dp": 1, "fsdp": 1, "tp": 4}, False, 0),
                                 ({"dp": 2, "fsdp": 1, "tp": 2}, True, 3))]
        for other in losses[1:]:
            np.testing.assert_allclose(other, losses[0], rtol=2e-6)


if __name__ == "__main__":
    unittest.main()
