"""Experts in FP8 (precision.matmul = "fp8") against PyTorch doing the same steps, on one rank and on several,
with tokens that are gathered or exchanged.

Tolerance: as test_fp8. Of some steps, which change no weight, no value lies at a border between two numbers of 8
bits: there gradients agree as in f32, wherever experts, tokens and rows are. A wrong scale changes all.
"""
import unittest

import numpy as np

import configs
import fp8
import models
import oracle
import test_fp8
import tools
from kernels import Separate
from test_cuda import emulated

STEPS = range(2, 10)
# Of these tokens each rank of four has a multiple of 16, so its linear layers are in FP8 as those of one rank.
BATCH, SEQUENCE = 4, 32
TARGETS = BATCH * SEQUENCE
SIZES = {"vocab_size": 136, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
MIXTRAL = {**configs.MIXTRAL, **SIZES}
# With layers of linear products, shared experts, and a width that is no multiple of 16.
QWEN2_MOE = {**configs.QWEN2_MOE, **SIZES, "shared_expert_intermediate_size": 32}
MODELS = {"mixtral": MIXTRAL, "qwen2_moe": QWEN2_MOE}
SP = {"residual_sequence": ["tp"]}
EXCHANGED = {"experts": {"exchange": "all_to_all", "bound": 1.0}}
# Axes, [shard], other sections; "batch": microbatches, which have one scale where it is delayed. So these are at an
# even place.
MESHES = [(["ep=2"], {}, {"experts": {"exchange": "gathered"}}), (["ep=2"], {}, EXCHANGED), (["ep=4"], {}, EXCHANGED),
          (["dp=2"], {}, {"zero": {"stage": 1}}), (["dp=2", "ep=2"], {}, {"zero": {"stage": 3}}),
          (["dp=2", "ep=2"], {}, {"zero": {"stage": 3}, **EXCHANGED}), (["tp=2"], {}, {}), (["ep=2", "tp=2"], SP, EXCHANGED),
          (["tp=2"], {"experts": ["tp"]}, {}), (["ep=2", "cp=2"], {}, {"context": {"layout": "zigzag"}}),
          (["pp=2", "ep=2"], {"layers": ["pp"]}, {"pipeline": {"schedule": "zb-h1"}, "batch": 2}),
          (["ep=2"], {}, {"recompute": {"policy": "full"}, **EXCHANGED}), (["dp=1"], {}, {"batch": 2})]
# Of these widths no linear layer is in FP8, so only experts round, however long a rank's part of a sequence is.
ODD_WIDTHS = {"vocab_size": 136, "hidden_size": 40, "intermediate_size": 36}
# A sequence of 23 leaves padding wherever it is split.
ODD_SEQUENCE = 23
PADDED = [(["ep=2", "cp=2"], {}, {"context": {"layout": "zigzag"}, **EXCHANGED}), (["ep=2", "tp=2"], SP, EXCHANGED),
          (["tp=2"], {"experts": ["tp"], **SP}, {"experts": {"exchange": "gathered"}}),
          (["ep=2", "cp=2"], {}, {"context": {"layout": "block"}, "recompute": {"policy": "full"}, **EXCHANGED})]
MARK = 0  # begins a document, each fifth token or so
DOCUMENTS = np.where(np.random.default_rng(7).random(len(test_fp8.CORPUS)) < 0.2, MARK, test_fp8.CORPUS)
BEGIN = ("--document-begin", MARK)


class Fp8Experts(unittest.TestCase):
    cost_s = 120

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)

    def spec(self, axes=("dp=1",), shard=None, precision=test_fp8.FP8, compute="f32", **sections):
        sizes = {name: int(size) for name, size in (axis.split("=") for axis in axes)}
        ranks = sizes.get("dp", 1) * sizes.get("ep", 1)
        micro = BATCH // ranks // sections.pop("batch", 1)
        return tools.spec(BATCH, micro, sections.pop("sequence", SEQUENCE), compute=compute, mesh={"axes": list(axes)},
                          shard=shard or {}, precision=precision, **sections)

    def run_steps(self, config, arrays, steps, *options, space=None, corpus=test_fp8.CORPUS, **spec):
        space = space or self.space
        plan = space.compile(config, self.spec(**spec))
        return space.train(plan, corpus, steps, *options, lr=0, init=space.save_weights(arrays))

    @staticmethod
    def batch_apart(step):
        """Of sequences of documents: tokens, targets, and attention within each."""
        tokens, targets = oracle.windows(DOCUMENTS, BATCH, SEQUENCE, 0, step)
        return (tokens, oracle.without_ends(tokens, targets, begin=MARK),
                Separate(oracle.documents(tokens, begin=MARK)))

    @staticmethod
    def batch(step):
        return oracle.windows(test_fp8.CORPUS, BATCH, SEQUENCE, 0, step)

    def gradients(self, config, arrays, steps, delayed, experts=True, batch=None):
        """Of the last step."""
        linear = fp8.Delayed(TARGETS) if delayed else fp8.linear
        rounded = fp8.Experts(TARGETS, delayed)
        weights = models.weights_from(config, arrays)
        for step in range(steps):
            rounded.begin_step()
            for weight in weights.values():
                weight.grad = None
            models.loss({**config, **({"experts": rounded} if experts else {})}, linear(weights), *(batch or self.batch)(step)).backward()
        return {n: w.grad.numpy() for n, w in weights.items() if w.grad is not None}

    def errors(self, found, expected):
        return {n: oracle.relative_error(found[n], expected[n]) for n in expected if np.any(expected[n])}

    def assert_agree(self, errors_after):
        largest = []
        for steps in STEPS:
            largest.append(max(errors_after(steps).values()))
            if largest[-1] < 1e-4:
                return
        self.fail(f"expected no difference after one of some steps, found {largest}")

    def test_gradients_are_pytorchs(self):
        for name, config in MODELS.items():
            arrays = test_fp8.arrays_of(config)
            for delayed in (False, True):

                def errors_after(steps):
                    expected = self.gradients(config, arrays, steps, delayed)
                    plain = self.errors(self.gradients(config, arrays, steps, delayed, experts=False), expected)
                    effect = [e for n, e in plain.items() if ".experts." in n]
                    self.assertLess(1e-2, np.median(effect), "cannot tell")
                    precision = test_fp8.DELAYED if delayed else test_fp8.FP8
                    run = self.run_steps(config, arrays, steps, precision=precision)
                    return self.errors(run.gradients, expected)

                with self.subTest(name, delayed=delayed):
                    self.assert_agree(errors_after)

    def check_mesh(self, config, axes, shard, sections, precision, *options, **both):
        arrays = test_fp8.arrays_of(config)
        self.assert_agree(lambda steps: self.errors(
            self.run_steps(config, arrays, steps, *options, axes=axes, shard=shard, precision=precision, **sections,
                           **both).gradients,
            self.run_steps(config, arrays, steps, *options, precision=precision, **both).gradients))

    def test_ranks_agree(self):
        for i, (axes, shard, sections) in enumerate(MESHES):
            config = MODELS["qwen2_moe" if i % 4 == 3 else "mixtral"]
            precision = (test_fp8.DELAYED, test_fp8.FP8)[i % 2]
            with self.subTest(config["model_type"], axes=axes, **shard, **sections, **precision):
                self.check_mesh(config, axes, shard, sections, precision)

    def test_padding_rounds_nothing(self):
        """It has no row, and no magnitude."""
        for i, (axes, shard, sections) in enumerate(PADDED):
            config = {**MODELS[("mixtral", "qwen2_moe")[i % 2]], **ODD_WIDTHS}
            precision = (test_fp8.DELAYED, test_fp8.FP8)[i // 2 % 2]
            with self.subTest(config["model_type"], axes=axes, shard=shard, **sections, **precision):
                self.check_mesh(config, axes, shard, sections, precision, sequence=ODD_SEQUENCE)

    def test_documents(self):
        """As PyTorch has them, on one rank; and ranks as one, in sequences that leave padding too."""
        arrays = test_fp8.arrays_of(MIXTRAL)

        def errors_after(steps):
            run = self.run_steps(MIXTRAL, arrays, steps, *BEGIN, corpus=DOCUMENTS, documents="apart",
                                 precision=test_fp8.DELAYED)
            return self.errors(run.gradients, self.gradients(MIXTRAL, arrays, steps, True, batch=self.batch_apart))

        self.assert_agree(errors_after)
        for (axes, shard, sections), precision in zip(PADDED[:2], (test_fp8.FP8, test_fp8.DELAYED), strict=True):
            with self.subTest(axes=axes, **precision):
                self.check_mesh({**MIXTRAL, **ODD_WIDTHS}, axes, shard, sections, precision, *BEGIN, corpus=DOCUMENTS,
                                documents="apart", sequence=ODD_SEQUENCE)

    def test_resumes_with_what_rows_had(self):
        """On the same mesh bit for bit; on another one as closely as ranks agree."""
        arrays = test_fp8.arrays_of(MIXTRAL)
        whole = self.run_steps(MIXTRAL, arrays, 4, compute="bf16")
        saved = self.space.file(".checkpoints")
        self.run_steps(MIXTRAL, arrays, 2, "--checkpoint", saved, compute="bf16")
        told = self.space.must("meshwork", "checkpoint", "inspect", saved).stdout
        self.assertRegex(told, r"state row_magnitude: F32, (\d+) elements in \1 tensors")
        for axes in (["dp=1"], ["ep=2", "tp=2"]):
            plan = self.space.compile(MIXTRAL, self.spec(axes, compute="bf16"))
            run = self.space.train(plan, test_fp8.CORPUS, 4, "--resume", saved, lr=0)
            if axes == ["dp=1"]:
                self.assertEqual(run.losses, whole.losses[2:])
            for found, expected in zip(run.losses, whole.losses[2:], strict=True):
                self.assertAlmostEqual(found / expected, 1, delta=test_fp8.FLIPPED)

    def test_a_model_learns(self):
        """Nearly as fast as without FP8."""
        last = {}
        for matmul in ("compute", "fp8"):
            plan = self.space.compile(MIXTRAL, self.spec(["ep=2"], precision={"matmul": matmul}, compute="bf16"))
            losses = self.space.train(plan, test_fp8.CORPUS, 60, lr=3e-3).losses
            last[matmul] = losses[0] - np.mean(losses[-5:])
        self.assertGreater(last["compute"], 0.5)
        self.assertLess(abs(last["fp8"] - last["compute"]), 0.1 * last["compute"])

    def test_explain_tells_of_rows(self):
        text = self.space.must("meshwork", "explain", self.space.compile(MIXTRAL, self.spec(compute="bf16"))).stdout
        self.assertIn("now, but rows that experts make by that of the steps before)", text)
        for weight in ("w1", "w2", "w3"):
            self.assertRegex(text, rf"experts.{weight}.weight +bf16 x bf16 to bf16 .* rounded to it")
        self.assertNotRegex(text, r"grouped_product .* rounded to it")

    def test_emulated_gpu(self):
        gpu = {"target": {"device": "cuda", "arch": "sm_90a"}}
        arrays = test_fp8.arrays_of(MIXTRAL)
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_CC="9.0")) as space:
            self.assert_agree(lambda steps: self.errors(
                self.run_steps(MIXTRAL, arrays, steps, space=space, **gpu).gradients,
                self.run_steps(MIXTRAL, arrays, steps).gradients))


if __name__ == "__main__":
    unittest.main()
