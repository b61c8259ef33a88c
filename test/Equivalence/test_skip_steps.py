"""--skip-bad-steps: a step whose loss is not finite changes nothing, and the run goes on."""
import json
import pathlib
import unittest

import numpy as np
import torch

import configs
import models
import oracle
import safetensors
import tools
from adamw import AdamW

STEPS, BAD_TOKEN = 14, 125
CONFIG = {**configs.LLAMA, "pad_token_id": None}
TABLE = "model.embed_tokens.weight"


class SkipBadSteps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)
        cls.plan = cls.space.compile(CONFIG, tools.spec(
            configs.BATCH, 2, configs.SEQUENCE, dp=2, zero={"stage": 1}))
        weights = dict(safetensors.read(cls.space.initial_weights(cls.plan)))
        weights[TABLE] = weights[TABLE].copy()
        weights[TABLE][BAD_TOKEN] = np.inf
        cls.weights, cls.init = weights, cls.space.save_weights(weights)
        cls.ids = configs.corpus(120)
        cls.ids[::301] = BAD_TOKEN
        cls.bad = [step for step in range(STEPS) if BAD_TOKEN in oracle.windows(
            cls.ids, configs.BATCH, configs.SEQUENCE, 0, step)[0]]

    def test_goes_on_as_if_they_were_not_there(self):
        """Learning rate and data are those of the step, bias corrections those of the update."""
        self.assertTrue(2 < len(self.bad) < STEPS - 4, self.bad)
        rates = [3e-3 * min(1, (step + 1) / 5) for step in range(STEPS)]
        masters = models.weights_from(CONFIG, self.weights, torch.float64)
        adamw = AdamW(masters)
        for step in range(STEPS):
            if step not in self.bad:
                tokens, targets = oracle.windows(self.ids, configs.BATCH, configs.SEQUENCE, 0, step)
                models.loss(CONFIG, masters, tokens, targets).backward()
                adamw.step(rates[step])
        run = self.space.train(self.plan, self.ids, STEPS, "--skip-bad-steps", len(self.bad),
                               "--warmup-steps", 5, lr=3e-3, init=self.init)
        for name, found in run.weights.items():
            expected = masters[name].detach().numpy()
            if name == TABLE:
                self.assertTrue(np.isinf(found[BAD_TOKEN]).all())
                found, expected = (np.delete(a, BAD_TOKEN, 0) for a in (found, expected))
            # AdamW takes full steps along gradients that are rounding noise. One wrong count
            # of updates changes a step by a tenth.
            self.assertLess(oracle.relative_error(found, expected), 2e-3, name)
        self.assertEqual([line["step"] for line in run.metrics], list(range(STEPS)))
        self.assertEqual([line["step"] for line in run.metrics if line.get("skipped")], self.bad)

    def test_one_more_ends_the_run_with_the_last_good_weights(self):
        allowed = len(self.bad) - 1
        last = self.bad[-1]
        good = self.space.train(self.plan, self.ids, last, "--skip-bad-steps", allowed,
                                init=self.init)
        folder, save = self.space.file(".checkpoints"), self.space.file(".safetensors")
        arguments = ["--data", self.space.tokens(self.ids), "--data-type", "u16", "--lr", 1e-3,
                     "--init", self.init, "--save", save, "--checkpoint", folder]
        done = self.space.call("meshwork-run", self.plan, *arguments, "--steps", STEPS,
                               "--skip-bad-steps", allowed)
        self.assertEqual(done.returncode, 65, done.stdout + done.stderr)
        for step in self.bad[:-1]:
            self.assertIn(f"the loss of step {step} is", done.stdout)
        self.assertIn(f"the loss of step {last} is", done.stderr)
        self.assertEqual(pathlib.Path(save).read_bytes(), good.weight_bytes)
        # The checkpoint is of the same moment; its updates lag its steps.
        told = json.loads(self.space.must("meshwork", "checkpoint", "inspect", folder,
                                          "--json").stdout)["checkpoints"][0]
        self.assertEqual((told["step"], told["updates"]), (last, last - allowed))

    def test_none_are_skipped_unasked(self):
        done = self.space.call("meshwork-run", self.plan, "--data", self.space.tokens(self.ids),
                               "--data-type", "u16", "--init", self.init, "--steps", STEPS)
        self.assertEqual(done.returncode, 65)
        self.assertIn(f"the loss of step {self.bad[0]} is", done.stderr)


if __name__ == "__main__":
    unittest.main()
