"""Mixtures of experts on a GPU against the same plans for the CPU, as test_cuda has it for other models: emulated where no
GPU is. The same choices are taken, so gradients differ by the order of sums alone.
"""
import pathlib
import unittest

import numpy as np

import configs
import mixture
import models
import tools
from test_cuda import GPU, emulated

BATCH, SEQUENCE = 4, 11
EXCHANGE = {"experts": {"exchange": "all_to_all", "bound": 1.0}}
MIXTRAL = {**configs.MIXTRAL, "output_router_logits": True, "router_aux_loss_coef": 0.1}
# Axes and sections: rows gathered and exchanged, in several rounds, with ZeRO and in pipelines.
MESHES = [(["dp=1"], {}), (["ep=2"], {"experts": {"exchange": "gathered"}}), (["ep=2"], EXCHANGE),
          (["dp=2", "ep=2"], {**EXCHANGE, "zero": {"stage": 3}, "recompute": {"policy": "full"}}),
          (["ep=2", "tp=2"], {**EXCHANGE, "shard": {"residual_sequence": ["tp"]}}),
          (["pp=2", "ep=2"], {**EXCHANGE, "pipeline": {"schedule": "zb-h1"}})]
# Sums of f32 in another order, and functions that a GPU approximates to 2^-22 (test_cuda).
F32 = 2e-5


class CudaExperts(unittest.TestCase):
    cost_s = 120

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace(**emulated())
        cls.addClassCleanup(cls.space.close)
        cls.data = cls.space.tokens(configs.corpus())

    def plan(self, config, axes, *options, **sections):
        return self.space.compile(config, tools.spec_on(axes, BATCH, SEQUENCE, **sections), *options)

    def check(self, config, axes, **sections):
        init = self.space.save_weights(models.random_weights(config, 17))
        share = [] if axes == ["dp=1"] else ["--share-gpu"]
        found, expected = (self.space.train(self.plan(config, axes, **sections, **target), self.data, 2, *options,
                                            lr=1e-3, init=init)
                           for target, options in ((GPU, share), ({}, [])))
        np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-6)
        for name, gradient in expected.gradients.items():
            self.assertLessEqual(np.linalg.norm(found.gradients[name] - gradient), F32 * np.linalg.norm(gradient), name)
        return found, expected

    def test_meshes(self):
        for axes, sections in MESHES:
            with self.subTest(axes=axes, **sections):
                found, expected = self.check(MIXTRAL, axes, **sections)
                for one, other in zip(found.metrics, expected.metrics):
                    self.assertAlmostEqual(one["balance_loss"] / other["balance_loss"], 1, delta=1e-6)

    def test_capacity(self):
        """The same choices are dropped, where a group's tokens are on several ranks, too."""
        for axes, sections in (MESHES[0], MESHES[2], MESHES[4]):
            experts = {"capacity": 1.0, **sections.get("experts", {})}
            with self.subTest(axes=axes):
                found, expected = self.check(MIXTRAL, axes, **{**sections, "experts": experts})
                for one, other in zip(found.metrics, expected.metrics):
                    self.assertEqual(one["dropped"], other["dropped"])
                    self.assertGreater(sum(one["dropped"]), 0)

    def test_families(self):
        """A shared expert, dense layers between; groups that no exchange splits evenly; a bias that moves."""
        for config in (configs.QWEN2_MOE, configs.QWEN3_MOE, configs.OLMOE, configs.DOTS1):
            with self.subTest(config["model_type"]):
                rate = {"bias_rate": 0.0625} if config is configs.DOTS1 else {}
                found, expected = self.check(config, ["ep=2"], experts={**EXCHANGE["experts"], **rate})
                for one, other in zip(found.metrics, expected.metrics):
                    self.assertEqual(one["expert_load"], other["expert_load"])
                for name, bias in expected.weights.items():
                    if mixture.untrained(name):
                        np.testing.assert_array_equal(found.weights[name], bias, name)

    def test_a_gpu_for_each_rank(self):
        """By NCCL: in one process, and under mpirun to the same bits."""
        init = self.space.save_weights(models.random_weights(MIXTRAL, 17))
        plan = self.plan(MIXTRAL, ["ep=2"], **GPU, **EXCHANGE)
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_DEVICES="2")) as gpus:
            one, many = (gpus.train(plan, self.data, 2, lr=1e-3, init=init, launcher=launcher)
                         for launcher in ([], ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2"]))
            self.assertEqual(one.weight_bytes, many.weight_bytes)
        self.assertEqual(one.losses, many.losses)
        shared = self.space.train(plan, self.data, 2, "--share-gpu", lr=1e-3, init=init)
        np.testing.assert_allclose(shared.losses, one.losses, rtol=1e-6)

    def copies_to_host(self, plan, init, **variables):
        """Of one step: copies in the streams that compute, metrics, and gradients."""
        log = self.space.file(".calls")
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_CALLS=log, **variables)) as space:
            found = space.train(plan, self.data, 1, "--share-gpu", lr=1e-3, init=init)
            gradients = found.gradients
        calls = [line.split() for line in pathlib.Path(log).read_text().splitlines()]
        computing = {stream for call, stream in calls if call == "graphLaunch"}
        return sum(call == "copyToHost" and stream in computing for call, stream in calls), found, gradients

    def one_word(self, axes, layers, **sections):
        """Copies to the host where slots are for all, where they suffice, and where not, less those of the first. Loss,
        metrics and gradients are those of the CPU each time."""
        config = {**MIXTRAL, "num_hidden_layers": layers}
        weights = models.random_weights(config, 17)
        # Routers of zeros send all tokens to the first experts, of one rank.
        uneven = {name: tensor.detach() * 0 if "block_sparse_moe.gate" in name else tensor for name, tensor in weights.items()}
        reads = []
        for bound, of in (("worst", weights), (1.9, weights), (1.0, uneven)):
            with self.subTest(bound=bound):
                experts = {"experts": {"exchange": "all_to_all", "bound": bound}}
                init = self.space.save_weights(of)
                plans = [self.space.compile(config, tools.spec_on(axes, BATCH, SEQUENCE, micro=1, **experts, **sections,
                                                                  **target)) for target in (GPU, {})]
                copies, found, gradients = self.copies_to_host(plans[0], init)
                reads.append(copies)
                expected = self.space.train(plans[1], self.data, 1, lr=1e-3, init=init)
                rounds = found.metrics[0].get("rounds", 1)
                self.assertEqual(rounds, expected.metrics[0].get("rounds", 1))
                (self.assertGreater if bound == 1 else self.assertEqual)(rounds, 1)
                np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-6)
                for key in ("balance_loss", "expert_load"):
                    np.testing.assert_allclose(found.metrics[0][key], expected.metrics[0][key], rtol=1e-6)
                for tensor, gradient in expected.gradients.items():
                    self.assertLessEqual(np.linalg.norm(gradients[tensor] - gradient), F32 * np.linalg.norm(gradient),
                                         tensor)
        return [copies - reads[0] for copies in reads[1:]]

    def test_the_host_reads_one_word_a_forward_pass(self):
        """Slots for all need no word; enough slots need one a microbatch and rank; where they do not suffice, each layer
        of both passes tells its rounds as well."""
        ranks, micro, layers = 2, BATCH // 2, 3
        words = ranks * micro
        self.assertEqual(self.one_word(["ep=2"], layers), [words, words * (1 + 2 * layers)])

    def test_each_stage_of_a_pipeline_has_a_word(self):
        ranks, micro, layers = 4, BATCH // 2, 4
        words = ranks * micro
        found = self.one_word(["pp=2", "ep=2"], layers, pipeline={"schedule": "zb-h1"})
        self.assertEqual(found, [words, words * (1 + 2 * layers // 2)])

    def test_each_instruction_against_the_cpu(self):
        kinds = ("TopK", "Pick", "PickGrad", "LimitChoices", "SortRows", "TakeRows", "CombineRows", "GroupedProduct", "GroupedGradient")
        for compute in ("f32", "bf16"):
            for axes, sections in MESHES[:3:2]:
                with self.subTest(compute=compute, axes=axes):
                    experts = {"capacity": 1.0, **sections.get("experts", {})}
                    plan = self.plan(configs.QWEN2_MOE, axes, "--with-cpu-code", "native", **GPU,
                                     **{**sections, "experts": experts}, precision={"compute": compute})
                    done = self.space.must("meshwork-run", plan, "--data", self.data, "--data-type", "u16", "--steps", 1,
                                           "--compare-cpu", *([] if axes == ["dp=1"] else ["--share-gpu"]))
                    for kind in kinds + (("AssignSlots",) if sections else ()):
                        self.assertRegex(done.stdout, rf"\b{kind} ")

    def test_the_same_bits_again(self):
        config = configs.MIXTRAL
        init = self.space.save_weights(models.random_weights(config, 17))
        plan = self.plan(config, ["ep=2"], **GPU, **EXCHANGE, precision={"compute": "bf16"})
        runs = [self.space.train(plan, self.data, 2, "--share-gpu", *options, lr=1e-3, init=init)
                for options in ([], ["--synchronous"])]
        self.assertEqual(runs[0].losses, runs[1].losses)
        self.assertEqual(runs[0].weight_bytes, runs[1].weight_bytes)


if __name__ == "__main__":
    unittest.main()
