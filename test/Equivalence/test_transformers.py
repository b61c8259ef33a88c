"""Models train as Transformers' own classes do: losses, gradients and each expert's tokens as transformers_record.py
wrote them down. On one rank, and on four: mixtures exchange tokens, other models are split by layers and heads."""
import json
import unittest

import numpy as np

import configs
import models
import tools
import transformers_record as reference

F32 = 1e-5
ROUNDING = 1e-7  # of a gradient that is 0, such as of a bias of keys that do not turn: it adds the same to a row's scores
SGD = {"kind": "sgd", "clip_grad_norm": 0, "weight_decay": 0}
EXCHANGED = {"exchange": "all_to_all", "bound": 1.0}


class Transformers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)
        cls.data = cls.space.tokens(configs.corpus())
        cls.recorded = json.loads(reference.FILE.read_text())["families"]

    def run_like(self, name, axes, micro, experts, **sections):
        """What is recorded, from a run of as many steps and one of the first step."""
        config = reference.FAMILIES[name]
        weights = reference.weights(self.recorded[name].get("shapes") or models.parameter_shapes(config),
                                    reference.center_of_norms(config))
        init = self.space.save_weights(weights)
        group = {"group": reference.BATCH} if self.recorded[name]["balance"] else {}
        plan = self.space.compile(config, tools.spec(
            reference.BATCH, micro, reference.SEQUENCE, mesh={"axes": axes}, optimizer=SGD,
            **({"experts": {**experts, **group}} if experts or group else {}), **sections))
        train = [self.space.train(plan, self.data, steps, lr=reference.RATE, init=init) for steps in (1, reference.STEPS)]
        return train[0].gradients, train[1]

    def check(self, recorded, gradients, run, steps=reference.STEPS):
        np.testing.assert_allclose(run.losses[:steps], recorded["losses"][:steps], rtol=F32)
        self.assertEqual(set(gradients), set(recorded["gradients"]))
        for name, (norm, product) in recorded["gradients"].items():
            found = reference.told(gradients[name])
            if 0 < norm < ROUNDING:
                self.assertLess(found[0], ROUNDING, name)
                continue
            np.testing.assert_allclose(found, [norm, product], rtol=F32, atol=F32 * norm, err_msg=name)
        balance = [metrics.get("balance_loss") for metrics in run.metrics]
        if recorded["balance"]:
            np.testing.assert_allclose(balance, recorded["balance"], rtol=F32)
            self.assertAlmostEqual(balance[0] / recorded["balance"][0], 1, delta=1e-6)
        for metrics, counts in zip(run.metrics, recorded["counts"]):
            self.assertEqual(metrics.get("expert_load", []), [[max(one), np.mean(one), min(one)] for one in counts])

    def test_every_family(self):
        self.assertEqual(set(self.recorded), set(reference.FAMILIES))
        for name, recorded in self.recorded.items():
            with self.subTest(name):
                self.check(recorded, *self.run_like(name, ["dp=1"], reference.BATCH, {}))

    def test_others_on_four_ranks(self):
        """Heads, norms and factors split over ranks, and layers over stages. Sums have another order; later steps have
        amplified that beyond the tolerance of one."""
        for name in configs.FOLLOWED:
            with self.subTest(name):
                self.check(self.recorded[name], *self.run_like(name, ["pp=2", "tp=2"], 2, {}), steps=10)

    def test_parts_of_the_residual_stream(self):
        """What one weight makes of queries, keys and values goes to the heads' ranks, turned in part."""
        for name in configs.FOLLOWED:
            with self.subTest(name):
                self.check(self.recorded[name], *self.run_like(name, ["tp=2"], 2, {}, shard={"residual_sequence": ["tp"]}), steps=10)

    def test_caps_on_parts_of_a_sequence(self):
        """Attention's partial results are merged of capped scores."""
        self.check(self.recorded["gemma2"], *self.run_like("gemma2", ["cp=4"], reference.BATCH, {}), steps=10)

    def test_mixtures_on_four_ranks(self):
        for name in configs.MIXTURES:
            with self.subTest(name):
                self.check(self.recorded[name], *self.run_like(name, ["ep=4"], 1, EXCHANGED))

    def test_expert_counts_are_of_all_tokens(self):
        tokens = reference.BATCH * reference.SEQUENCE
        for name in configs.MIXTURES:
            k = reference.FAMILIES[name]["num_experts_per_tok"]
            for counts in self.recorded[name]["counts"]:
                self.assertEqual([sum(one) for one in counts], [tokens * k] * len(counts))


if __name__ == "__main__":
    unittest.main()
