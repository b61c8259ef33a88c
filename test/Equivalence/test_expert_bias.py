"""The bias by which experts are chosen: moved by the counts of a whole step, whoever has which tokens, layers and
experts; no gradient, no decay, no part in the norm."""
import unittest

import numpy as np

import configs
import mixture
import models
import oracle
import tools

BATCH, SEQUENCE, RATE = 8, 23, 0.0625
SP = {"residual_sequence": ["tp"]}
# Axes, [shard], other sections.
MESHES = [(["dp=1"], {}, {}), (["dp=4"], {}, {"zero": {"stage": 3}}), (["ep=4"], {}, {"zero": {"stage": 1, "axes": ["ep"]}}),
          (["ep=2"], {}, {"experts": {"exchange": "all_to_all", "bound": 1.0}}),
          (["ep=2", "tp=2"], SP, {}), (["tp=2"], {"experts": ["tp"]}, {}), (["cp=2"], {}, {"context": {"layout": "zigzag"}}),
          (["pp=2", "ep=2"], {}, {"pipeline": {"schedule": "zb-h1"}}), (["pp=3"], {}, {}),
          (["dp=2"], {}, {"recompute": {"policy": "full"}}), (["dp=2"], {}, {"recompute": {"policy": "selective"}}),
          (["dp=2"], {}, {"precision": {"compute": "bf16"}})]


def biases(weights):
    return {name: weight for name, weight in weights.items() if mixture.untrained(name)}


class ExpertBias(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)
        cls.data = cls.space.tokens(configs.corpus())
        cls.weights = models.random_weights(configs.DOTS1, 17)
        cls.init = cls.space.save_weights(cls.weights)

    def plan(self, axes, shard=None, config=configs.DOTS1, rate=RATE, **sections):
        experts = {**sections.pop("experts", {}), **({"bias_rate": rate} if rate else {})}
        return self.space.compile(config, tools.spec_on(
            axes, BATCH, SEQUENCE, shard=shard or {}, experts=experts, optimizer={"weight_decay": 0.5}, **sections))

    def moved(self):
        """The biases behind the first step."""
        exact = models.weights_from(configs.DOTS1, {n: w.detach().numpy() for n, w in self.weights.items()})
        with mixture.heard() as routers:
            models.loss(configs.DOTS1, exact, *oracle.windows(configs.corpus(), BATCH, SEQUENCE, 0, 0))
        result = {}
        for (name, bias), (_, choices) in zip(biases(self.weights).items(), routers):
            counts = np.bincount(choices.flatten().numpy(), minlength=len(bias))
            result[name] = bias.numpy() + np.float32(RATE) * np.sign(counts.mean() - counts).astype(np.float32)
        return result

    def test_moves_by_the_counts_of_the_whole_step(self):
        expected = self.moved()
        self.assertEqual(len(expected), 2)
        for axes, shard, sections in MESHES:
            if sections.get("precision"):
                continue  # scores are rounded, so others are chosen
            with self.subTest(axes=axes, **shard, **sections):
                run = self.space.train(self.plan(axes, shard, **sections), self.data, 1, init=self.init)
                for name, bias in expected.items():
                    self.assertEqual(run.weights[name].tobytes(), bias.tobytes(), name)
                self.assertEqual(biases(run.gradients), {})

    def test_is_f32_in_bf16_models(self):
        run = self.space.train(self.plan(["dp=2"], precision={"compute": "bf16"}), self.data, 1, init=self.init)
        for name, bias in biases(self.weights).items():
            change = (run.weights[name] - bias.numpy()) / np.float32(RATE)
            np.testing.assert_allclose(np.abs(change[change != 0]), 1, rtol=1e-5, err_msg=name)

    def test_rests_without_a_rate(self):
        run = self.space.train(self.plan(["dp=2"], rate=None), self.data, 2, init=self.init)
        for name, bias in biases(self.weights).items():
            self.assertEqual(run.weights[name].tobytes(), bias.numpy().tobytes(), name)

    def test_resumes_on_another_mesh(self):
        """With weights at rest the biases alone decide what is chosen, so all have the same bits."""
        plans = [self.plan(axes, shard) for axes, shard in ((["ep=4"], {}), (["dp=1"], {}), (["tp=2", "ep=2"], SP))]
        whole = self.space.train(plans[1], self.data, 6, lr=0, init=self.init)
        folder = self.space.file(".checkpoint")
        self.space.train(plans[0], self.data, 2, "--checkpoint", folder, lr=0, init=self.init)
        self.space.train(plans[1], self.data, 4, "--resume", folder, "--checkpoint", folder, lr=0)
        run = self.space.train(plans[2], self.data, 6, "--resume", folder, lr=0)
        for name, bias in biases(whole.weights).items():
            self.assertEqual(run.weights[name].tobytes(), bias.tobytes(), name)

    def test_rests_where_a_step_is_skipped(self):
        bad = 125
        ids = configs.corpus(120)
        ids[::301] = bad
        weights = {name: weight.detach().numpy().copy() for name, weight in self.weights.items()}
        weights["model.embed_tokens.weight"][bad] = np.inf
        init = self.space.save_weights(weights)
        skipped = [step for step in range(8) if bad in oracle.windows(ids, BATCH, SEQUENCE, 0, step)[0]]
        self.assertTrue(0 < len(skipped) < 8, skipped)
        run = self.space.train(self.plan(["dp=2"]), ids, 8, "--skip-bad-steps", 8, lr=0, init=init)
        for name, bias in biases(self.weights).items():
            steps = np.rint((run.weights[name] - bias.numpy()) / RATE)
            self.assertLessEqual(np.abs(steps).max(), 8 - len(skipped), name)
            self.assertGreater(np.abs(steps).max(), 0, name)

    def test_counts_as_no_parameter(self):
        told = self.space.explain(self.plan(["dp=2"]))
        shapes = models.parameter_shapes(configs.DOTS1)
        self.assertEqual(told["parameters"], sum(int(np.prod(shape)) for name, shape in shapes.items()
                                                 if not mixture.untrained(name)))

    def test_a_model_without_one_has_no_rate(self):
        done = self.space.call("meshwork", "compile", self.space.model(configs.MIXTRAL), "--spec", self.space.write(
            ".toml", tools.spec(4, 4, SEQUENCE, experts={"bias_rate": 0.001})), "-o", self.space.file(".mwplan"))
        self.assertEqual(done.returncode, 78)
        self.assertIn("experts.bias_rate: the model has no bias by which experts are chosen; leave the line out",
                      done.stderr)


if __name__ == "__main__":
    unittest.main()
