"""Weights that travel in 8 bits (zero.weights): ranks compute with the rounded weights, as from a file that was rounded
here before; the optimizer keeps its own. Beside FP8 products nothing changes but what is demanded."""
import collections
import re
import unittest

import numpy as np
import torch

import configs
import fp8
import oracle
import safetensors
import test_fp8
import tools
from test_cuda import emulated

BATCH, SEQUENCE = 12, 17
# Of the norm: sums of some 2^8 f32, in another order where a gathered matrix lies in memory otherwise.
SAME = 2.0 ** -24 * 2 ** 8
GPT2 = {**configs.GPT2, "vocab_size": 131, "n_head": 4, "n_inner": 101}
LLAMA = {**configs.LLAMA, "vocab_size": 131}
QWEN2 = {**configs.QWEN2, "vocab_size": 131}
CORPUS = configs.corpus(vocabulary=131)
# Sizes that three and four ranks do not divide, and parts shorter than a row.
LAYOUTS = [(GPT2, ["dp=3"], {}), (LLAMA, ["dp=2", "tp=2"], {"shard": {"residual_sequence": ["tp"]}}),
           (QWEN2, ["dp=4"], {"recompute": {"policy": "full"}, "overlap": {"collectives": "always"}}),
           (GPT2, ["pp=2", "dp=2"], {"pipeline": {"schedule": "zb-h1"}}),
           (LLAMA, ["dp=2", "cp=2"], {"zero": {"axes": ["cp", "dp"], "gathered": ["cp"]}}),
           (LLAMA, ["dp=2"], {"zero": {"gathered": "keep"}, "recompute": {"policy": "none"}}),
           (configs.MIXTRAL, ["ep=2", "dp=2"], {"shard": {"experts": ["ep"]}})]


def spec(mesh, weights=None, micro=1, compute="f32", zero=None, **sections):
    keys = {"stage": 3, **(zero or {}), **({"weights": weights} if weights else {})}
    return tools.spec(BATCH, micro, SEQUENCE, compute=compute, mesh={"axes": mesh}, zero=keys, **sections)


def rows_of(rows):
    """Parts of the row's largest magnitude over 127, all of it in f32."""
    largest = np.abs(rows).max(1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(largest > 0, rows * (np.float32(127) / largest), np.float32(0))
    return np.rint(parts) * (largest / np.float32(127))


def tensors_of(stacks):
    """All experts of a layer are one tensor."""
    largest = float(max(np.abs(stack).max() for stack in stacks))
    return [fp8.quantized(torch.from_numpy(stack), fp8.E4M3, largest).numpy() for stack in stacks]


class QuantizedWeights(unittest.TestCase):
    cost_s = 90

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)

    def last_dims(self, config):
        """Name in files, numbers of experts as {} -> the size of a row."""
        with open(self.space.model(config)) as file:
            lines = file.readlines()
        sizes = {}
        for line in lines:
            found = re.search(r'transformer.parameter "([^"]+)".*: tensor<([0-9x]+)xf32', line)
            if found:
                pattern = re.search(r'files \[#transformer.file<"([^"]+)"', line)
                sizes[pattern[1] if pattern else found[1]] = int(found[2].split("x")[-1])
        return sizes

    def rounded(self, config, weights, how):
        result, stacks = dict(weights), collections.defaultdict(list)
        last = self.last_dims(config)
        for name, array in weights.items():
            pattern = name if name in last else re.sub(r"experts\.\d+\.", "experts.{}.", name)
            if array.ndim > 1 and not name.endswith("block_sparse_moe.gate.weight"):
                stacks[pattern].append(name)
        for pattern, names in stacks.items():
            arrays = [weights[name] for name in names]
            parts = (tensors_of(arrays) if how == "fp8" else
                     [rows_of(a.reshape(-1, last[pattern])).reshape(a.shape) for a in arrays])
            result |= dict(zip(names, parts))
        return result

    def weights_of(self, config, seed=3):
        plan = self.space.compile(config, tools.spec(BATCH, 1, SEQUENCE))
        draw = np.random.default_rng(seed)
        weights = {name: array + draw.normal(0, 0.02, array.shape).astype("f4")
                   for name, array in safetensors.read(self.space.initial_weights(plan)).items()}
        weights = {name: array.astype("f4") for name, array in weights.items()}
        table = next(name for name in weights if "wte" in name or "embed_tokens" in name)
        weights[table][5:9] = 0  # rows of zeros
        weights[table][11] *= 1e-20
        return weights

    def assert_rounds(self, config, mesh, sections, how, space=None, options=()):
        space = space or self.space
        weights = self.weights_of(config)
        runs = [space.train(space.compile(config, spec(mesh, key, **sections)), CORPUS, 1, *options, lr=0,
                            init=space.save_weights(init))
                for key, init in ((how, weights), (None, self.rounded(config, weights, how)), (None, weights))]
        errors, effect = ({name: oracle.relative_error(runs[0].gradients[name], gradient)
                           for name, gradient in runs[i].gradients.items()} for i in (1, 2))
        self.assertAlmostEqual(runs[0].losses[0] / runs[1].losses[0], 1, delta=1e-6)
        self.assertLess(max(errors.values()), SAME, max(errors, key=errors.get))
        self.assertGreater(min(effect.values()), 100 * SAME, "cannot tell")
        return runs

    def test_computes_with_what_was_rounded(self):
        for i, (config, mesh, sections) in enumerate(LAYOUTS):
            for how in ("int8", "fp8"):
                with self.subTest(model=config["model_type"], mesh=mesh, how=how, **sections):
                    self.assert_rounds(config, mesh, sections, how)

    def test_on_a_gpu(self):
        gpu = {"target": {"device": "cuda", "arch": "sm_90a"}}
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_CC="9.0")) as space:
            for how in ("int8", "fp8"):
                with self.subTest(how=how):
                    self.assert_rounds(LLAMA, ["dp=2"], gpu, how, space=space, options=["--share-gpu"])

    def test_no_mesh_changes_a_bit_of_what_is_rounded(self):
        """Over one rank there is nothing to gather; its numbers are the same."""
        weights = self.space.save_weights(self.weights_of(LLAMA))
        losses = [self.space.train(self.space.compile(LLAMA, spec(mesh, "int8", micro=micro)), CORPUS, 3,
                                   init=weights).losses for mesh, micro in ((["dp=1"], 12), (["dp=3"], 4))]
        np.testing.assert_allclose(*losses, rtol=1e-6)

    def test_resumes_on_another_mesh(self):
        """What is kept is the optimizer's, so what is gathered makes no difference to a checkpoint."""
        weights, folder = self.space.save_weights(self.weights_of(LLAMA)), self.space.file("")
        three, two = (self.space.compile(LLAMA, spec(mesh, "int8", micro=micro)) for mesh, micro in ((["dp=3"], 4), (["tp=2", "dp=2"], 6)))
        self.space.train(three, CORPUS, 2, "--checkpoint", folder, init=weights)
        whole = self.space.train(three, CORPUS, 3, init=weights)
        resumed = self.space.train(two, CORPUS, 3, "--resume", folder)
        self.assertAlmostEqual(resumed.losses[-1] / whole.losses[-1], 1, delta=1e-5)

    def test_trains_as_well(self):
        """500 steps of the quickstart's model are as far apart; they take too long here."""
        losses = {how: np.mean(self.space.train(self.space.compile(LLAMA, spec(["dp=2"], how, micro=6, compute="bf16")), CORPUS,
                                                60, lr=3e-3).losses[-10:]) for how in ("compute", "int8", "fp8")}
        for how in ("int8", "fp8"):
            self.assertAlmostEqual(losses[how] / losses["compute"], 1, delta=0.01, msg=str(losses))

    def test_beside_fp8_products_nothing_changes(self):
        runs = []
        for weights in ("compute", "fp8"):
            plan = self.space.compile(test_fp8.LLAMA, tools.spec(
                8, 2, 32, compute="bf16", mesh={"axes": ["dp=2"]}, zero={"stage": 3, "weights": weights},
                precision=test_fp8.FP8))
            runs.append((self.space.train(plan, CORPUS, 20), self.space.explain(plan)["collectives"]))
        self.assertEqual(runs[0][0].losses, runs[1][0].losses)
        self.assertEqual(runs[0][0].weight_bytes, runs[1][0].weight_bytes)
        self.assertEqual(runs[0][1], runs[1][1])

    def test_what_is_saved_is_not_rounded(self):
        weights = self.weights_of(LLAMA)
        run = self.space.train(self.space.compile(LLAMA, spec(["dp=2"], "int8")), CORPUS, 1, lr=0,
                               init=self.space.save_weights(weights))
        for name, array in weights.items():
            self.assertTrue(np.array_equal(run.weights[name], array), name)

    def test_an_infinity_is_not_hidden(self):
        for how in ("int8", "fp8"):
            weights = self.weights_of(LLAMA)
            weights["model.layers.0.mlp.up_proj.weight"][3, 5] = np.inf
            plan = self.space.compile(LLAMA, spec(["dp=2"], how))
            done = self.space.call("meshwork-run", plan, "--data", self.space.tokens(CORPUS), "--data-type", "u16", "--steps", 1,
                                   "--init", self.space.save_weights(weights))
            with self.subTest(how=how):
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stderr, "NaN|infinity")


if __name__ == "__main__":
    unittest.main()
