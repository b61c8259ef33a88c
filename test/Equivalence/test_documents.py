"""Attention within the documents of a sequence, `batch.documents = "separate"`: against PyTorch
with the mask written out, on one rank and on several, on the CPU and on an emulated GPU."""
import unittest

import numpy as np

import configs
import models
import oracle
import tools
from kernels import Separate
from test_cuda import APPROXIMATE, GPU, ONE, emulated
from test_parallel import RATE, Agreement
from test_sharded import BATCH, GPT2, LLAMA, SEQUENCE, spec

F32 = 1e-5  # relative, as in test_training
MARK = 0  # A token that stands between documents, each fifth one or so.
SEPARATE = {"documents": "separate"}
# dp, tensor and sequence parallelism, a part of the heads on each rank, and ZeRO.
LAYOUTS = [({"dp": 2, "fsdp": 1, "tp": 1}, False, 0),
           ({"dp": 1, "fsdp": 1, "tp": 2}, True, 0),
           ({"dp": 1, "fsdp": 1, "tp": 4}, False, 0),
           ({"dp": 2, "fsdp": 1, "tp": 2}, True, 3)]


def corpus(vocabulary):
    ids = configs.corpus(vocabulary)
    return np.where(np.random.default_rng(7).random(len(ids)) < 0.2, MARK, ids)


class Documents(Agreement):
    batch, sequence = BATCH, SEQUENCE

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace(**emulated())
        cls.addClassCleanup(cls.space.close)

    def run_on(self, config, layout=ONE, options=("--document-begin", MARK), steps=1, **sections):
        plan = self.space.compile(config, spec(*layout, **{**SEPARATE, **sections}))
        weights = self.space.save_weights(self.random_weights(config))
        return self.space.train(plan, corpus(config["vocab_size"]), steps, *options, lr=RATE, init=weights)

    def expected(self, config, kernels=lambda tokens: None, drop=models.no_drop):
        arrays = {n: w.detach().numpy() for n, w in self.random_weights(config).items()}
        tokens, targets = oracle.windows(corpus(config["vocab_size"]), BATCH, SEQUENCE, 0, 0)
        return oracle.gradients(config, models.weights_from(config, arrays), tokens, targets,
                                drop=drop, kernels=kernels(tokens))

    def check(self, run, expected, factor=1):
        loss, gradients = expected
        self.assertAlmostEqual(run.losses[0] / loss, 1, delta=F32)
        found = run.gradients
        self.assertEqual(set(found), set(gradients))
        errors = {n: oracle.relative_error(found[n], gradients[n]) for n in gradients}
        self.assertEqual({n: e for n, e in errors.items() if not e < factor * F32}, {})

    def test_gradients_are_those_of_pytorch(self):
        for name in ("gpt2", "llama", "mistral", "qwen2"):
            for how in ("begin", "end"):
                with self.subTest(name, how=how):
                    config = configs.ALL[name]
                    expected = self.expected(config, lambda tokens: Separate(oracle.documents(tokens, **{how: MARK})))
                    run = self.run_on(config, options=(f"--document-{how}", MARK))
                    self.check(run, expected)
                    joined = self.expected(config)
                    self.assertGreater(abs(run.losses[0] / joined[0] - 1), 10 * F32, "documents do not matter")

    def test_dropout(self):
        config = {**configs.LLAMA, "attention_dropout": 0.25}
        expected = self.expected(config, lambda tokens: Separate(oracle.documents(tokens, begin=MARK)),
                                 drop=oracle.dropout(0, 0))
        self.check(self.run_on(config), expected)

    def test_ranks(self):
        for config in (GPT2, LLAMA):
            expected = self.expected(config, lambda tokens: Separate(oracle.documents(tokens, begin=MARK)))
            for layout in LAYOUTS:
                with self.subTest(config["model_type"], layout=layout):
                    self.check(self.run_on(config, layout), expected)

    def test_on_a_gpu(self):
        for config in (GPT2, LLAMA, {**configs.MISTRAL, "vocab_size": 136}):
            expected = self.expected(config, lambda tokens: Separate(oracle.documents(tokens, end=MARK)))
            with self.subTest(config["model_type"]):
                self.check(self.run_on(config, options=("--document-end", MARK), **GPU), expected, APPROXIMATE)
        expected = self.expected(LLAMA, lambda tokens: Separate(oracle.documents(tokens, begin=MARK)))
        options = ("--document-begin", MARK, "--share-gpu")
        self.check(self.run_on(LLAMA, LAYOUTS[-1], options, **GPU), expected, APPROXIMATE)

    def test_each_instruction_in_bf16(self):
        """A GPU's against the CPU's, and they learn."""
        plan = self.space.compile(LLAMA, spec(*ONE, precision={"compute": "bf16"}, **SEPARATE, **GPU),
                                  "--with-cpu-code", "native")
        ids, options = corpus(136), ("--document-begin", MARK)
        done = self.space.must("meshwork-run", plan, "--data", self.space.tokens(ids), "--data-type", "u16",
                               "--steps", 2, "--compare-cpu", *options)
        for kind in ("Attention", "AttentionGrad"):
            self.assertRegex(done.stdout, rf"{kind} \(bf16\)")
        losses = self.space.train(plan, ids, 10, *options, lr=1e-2).losses
        self.assertLess(losses[-1], losses[0] - 0.1)

    def test_by_cudnn(self):
        """Its graph, with this mask alone and with a window too, against the CPU's attention."""
        for name in ("gpt2", "mistral"):
            with self.subTest(name):
                config = {**configs.ALL[name], "vocab_size": 136, **({"n_head": 2} if name == "gpt2" else
                                                                     {"head_dim": 16})}
                plan = self.space.compile(config, spec(*ONE, precision={"compute": "bf16"}, **SEPARATE, **GPU),
                                          "--with-cpu-code", "native")
                done = self.space.must("meshwork-run", plan, "--data", self.space.tokens(corpus(136)),
                                       "--data-type", "u16", "--steps", 2, "--compare-cpu", "--cudnn-attention",
                                       "--document-begin", MARK)
                self.assertRegex(done.stdout, r"cuDNN ran (\d+) of \1 instructions of attention")
                self.assertRegex(done.stdout, r"AttentionGrad \(bf16\)")


if __name__ == "__main__":
    unittest.main()
