"""Experts with room for so many choices: what finds none is dropped, the same choices whoever has which tokens and
experts, and gradients are PyTorch's."""
import json
import re
import unittest

import numpy as np

import configs
import mixture
import models
import oracle
import tools

F32 = 1e-5
BATCH, SEQUENCE = 8, 23
SP = {"residual_sequence": ["tp"]}
EXCHANGE = {"exchange": "all_to_all", "bound": 1.0}
ZIGZAG = {"context": {"layout": "zigzag"}}
# Axes, [shard], [experts], other sections; the sequence of 23 leaves padding wherever it is split.
MESHES = [(["dp=1"], {}, {}, {}), (["dp=2"], {}, {}, {"zero": {"stage": 3}}), (["ep=4"], {}, {}, {}),
          (["ep=4"], {}, EXCHANGE, {}), (["ep=2", "tp=2"], SP, {}, {}), (["ep=2", "tp=2"], {**SP, "experts": ["ep", "tp"]}, EXCHANGE, {}),
          (["tp=2"], {"experts": ["tp"]}, {}, {}), (["cp=2"], {}, {}, ZIGZAG), (["cp=4"], {}, {}, {}), (["cp=2", "tp=2"], SP, {}, ZIGZAG),
          (["pp=2", "ep=2"], {}, EXCHANGE, {"pipeline": {"schedule": "zb-h1"}}),
          (["ep=2"], {}, EXCHANGE, {"recompute": {"policy": "full"}}), (["dp=2"], {}, {}, {"recompute": {"policy": "selective"}})]
MODELS = {"mixtral": {**configs.MIXTRAL, "num_local_experts": 8}, "qwen2_moe": configs.QWEN2_MOE, "dots1": configs.DOTS1}
FEW = MESHES[3:5]


def groups(axes):
    """What is left of a microbatch on a rank, and a group of it."""
    ranks = int(np.prod([int(axis.split("=")[1]) for axis in axes if axis.split("=")[0] in ("dp", "ep")]))
    micro = max(1, BATCH // ranks // 2)
    return micro, min(micro, 2)


class ExpertCapacity(unittest.TestCase):
    cost_s = 60

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)
        cls.data = cls.space.tokens(configs.corpus())

    def plan(self, config, axes, shard, experts, micro, **sections):
        return self.space.compile(config, tools.spec_on(axes, BATCH, SEQUENCE, micro, shard=shard, experts=experts, **sections))

    def expected(self, config, weights, capacity, group):
        config = {**config, "capacity": (capacity, group)}
        exact = models.weights_from(config, {n: w.detach().numpy() for n, w in weights.items()})
        with mixture.heard() as routers:
            found = oracle.gradients(config, exact, *oracle.windows(configs.corpus(), BATCH, SEQUENCE, 0, 0))
        return *found, mixture.dropped(config, routers, BATCH)

    def check(self, run, expected):
        loss, gradients, dropped = expected
        self.assertEqual(run.metrics[0]["dropped"], dropped)
        self.assertAlmostEqual(run.losses[0] / loss, 1, delta=F32)
        self.assertEqual(set(run.gradients), set(gradients))
        errors = {n: oracle.relative_error(run.gradients[n], gradients[n]) for n in gradients}
        self.assertEqual({n: e for n, e in errors.items() if not e < F32}, {}, "relative L2 errors")

    def test_gradients_are_pytorchs_on_every_mesh(self):
        for name, config in MODELS.items():
            weights = models.random_weights(config, 17)
            init, known = self.space.save_weights(weights), {}
            for axes, shard, experts, sections in MESHES if name == "mixtral" else FEW:
                micro, group = groups(axes)
                with self.subTest(name, axes=axes, **experts, **shard, **sections):
                    plan = self.plan(config, axes, shard, {"capacity": 1.0, "group": group, **experts}, micro, **sections)
                    if group not in known:
                        known[group] = self.expected(config, weights, 1.0, group)
                        self.assertGreater(min(known[group][2]), 0)
                    self.check(self.space.train(plan, self.data, 1, lr=0, init=init), known[group])

    def test_one_choice_all_choices_and_equal_scores(self):
        """Routers of zeros send all tokens to the first experts; room for one choice; nearly for all."""
        for name, choices, capacity, is_even in (("mixtral", 2, 1.0, True), ("qwen2_moe", 1, 0.01, False),
                                                 ("mixtral", 8, 0.9, False)):
            config = {**MODELS[name], "num_experts_per_tok": choices}
            weights = models.random_weights(config, 5)
            for tensor, weight in weights.items():
                if is_even and tensor.endswith("block_sparse_moe.gate.weight"):
                    weight.data.zero_()
            init, expected = self.space.save_weights(weights), self.expected(config, weights, capacity, 1)
            for axes, experts in ((["dp=1"], {}), (["ep=4"], {"exchange": "gathered"}), (["ep=4"], EXCHANGE)):
                with self.subTest(name, choices=choices, capacity=capacity, axes=axes, **experts):
                    plan = self.plan(config, axes, {}, {"capacity": capacity, **experts}, 1)
                    self.check(self.space.train(plan, self.data, 1, lr=0, init=init), expected)

    def test_rows_are_as_many_as_there_is_room(self):
        """A rank that gathers others' tokens has rows for its experts' room, not for all that tokens may choose."""
        activations = {}
        for capacity in ("dropless", 1.0):
            plan = self.plan(MODELS["mixtral"], ["ep=4"], {}, {"exchange": "gathered", "capacity": capacity}, 1)
            told = json.loads(self.space.must("meshwork", "explain", plan, "--json").stdout)
            activations[capacity] = told["memory_per_rank_bytes"]["activations"]
        self.assertLess(activations[1.0], activations["dropless"])

    def test_balance_over_groups(self):
        """As Hugging Face's classes compute it of so many sequences in one call, on ranks that share a group, too."""
        config = {**MODELS["mixtral"], "output_router_logits": True, "router_aux_loss_coef": 0.1}
        weights = models.random_weights(config, 17)
        init = self.space.save_weights(weights)
        exact = models.weights_from(config, {n: w.detach().numpy() for n, w in weights.items()})
        for group, micro, axes, of in ((2, 4, ["dp=1"], "model"), (4, 2, ["dp=2"], "model"), (8, 2, ["ep=4"], "layer"),
                                       (2, 1, ["dp=4", "tp=2"], "layer"), (4, 4, ["pp=2", "cp=2"], "model")):
            with mixture.heard() as routers:
                loss = models.loss(config, exact, *oracle.windows(configs.corpus(), BATCH, SEQUENCE, 0, 0))
            value = mixture.balance(config, routers, of, group)
            for weight in exact.values():
                weight.grad = None
            (loss + 0.1 * value).backward()
            with self.subTest(group=group, axes=axes, of=of):
                run = self.space.train(self.plan(config, axes, {}, {"group": group, "balance": of}, micro), self.data, 1,
                                       lr=0, init=init)
                self.assertAlmostEqual(run.metrics[0]["balance_loss"] / value.item(), 1, delta=1e-6)
                self.assertEqual(run.metrics[0]["balance_at_even"], config["num_experts_per_tok"])
                for name, weight in exact.items():
                    self.assertLess(oracle.relative_error(run.gradients[name], weight.grad.double().numpy()), F32, name)

    def refused(self, experts, config=MODELS["mixtral"], axes=("dp=2",), micro=2, returncode=78):
        done = self.space.call("meshwork", "compile", self.space.model(config), "--spec", self.space.write(
            ".toml", tools.spec(BATCH, micro, SEQUENCE, mesh={"axes": list(axes)}, experts=experts)), "-o",
            self.space.file(".mwplan"))
        self.assertEqual(done.returncode, returncode, done.stderr)
        return done.stderr

    def test_what_is_refused_or_warned_of(self):
        for capacity in (0, -1, 1e300, "nan", "most"):
            self.assertIn("experts.capacity: ", self.refused({"capacity": capacity}))
        self.assertIn("experts.group: found 4, expected a divisor of 2 (batch.micro: with experts.capacity one rank has a "
                      "group), like 2", self.refused({"capacity": 1.0, "group": 4}))
        self.assertIn("experts.group: found 3, expected a divisor of 8 (batch.micro times 4 data-parallel ranks), like 2 or 4",
                      self.refused({"group": 3}, axes=["dp=4"]))
        self.assertIn("experts.group: has no meaning with experts.balance = \"none\" and without experts.capacity",
                      self.refused({"group": 2, "balance": "none"}))
        self.assertIn("the model has no experts; leave the line out", self.refused({"capacity": 1.0}, configs.LLAMA))
        self.assertIn("drops nothing: an expert has room for each token", self.refused({"capacity": 4.0}, returncode=0))
        self.assertIn("experts.group: has no effect: there is no balance loss and no capacity",
                      self.refused({"group": 2}, returncode=0))

    def test_an_automatic_microbatch_holds_whole_groups(self):
        spec = tools.spec(BATCH, 1, SEQUENCE, experts={"capacity": 1.0, "group": 4}, expect={"memory_per_rank": "1 GiB"})
        done = self.space.must("meshwork", "compile", self.space.model(MODELS["mixtral"]), "--spec", self.space.write(
            ".toml", spec.replace("micro = 1", 'micro = "auto"')), "-o", self.space.file(".mwplan"))
        micro = int(re.search(r"microbatch: (\d+) sequences", done.stderr)[1])
        self.assertEqual(micro % 4, 0, done.stderr)
        # Without a capacity ranks may share a group: of four with two sequences each.
        config = {**MODELS["mixtral"], "output_router_logits": True, "router_aux_loss_coef": 0.1}
        spec = tools.spec(BATCH, 1, SEQUENCE, mesh={"axes": ["dp=4"]}, experts={"group": 4},
                          expect={"memory_per_rank": "1 GiB"})
        self.space.must("meshwork", "compile", self.space.model(config), "--spec", self.space.write(
            ".toml", spec.replace("micro = 1", 'micro = "auto"')), "-o", self.space.file(".mwplan"))


if __name__ == "__main__":
    unittest.main()
