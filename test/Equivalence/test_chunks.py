"""More tokens than a chunk of the head: chunks repeat, over sequences and within them, and the last of each
is shorter. Against one rank, whose chunks are others, and PyTorch, which has none; processes against threads
and another number of threads, bit by bit.
"""
import pathlib
import shutil
import unittest

import configs
import oracle
import models
import tools
from test_parallel import EPSILON, RATE, Agreement

BATCH, SEQUENCE, VOCABULARY = 3, 700, 131
LLAMA = {**configs.LLAMA, "vocab_size": VOCABULARY, "max_position_embeddings": SEQUENCE, "num_hidden_layers": 1}
# 256 tokens a chunk: three chunks a sequence, of which the last has 188.
LAYOUTS = ((["dp=1", "tp=2"], {"stage": 0}), (["dp=3", "tp=2"], {"stage": 3, "axes": ["dp"]}))


class Chunks(Agreement):
    cost_s = 15
    batch, sequence, corpus = BATCH, SEQUENCE, configs.corpus(vocabulary=VOCABULARY, length=7000)

    def plan(self, axes, zero, **sections):
        ranks = int(axes[0].split("=")[1])
        return self.space.compile(LLAMA, tools.spec(BATCH, BATCH // ranks, SEQUENCE, mesh={"axes": axes}, zero=zero,
                                                    optimizer={"epsilon": EPSILON}, **sections))

    def run_plan(self, plan, weights, *options, steps=1, **more):
        return self.space.train(plan, self.corpus, steps, *options, lr=RATE, init=weights, **more)

    def test_ranks_agree(self):
        arrays = {n: w.detach().numpy() for n, w in self.random_weights(LLAMA).items()}
        weights = self.space.save_weights(self.random_weights(LLAMA))
        limits = self.gradient_limits(LLAMA)
        base = self.run_plan(self.plan(["dp=1", "tp=1"], {"stage": 0}), weights)
        loss, exact = oracle.gradients(LLAMA, models.weights_from(LLAMA, arrays),
                                       *oracle.windows(self.corpus, BATCH, SEQUENCE, 0, 0))
        self.assertAlmostEqual(base.losses[0] / loss, 1, delta=1e-5)
        for name, found in base.gradients.items():
            self.assertLess(oracle.relative_error(found, exact[name]), 1e-5, name)
        for axes, zero in LAYOUTS:
            with self.subTest(axes=axes):
                run = self.run_plan(self.plan(axes, zero), weights)
                self.assertAlmostEqual(run.losses[0] / base.losses[0], 1, delta=1e-6)
                self.check_weights(run.weights, base.weights, limits, steps=1)

    @unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed")
    def test_processes_and_threads_give_the_same_bits(self):
        weights = self.space.save_weights(self.random_weights(LLAMA))
        plan = self.plan(["dp=1", "tp=2"], {"stage": 0}, precision={"compute": "bf16"})
        threads = self.run_plan(plan, weights, "--threads", 1, steps=2)
        others = [self.run_plan(plan, weights, "--threads", 2, steps=2),
                  self.run_plan(plan, weights, "--threads", 1, steps=2,
                                launcher=["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"])]
        for other in others:
            self.assertEqual(other.weight_bytes, threads.weight_bytes)
            self.assertEqual(pathlib.Path(other.gradients_path).read_bytes(),
                             pathlib.Path(threads.gradients_path).read_bytes())


if __name__ == "__main__":
    unittest.main()
