"""One rank against many, one microbatch against many, one run against its repetition.

Tolerance. Runs that split the batch differently add the same terms in another order.
A gradient is a sum over T tokens; reordering changes it by rounding errors that add
up like a random walk, about unit * sqrt(T) times the sum of the norms of its terms
(Higham, Accuracy and Stability, section 4.2, with random signs), taken here per
sample. SPREAD covers the tail and the few roundings ahead of that sum.
"""
import unittest

import numpy as np

import configs
import models
import oracle
import tools

UNIT, SPREAD = 2.0 ** -24, 4
STEPS, RATE, EPSILON = 3, 1e-2, 1e-2
# (dp, micro): four sequences on 1, 2, 4 ranks in 4, 2, 1 microbatches.
SPLITS = ((1, 4), (1, 2), (1, 1), (2, 2), (2, 1), (4, 1))


class Agreement(unittest.TestCase):
    """How far runs of one model may lie apart when only the order of sums differs."""
    batch, sequence, corpus = configs.BATCH, configs.SEQUENCE, configs.corpus()

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)

    @staticmethod
    def random_weights(config):
        return models.random_weights(config, 37)

    def gradient_limits(self, config):
        """Name -> how far two runs' gradients of the first step may lie apart (L2)."""
        arrays = {n: w.detach().numpy() for n, w in self.random_weights(config).items()}
        weights = models.weights_from(config, arrays)
        tokens, targets = oracle.windows(self.corpus, self.batch, self.sequence, 0, 0)
        sums = dict.fromkeys(weights, 0.0)
        for i in range(self.batch):
            _, parts = oracle.gradients(config, weights, tokens[i:i + 1],
                                        targets[i:i + 1])
            for name, part in parts.items():
                sums[name] += np.linalg.norm(part) / self.batch
        walk = SPREAD * UNIT * np.sqrt(self.batch * self.sequence)
        return {name: walk * size for name, size in sums.items()}

    def check_weights(self, found, expected, limits, steps):
        self.assertEqual(set(found), set(expected))
        for name, weight in found.items():
            # A step changes by at most the gradient's change over epsilon, twice:
            # first and second moment.
            limit = steps * (2 * RATE * limits[name] / EPSILON + 16 * UNIT * RATE
                             + 4 * UNIT * np.abs(expected[name]))
            error = np.abs(weight - expected[name])
            self.assertLess((error / limit).max(), 1, name)


class Parallel(Agreement):

    def run_splits(self, config, steps, splits=SPLITS, seed=0):
        """(dp, micro) -> Run, all from the same random weights. Such an epsilon
        makes AdamW Lipschitz: a small change of a gradient stays small."""
        weights = self.space.save_weights(self.random_weights(config))
        runs = {}
        for dp, micro in splits:
            plan = self.space.compile(config, tools.spec(
                configs.BATCH, micro, configs.SEQUENCE, dp=dp,
                optimizer={"epsilon": EPSILON}))
            runs[dp, micro] = self.space.train(plan, configs.corpus(), steps,
                                               lr=RATE, init=weights, seed=seed)
        return runs

    def check_agreement(self, config):
        one_step = self.run_splits(config, 1)
        limits = self.gradient_limits(config)
        base = one_step[SPLITS[0]]
        for split in SPLITS[1:]:
            with self.subTest("gradients", dp=split[0], micro=split[1]):
                run = one_step[split]
                self.assertAlmostEqual(run.losses[0] / base.losses[0], 1, delta=1e-6)
                found, expected = run.gradients, base.gradients
                self.assertEqual(set(found), set(limits))
                far = {n: np.linalg.norm(found[n] - expected[n]) / limits[n]
                       for n in limits}
                self.assertLess(max(far.values()), 1, max(far, key=far.get))
        return limits

    def test_loss_and_gradients(self):
        for name in ("gpt2", "llama"):
            with self.subTest(name):
                self.check_agreement(configs.ALL[name])

    def test_every_updated_weight(self):
        config = configs.QWEN3
        limits = self.gradient_limits(config)
        runs = self.run_splits(config, STEPS)
        base = runs[SPLITS[0]]
        expected = base.weights
        for split in SPLITS[1:]:
            with self.subTest(dp=split[0], micro=split[1]):
                np.testing.assert_allclose(runs[split].losses, base.losses, rtol=1e-6)
                self.check_weights(runs[split].weights, expected, limits, STEPS)

    def test_dropout_is_the_documented_one(self):
        """Masks are functions of seed, step, name and global index: PyTorch, told
        the rule, agrees on losses and gradients, whatever the split."""
        gpt2 = {**configs.GPT2, "embd_pdrop": 0.1, "attn_pdrop": 0.2, "resid_pdrop": 0.3}
        llama = {**configs.LLAMA, "attention_dropout": 0.25}
        for config in (gpt2, llama):
            for split, run in self.run_splits(config, 1, seed=5).items():
                with self.subTest(config["model_type"], dp=split[0], micro=split[1]):
                    self.check_dropout(config, run)

    def check_dropout(self, config, run):
        arrays = {n: w.detach().numpy()
                  for n, w in self.random_weights(config).items()}
        batch = oracle.windows(configs.corpus(), configs.BATCH, configs.SEQUENCE, 5, 0)
        loss, expected = oracle.gradients(config, models.weights_from(config, arrays),
                                          *batch, drop=oracle.dropout(5, 0))
        self.assertAlmostEqual(run.losses[0] / loss, 1, delta=1e-5)
        for name, found in run.gradients.items():
            self.assertLess(oracle.relative_error(found, expected[name]), 1e-5, name)

    def test_dropout_differs_between_steps(self):
        """lr 0 and a file of one window: only the masks change."""
        config = {**configs.GPT2, "resid_pdrop": 0.3}
        plan = self.space.compile(config, tools.spec(configs.BATCH, 2, configs.SEQUENCE))
        weights = self.space.save_weights(self.random_weights(config))
        window = configs.corpus(length=configs.SEQUENCE + 1)
        run = self.space.train(plan, window, 3, lr=0, init=weights)
        self.assertEqual(len(set(run.losses)), 3)
        arrays = {n: w.detach().numpy()
                  for n, w in self.random_weights(config).items()}
        exact = models.weights_from(config, arrays)
        batch = oracle.windows(window, configs.BATCH, configs.SEQUENCE, 0, 0)
        for step, found in enumerate(run.losses):
            loss, _ = oracle.gradients(config, exact, *batch,
                                       drop=oracle.dropout(0, step))
            self.assertAlmostEqual(found / loss, 1, delta=1e-5)

    def test_same_bytes(self):
        """Again, and with another number of threads."""
        config = {**configs.LLAMA, "attention_dropout": 0.25}
        for dp, compute in ((1, "f32"), (1, "bf16"), (2, "f32")):
            plan = self.space.compile(config, tools.spec(
                configs.BATCH, 2, configs.SEQUENCE, dp=dp, compute=compute))
            runs = [self.space.train(plan, configs.corpus(), 4, "--threads", threads)
                    for threads in (1, 1, 2)]
            with self.subTest(dp=dp, compute=compute):
                for run in runs[1:]:
                    self.assertEqual(run.losses, runs[0].losses)
                    self.assertEqual(run.weight_bytes, runs[0].weight_bytes)

    def test_initial_weights_do_not_depend_on_the_mesh(self):
        files = []
        for dp in (1, 4):
            plan = self.space.compile(configs.MISTRAL, tools.spec(4, 1, 23, dp=dp))
            with open(self.space.initial_weights(plan, seed=9), "rb") as file:
                files.append(file.read())
        self.assertEqual(*files)


if __name__ == "__main__":
    unittest.main()
