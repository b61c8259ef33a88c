"""Mixtures of experts on meshes: losses, gradients and weights are those of PyTorch and of one rank,
whoever has which expert; files and checkpoints know nothing of the mesh; the worst routers run.
"""
import json
import math
import pathlib
import shutil
import unittest

import numpy as np

import configs
import mixture
import models
import oracle
import tools

F32 = 1e-5
MPIRUN = ("mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "4")
BATCH, SEQUENCE = 8, 23
SP = {"residual_sequence": ["tp"]}
# Axes, [shard], other sections; the sequence of 23 leaves padding wherever it is split.
MESHES = [(["ep=2"], {}, {}), (["ep=4"], {}, {}), (["ep=8"], {}, {}), (["dp=2", "ep=2"], {}, {"zero": {"stage": 1}}),
          (["dp=2", "ep=2"], {}, {"zero": {"stage": 3}}), (["ep=2", "tp=2"], SP, {}), (["tp=2"], {"experts": ["tp"]}, {}),
          (["tp=2"], {**SP, "experts": ["tp"]}, {}), (["dp=2"], {"experts": ["dp"]}, {"zero": {"stage": 2}}),
          (["ep=2", "cp=2"], {}, {"context": {"layout": "zigzag"}}),
          (["pp=2", "ep=2"], {}, {"pipeline": {"schedule": "zb-h1"}}), (["pp=3", "ep=2"], {}, {}),
          (["ep=2"], {}, {"recompute": {"policy": "full"}}), (["ep=2"], {}, {"recompute": {"policy": "selective"}})]
# The same of tokens that are exchanged, with slots for an even choice, for a quarter more, and for all.
EXCHANGED = [(["ep=2"], {}, 1.0, {}), (["ep=4"], {}, 1.25, {}), (["ep=8"], {}, 1.0, {}), (["ep=4"], {}, "worst", {}),
             (["dp=2", "ep=2"], {}, 1.0, {"zero": {"stage": 1}}), (["dp=2", "ep=4"], {}, 1.25, {"zero": {"stage": 3}}),
             (["ep=2", "tp=2"], SP, 1.0, {}), (["tp=2"], {**SP, "experts": ["tp"]}, 1.0, {}),
             (["dp=2"], {"experts": ["dp"]}, 1.0, {"zero": {"stage": 2}}),
             (["ep=2", "cp=2"], {}, 1.0, {"context": {"layout": "zigzag"}}),
             (["ep=2", "tp=2"], {**SP, "experts": ["ep", "tp"]}, 1.0, {}),
             (["pp=2", "ep=2"], {}, 1.0, {"pipeline": {"schedule": "zb-h1"}}),
             (["ep=2"], {}, 1.0, {"recompute": {"policy": "full"}})]
MODELS = {"mixtral": {**configs.MIXTRAL, "num_local_experts": 8}, "qwen3_moe": configs.QWEN3_MOE,
          "qwen2_moe": configs.QWEN2_MOE, "olmoe": configs.OLMOE,
          "dots1": configs.DOTS1}
# The first two on every mesh, the others where they differ from these.
FEW = ([["ep=4"], {}, {}], [["ep=2", "tp=2"], SP, {}], [["tp=2"], {"experts": ["tp"]}, {}],
       [["pp=2", "ep=2"], {}, {"pipeline": {"schedule": "zb-h1"}}], [["ep=2", "cp=2"], {}, {"context": {"layout": "zigzag"}}])

class Experts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)
        cls.data = cls.space.tokens(configs.corpus())

    def plan(self, config, axes, shard=None, **sections):
        return self.space.compile(config, tools.spec_on(axes, BATCH, SEQUENCE, shard=shard or {}, **sections))

    def expected(self, config, weights):
        exact = models.weights_from(config, {n: w.detach().numpy() for n, w in weights.items()})
        with mixture.heard() as routers:
            found = oracle.gradients(config, exact, *oracle.windows(configs.corpus(), BATCH, SEQUENCE, 0, 0))
        return *found, mixture.load(config, routers)

    def check(self, run, expected):
        loss, gradients, load = expected
        self.assertEqual(run.metrics[0]["expert_load"], load)
        self.assertAlmostEqual(run.losses[0] / loss, 1, delta=F32)
        norm = math.sqrt(sum(np.square(gradient).sum() for gradient in gradients.values()))
        self.assertAlmostEqual(run.metrics[0]["grad_norm"] / norm, 1, delta=1e-6)
        found = run.gradients
        self.assertEqual(set(found), set(gradients))
        errors = {n: oracle.relative_error(found[n], gradients[n]) for n in gradients}
        self.assertEqual({n: e for n, e in errors.items() if not e < F32}, {}, "relative L2 errors")

    def test_gradients_are_pytorchs_on_every_mesh(self):
        for name, config in MODELS.items():
            weights = models.random_weights(config, 17)
            init, expected = self.space.save_weights(weights), self.expected(config, weights)
            for axes, shard, sections in MESHES if name in ("mixtral", "qwen3_moe") else FEW:
                if axes[0] == "pp=3" and config["num_hidden_layers"] < 3:
                    continue
                with self.subTest(name, axes=axes, **shard, **sections):
                    plan = self.plan(config, axes, shard, **sections)
                    self.check(self.space.train(plan, self.data, 1, lr=0, init=init), expected)

    def test_exchanged_tokens_have_pytorchs_gradients(self):
        for name, config in MODELS.items():
            weights = models.random_weights(config, 17)
            init, expected = self.space.save_weights(weights), self.expected(config, weights)
            for axes, shard, bound, sections in EXCHANGED if name in ("mixtral", "qwen3_moe") else EXCHANGED[6:7]:
                with self.subTest(name, axes=axes, bound=bound, **shard, **sections):
                    plan = self.plan(config, axes, shard, experts={"exchange": "all_to_all", "bound": bound}, **sections)
                    self.check(self.space.train(plan, self.data, 1, lr=0, init=init), expected)

    def test_equal_experts_are_a_dense_layer(self):
        """Their weights add up to 1, so nothing depends on the router, whose own gradient is 0; and a dense layer's
        gradients are the sums of theirs."""
        config, names = MODELS["mixtral"], {"w1": "gate_proj", "w3": "up_proj", "w2": "down_proj"}
        dense = {**{key: value for key, value in config.items() if "experts" not in key},
                 "model_type": "mistral", "architectures": ["MistralForCausalLM"]}

        def dense_name(name):
            block, _, projection = name.partition(".block_sparse_moe.experts.")
            return f"{block}.mlp.{names[projection.split('.')[1]]}.weight" if projection else name

        of_dense = models.random_weights(dense, 17)
        weights = {name: of_dense.get(dense_name(name), weight) for name, weight in models.random_weights(config, 17).items()}
        whole = self.space.train(self.plan(dense, ["dp=1"]), self.data, 1, lr=0, init=self.space.save_weights(of_dense))
        plan = self.plan(config, ["ep=4"], experts={"exchange": "all_to_all", "bound": 1.0})
        run = self.space.train(plan, self.data, 1, lr=0, init=self.space.save_weights(weights))
        self.assertAlmostEqual(run.losses[0] / whole.losses[0], 1, delta=F32)
        sums = {}
        for name, gradient in run.gradients.items():
            sums[dense_name(name)] = sums.get(dense_name(name), 0) + gradient.astype(np.float64)
        for name, gradient in sums.items():
            if name.endswith(".gate.weight"):
                self.assertLess(np.linalg.norm(gradient), F32 * run.metrics[0]["grad_norm"], name)
            else:
                self.assertLess(oracle.relative_error(whole.gradients[name], gradient), F32, name)

    def test_loss_has_the_same_bits_wherever_experts_are(self):
        """At equal samples a rank; one rank sums experts in the tree of which others have parts."""
        for name, config in MODELS.items():
            init = self.space.save_weights(models.random_weights(config, 17))
            losses = {}
            for ranks in (1, 2, 4, 8):
                axes = [f"dp={8 // ranks}", f"ep={ranks}"]
                experts = {"experts": {"exchange": "all_to_all", "bound": 1.0}} if ranks > 1 else {}
                plan = self.plan(config, axes, precision={"compute": "f32"}, **experts)
                losses[ranks] = self.space.train(plan, self.data, 1, lr=0, init=init).losses[0]
            self.assertEqual(len(set(losses.values())), 1, losses)

    @unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed")
    def test_processes_have_the_bits_of_threads(self):
        """Further rounds too: how many there are is a sum over processes."""
        for axes, shard, sections in ((["ep=4"], {}, {}), (["ep=2", "tp=2"], SP, {}),
                                      (["pp=2", "ep=2"], {}, {"pipeline": {"schedule": "zb-h1"}})):
            config = {**MODELS["mixtral"], "output_router_logits": True, "router_aux_loss_coef": 0.1}
            plan = self.plan(config, axes, shard, experts={"exchange": "all_to_all", "bound": 1.0}, **sections)
            init = self.space.save_weights(models.random_weights(config, 17))
            with self.subTest(axes=axes):
                one, many = (self.space.train(plan, self.data, 2, "--threads", 1, init=init, launcher=launcher)
                             for launcher in ((), MPIRUN))
                self.assertEqual(many.losses, one.losses)
                self.assertEqual(many.metrics[1]["balance_loss"], one.metrics[1]["balance_loss"])
                for name, weight in one.weights.items():
                    self.assertEqual(many.weights[name].tobytes(), weight.tobytes(), name)

    def test_more_ranks_than_cores(self):
        config = {**configs.MIXTRAL, "num_local_experts": 16}
        weights = models.random_weights(config, 17)
        init, expected = self.space.save_weights(weights), self.expected(config, weights)
        plan = self.space.compile(config, tools.spec(
            BATCH, 1, SEQUENCE, mesh={"axes": ["ep=8", "tp=2"]}, shard={**SP, "experts": ["ep", "tp"]},
            experts={"exchange": "all_to_all", "bound": 1.0}))
        self.check(self.space.train(plan, self.data, 1, lr=0, init=init), expected)

    def test_files_are_those_of_one_rank(self):
        config = MODELS["qwen3_moe"]
        one = self.space.initial_weights(self.plan(config, ["dp=1"]))
        for axes, shard, sections in MESHES[:7:2]:
            with self.subTest(axes=axes):
                again = self.space.initial_weights(self.plan(config, axes, shard, **sections))
                self.assertEqual(pathlib.Path(again).read_bytes(), pathlib.Path(one).read_bytes())

    def test_resumes_on_another_mesh(self):
        config = MODELS["qwen3_moe"]
        plans = [self.plan(config, axes) for axes in (["ep=4"], ["dp=1"], ["tp=2", "ep=2"])]
        whole = self.space.train(plans[1], self.data, 6)
        folder = self.space.file(".checkpoint")
        self.space.train(plans[0], self.data, 2, "--checkpoint", folder)
        self.space.train(plans[1], self.data, 4, "--resume", folder, "--checkpoint", folder)
        run = self.space.train(plans[2], self.data, 6, "--resume", folder)
        np.testing.assert_allclose(run.losses, whole.losses[4:], rtol=F32)
        for name, expected in whole.weights.items():
            self.assertLess(oracle.relative_error(run.weights[name], expected.astype(np.float64)), 1e-4, name)

    def test_worst_routers(self):
        """All scores equal, so that one rank has all tokens; one choice; all experts chosen."""
        for name, choices, is_even in (("mixtral", 2, True), ("qwen3_moe", 1, False), ("mixtral", 8, False)):
            config = {**MODELS[name], "num_experts_per_tok": choices}
            weights = models.random_weights(config, 5)
            for tensor, weight in weights.items():
                if is_even and tensor.endswith("block_sparse_moe.gate.weight"):
                    weight.data.zero_()
            init, expected = self.space.save_weights(weights), self.expected(config, weights)
            exchanged = {"experts": {"exchange": "all_to_all", "bound": 1.0}}
            for axes, sections in ((["dp=1"], {}), (["ep=4"], {}), (["ep=4"], exchanged)):
                with self.subTest(name, choices=choices, is_even=is_even, axes=axes, **sections):
                    run = self.space.train(self.plan(config, axes, **sections), self.data, 1, lr=0, init=init)
                    self.check(run, expected)
                    if sections and is_even:
                        self.assertEqual(run.metrics[0].get("rounds", 1), self.most_rounds(choices))
                    elif sections:
                        self.assertLessEqual(run.metrics[0].get("rounds", 1), self.most_rounds(choices))

    @staticmethod
    def most_rounds(choices, experts=8, ranks=4, tokens=SEQUENCE):
        """With a bound of 1 (PARALLELISM.md): a round of the worst routing takes as many tokens as find a slot each,
        and a row for each choice."""
        elsewhere = math.comb(experts - experts // ranks, choices) / math.comb(experts, choices)
        slots = min(tokens, math.ceil(tokens * (1 - elsewhere)))
        rows = math.ceil(tokens * choices / ranks)
        of_token = min(choices, experts // ranks)
        return math.ceil(tokens / min(slots, max(rows, of_token) // of_token))

    def test_auto_takes_less_time(self):
        """By what explain says of either."""
        config = MODELS["mixtral"]
        for axes in (["ep=2"], ["ep=8"]):
            with self.subTest(axes=axes):
                seconds = {}
                for way in ("gathered", "all_to_all", "auto"):
                    plan = self.plan(config, axes, experts={"exchange": way})
                    told = json.loads(self.space.must("meshwork", "explain", plan, "--json").stdout)
                    seconds[way] = told["estimate"]["step_ms"]
                self.assertEqual(seconds["auto"], min(seconds.values()))

    def test_compile_says_why(self):
        done = self.space.must("meshwork", "compile", tools.ROOT / "examples/mixtral-tiny.json", "--spec",
                               tools.ROOT / "examples/ep2.toml", "-o",
                               self.space.file(".mwplan"))
        self.assertRegex(done.stderr, "experts: (gathered|all_to_all); a step should take [0-9.e+]+ ms with gathered, "
                                      "[0-9.e+]+ ms with all_to_all")

    def test_what_is_refused(self):
        def refused(config, axes, shard=None, **sections):
            spec = tools.spec(BATCH, 1, SEQUENCE, mesh={"axes": axes}, shard=shard or {}, **sections)
            done = self.space.call("meshwork", "compile", self.space.model(config), "--spec",
                                   self.space.write(".toml", spec), "-o", self.space.file(".mwplan"))
            self.assertEqual(done.returncode, 78, done.stderr)
            return done.stderr

        said = refused({**MODELS["mixtral"], "num_local_experts": 6}, ["ep=4"])
        self.assertIn("6", said)
        self.assertIn("experts", said)
        self.assertIn("leaves out axis \"ep\"", refused(MODELS["mixtral"], ["dp=2", "ep=2"], {"batch": ["dp"]}))
        exchange = {"exchange": "all_to_all"}
        said = refused(MODELS["mixtral"], ["tp=2"], {"experts": ["tp"]}, experts=exchange)
        self.assertIn("ranks along 'tp' have other experts, but the same tokens here; write \"gathered\"", said)
        self.assertIn("has no meaning where no axis splits experts", refused(MODELS["mixtral"], ["dp=2"], experts=exchange))
        for bound in (0.5, "nan", "most"):
            self.assertIn("expected a number from 1 on, or \"worst\"",
                          refused(MODELS["mixtral"], ["ep=2"], experts={**exchange, "bound": bound}))
        self.assertIn("has no meaning where tokens are gathered",
                      refused(MODELS["mixtral"], ["ep=2"], experts={"exchange": "gathered", "bound": 2}))


if __name__ == "__main__":
    unittest.main()
