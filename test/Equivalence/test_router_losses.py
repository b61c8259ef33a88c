"""Losses that make routers choose experts evenly: values and gradients are PyTorch's, whoever has
which layers, experts and tokens, and however many microbatches a step has.
"""
import pathlib
import unittest

import configs
import mixture
import models
import oracle
import tools

F32 = 1e-5
BATCH, SEQUENCE = 8, 23
# What Hugging Face's class adds, by a coefficient large enough to be seen in every gradient.
MODELS = {name: {**config, "output_router_logits": True, "router_aux_loss_coef": 0.5} for name, config in
          (("mixtral", configs.MIXTRAL), ("qwen3_moe", configs.QWEN3_MOE))}
# Axes, [experts], other sections.
RUNS = [(["dp=1"], {}, {}), (["dp=2"], {}, {"zero": {"stage": 3}}), (["dp=4"], {"z_coefficient": 0.1}, {}),
        (["ep=2"], {"exchange": "all_to_all", "bound": 1.0}, {}), (["ep=4"], {"balance": "layer"}, {"zero": {"stage": 1, "axes": ["ep"]}}),
        (["cp=2"], {"z_coefficient": 0.1}, {}), (["dp=2", "cp=2"], {}, {"overlap": {"collectives": "always"}}),
        (["ep=2", "tp=2"], {"balance": "layer"}, {}),
        (["pp=2"], {"z_coefficient": 0.1}, {}), (["pp=2", "ep=2"], {"balance": "layer"}, {"pipeline": {"schedule": "zb-h1"}}),
        (["pp=2", "ep=2"], {}, {"pipeline": {"schedule": "zb-h1"}}),
        (["ep=2"], {"balance": "none", "z_coefficient": 0.1}, {"recompute": {"policy": "full"}}),
        (["dp=2"], {"balance_coefficient": 0.25}, {"recompute": {"policy": "full"}})]


def with_loss_again(space, config):
    """A model that adds half of its loss to its loss, as another one."""
    text = pathlib.Path(space.model(config)).read_text()
    return space.write(".mlir", text.replace(
        "    return %loss", '    transformer.auxiliary_loss "again" coefficient 0.5, %loss : tensor<f32>\n    return %loss'))


class RouterLosses(unittest.TestCase):
    cost_s = 60

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)
        cls.data = cls.space.tokens(configs.corpus())

    def plan(self, config, axes, experts, micro=None, **sections):
        shard = {"residual_sequence": ["tp"]} if "tp=2" in axes else {}
        return self.space.compile(config, tools.spec_on(axes, BATCH, SEQUENCE, micro, shard=shard, experts=experts, **sections))

    def expected(self, config, weights, experts):
        """(loss, {metric: value}, gradients) of the step's sequences in one call."""
        exact = models.weights_from(config, {n: w.detach().numpy() for n, w in weights.items()})
        with mixture.heard() as routers:
            loss = models.loss(config, exact, *oracle.windows(configs.corpus(), BATCH, SEQUENCE, 0, 0))
        of, metrics = experts.get("balance", "model"), {}
        total = loss
        if of != "none":
            value = mixture.balance(config, routers, of)
            metrics["balance_loss"] = value.item()
            total = total + experts.get("balance_coefficient", config["router_aux_loss_coef"]) * value
        if "z_coefficient" in experts:
            value = mixture.router_z(routers)
            metrics["router_z"] = value.item()
            total = total + experts["z_coefficient"] * value
        total.backward()
        return loss.item(), metrics, {n: w.grad.double().numpy() for n, w in exact.items()}

    def check(self, run, expected):
        loss, metrics, gradients = expected
        self.assertAlmostEqual(run.losses[0] / loss, 1, delta=F32)
        told = {name: run.metrics[0][name] for name in ("balance_loss", "router_z") if name in run.metrics[0]}
        self.assertEqual(set(told), set(metrics))
        for name, value in metrics.items():
            self.assertAlmostEqual(told[name] / value, 1, delta=1e-6, msg=name)
        errors = {n: oracle.relative_error(run.gradients[n], gradients[n]) for n in gradients}
        self.assertEqual({n: e for n, e in errors.items() if not e < F32}, {}, "relative L2 errors")

    def test_values_and_gradients_are_pytorchs(self):
        for name, config in MODELS.items():
            weights = models.random_weights(config, 17)
            init = self.space.save_weights(weights)
            for axes, experts, sections in RUNS:
                with self.subTest(name, axes=axes, experts=experts, **sections):
                    plan = self.plan(config, axes, experts, **sections)
                    self.check(self.space.train(plan, self.data, 1, lr=0, init=init),
                               self.expected(config, weights, experts))

    def test_they_add_nothing_unless_asked(self):
        config = {**MODELS["mixtral"], "output_router_logits": False}
        run = self.space.train(self.plan(config, ["dp=1"], {}), self.data, 1)
        self.assertNotIn("balance_loss", run.metrics[0])

    def test_even_routing_tells_k(self):
        """Routers of zeros score all experts alike; the first two have all tokens, which f P does not see."""
        config = MODELS["mixtral"]
        weights = models.random_weights(config, 5)
        for name, weight in weights.items():
            if name.endswith("gate.weight"):
                weight.data.zero_()
        run = self.space.train(self.plan(config, ["dp=2"], {}), self.data, 1, lr=0, init=self.space.save_weights(weights))
        self.assertAlmostEqual(run.metrics[0]["balance_loss"], config["num_experts_per_tok"], delta=1e-6)

    def test_a_model_may_have_a_loss_of_its_own(self):
        """Half of the loss again: gradients grow by half, the loss does not."""
        more = with_loss_again(self.space, configs.LLAMA)
        spec = self.space.write(".toml", tools.spec(BATCH, 2, SEQUENCE, mesh={"axes": ["dp=2"]}))
        plan = self.space.file(".mwplan")
        self.space.must("meshwork", "compile", more, "--spec", spec, "-o", plan)
        weights = models.random_weights(configs.LLAMA, 3)
        init = self.space.save_weights(weights)
        run = self.space.train(plan, self.data, 1, lr=0, init=init)
        exact = models.weights_from(configs.LLAMA, {n: w.detach().numpy() for n, w in weights.items()})
        loss, gradients = oracle.gradients(configs.LLAMA, exact, *oracle.windows(configs.corpus(), BATCH, SEQUENCE, 0, 0))
        self.assertAlmostEqual(run.metrics[0]["again"] / loss, 1, delta=F32)
        self.check(run, (loss, {}, {n: 1.5 * g for n, g in gradients.items()}))

    def test_an_emulated_gpu_tells_it_too(self):
        with tools.Workspace(LD_LIBRARY_PATH=str(tools.BIN.parent / "emulator")) as space:
            model = with_loss_again(space, {**configs.LLAMA, "vocab_size": 136})
            data, spec, plan = space.tokens(configs.corpus()), space.file(".toml"), space.file(".mwplan")
            for axes in (["dp=2"], ["pp=2"]):
                pathlib.Path(spec).write_text(tools.spec(BATCH, 2, SEQUENCE, mesh={"axes": axes}, target={"device": "cuda"}))
                space.must("meshwork", "compile", model, "--spec", spec, "-o", plan)
                run = space.train(plan, data, 1, "--share-gpu", lr=0)
                self.assertAlmostEqual(run.metrics[0]["again"] / run.losses[0], 1, delta=1e-6, msg=axes)

    def test_what_adds_nothing_is_said(self):
        for config, why in ((configs.LLAMA, "the model has no router"), (configs.MIXTRAL, "its coefficient is 0")):
            done = self.space.must("meshwork", "compile", self.space.model(config), "--spec", self.space.write(
                ".toml", tools.spec(4, 4, SEQUENCE, experts={"balance": "layer"})), "-o", self.space.file(".mwplan"))
            self.assertIn("experts.balance: \"layer\" adds no loss: " + why, done.stderr)

    def test_a_dense_model_has_no_router(self):
        done = self.space.call("meshwork", "compile", self.space.model(configs.LLAMA), "--spec", self.space.write(
            ".toml", tools.spec(4, 4, SEQUENCE, experts={"balance_coefficient": 0.01})), "-o", self.space.file(".mwplan"))
        self.assertEqual(done.returncode, 78)
        self.assertIn("experts.balance_coefficient", done.stderr)
        self.assertIn("no router", done.stderr)


if __name__ == "__main__":
    unittest.main()
