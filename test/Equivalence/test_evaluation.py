"""Evaluation: the loss of given windows is the oracle's, on any mesh; and it changes nothing of the training around it."""
import json
import pathlib
import unittest

import numpy as np

import configs
import models
import oracle
import tools
import torch
from test_cuda import GPU, emulated

F32 = 1e-6
MPIRUN = ("mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2")
SEQUENCE, BATCH, MICRO = 23, 6, 1
BEGIN = 5  # a token that documents begin with
DROPPING = {**configs.GPT2, "embd_pdrop": 0.1, "attn_pdrop": 0.2, "resid_pdrop": 0.1}
# Name -> (model, sections of the spec).
LAYOUTS = {
    "one rank": (DROPPING, {}),
    "dp": (DROPPING, {"mesh": {"axes": ["dp=3"]}}),
    "zero": (configs.LLAMA, {"mesh": {"axes": ["dp=2"]}, "zero": {"stage": 3}}),
    "tp": (configs.LLAMA, {"mesh": {"axes": ["tp=2"]}, "shard": {"heads": ["tp"], "ffn": ["tp"], "vocab": ["tp"]}}),
    "cp": (DROPPING, {"mesh": {"axes": ["cp=2"]}, "shard": {"sequence": ["cp"]}, "context": {"layout": "zigzag"}}),
    "pp": (DROPPING, {"mesh": {"axes": ["pp=2"]}}),
    "zero bubble": (configs.MISTRAL, {"mesh": {"axes": ["pp=2"]}, "pipeline": {"schedule": "zb-h1"}}),
    "dp pp": (configs.LLAMA, {"mesh": {"axes": ["dp=2", "pp=2"]}}),
    "recompute": (DROPPING, {"mesh": {"axes": ["dp=2"]}, "recompute": {"policy": "full"}}),
    "experts": (configs.MIXTRAL, {"mesh": {"axes": ["ep=2"]}}),
    "bias": (configs.DOTS1, {"mesh": {"axes": ["ep=2"]}, "experts": {"bias_rate": 0.01}}),
    "exchange": (configs.QWEN2_MOE, {"mesh": {"axes": ["ep=2"]}, "experts": {"exchange": "all_to_all", "bound": 1}}),
}


class Evaluation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)
        cls.ids, cls.held = configs.corpus(), configs.corpus(length=10 * SEQUENCE + 9, seed=7)
        cls.data, cls.eval = cls.space.tokens(cls.ids), cls.space.tokens(cls.held)

    def plan(self, config, documents="joined", **sections):
        return self.space.compile(config, tools.spec(BATCH, MICRO, SEQUENCE, documents=documents, **sections))

    def run_plan(self, plan, *options, launcher=()):
        """(steps, evaluations) of the metrics, and the weights."""
        metrics, weights = self.space.file(".jsonl"), self.space.file(".safetensors")
        self.space.must("meshwork-run", plan, "--data-type", "u16", "--metrics", metrics, "--save", weights, *options,
                        launcher=launcher)
        lines = [json.loads(line) for line in pathlib.Path(metrics).read_text().splitlines()]
        return ([line for line in lines if "loss" in line], [line for line in lines if "eval_loss" in line],
                pathlib.Path(weights).read_bytes())

    @staticmethod
    def rows(ids):
        """(tokens, targets) of all windows, one behind the other."""
        count = (len(ids) - 1) // SEQUENCE
        rows = np.stack([ids[p * SEQUENCE:(p + 1) * SEQUENCE + 1] for p in range(count)]).astype(np.int64)
        return torch.from_numpy(rows[:, :-1]), torch.from_numpy(rows[:, 1:])

    @staticmethod
    def loss(config, weights, tokens, targets):
        exact = models.weights_from(config, {n: w.detach().numpy() for n, w in weights.items()})
        with torch.no_grad():
            return models.loss(config, exact, tokens, targets).item()

    def test_loss_is_the_oracles(self):
        """Ten windows, six a step: the second step is filled up."""
        for name, (config, sections) in LAYOUTS.items():
            with self.subTest(name):
                weights = models.random_weights(config, 17)
                _, (found,), _ = self.run_plan(self.plan(config, **sections), "--evaluate", "--eval-data", self.eval, "--init",
                                               self.space.save_weights(weights))
                tokens, targets = self.rows(self.held)
                self.assertEqual(found["eval_targets"], targets.numel())
                np.testing.assert_allclose(found["eval_loss"], self.loss(config, weights, tokens, targets), rtol=F32)

    def test_targets_that_are_left_out(self):
        """Each window has other targets that count."""
        for sections in ({}, {"mesh": {"axes": ["dp=3"]}}, {"mesh": {"axes": ["pp=2"]}},
                         {"mesh": {"axes": ["cp=2"]}, "shard": {"sequence": ["cp"]}}):
            with self.subTest(sections):
                weights = models.random_weights(configs.GPT2, 17)
                plan = self.plan(configs.GPT2, {"document_end_loss": False}, **sections)
                _, (found,), _ = self.run_plan(plan, "--evaluate", "--eval-data", self.eval, "--document-begin", BEGIN, "--init",
                                               self.space.save_weights(weights))
                tokens, targets = self.rows(self.held)
                targets = oracle.without_ends(tokens, targets, begin=BEGIN)
                self.assertEqual(found["eval_targets"], int((targets >= 0).sum()))
                self.assertLess(found["eval_targets"], targets.numel())
                np.testing.assert_allclose(found["eval_loss"], self.loss(configs.GPT2, weights, tokens, targets), rtol=F32)

    def test_held_out_windows_are_not_trained_on(self):
        """The last tenth of the windows; training reads as if the file had no more than the others."""
        plan, options = self.plan(configs.GPT2), ("--steps", "3", "--lr", "0", "--order", "epochs")
        weights = models.random_weights(configs.GPT2, 17)
        init = self.space.save_weights(weights)
        windows = (len(self.ids) - 1) // SEQUENCE
        held = windows // 10
        first = (windows - held) * SEQUENCE
        steps, (found,), _ = self.run_plan(plan, "--data", self.data, *options, "--held-out", "0.1", "--init", init)
        tokens, targets = self.rows(self.ids[first:])
        self.assertEqual(found["eval_targets"], held * SEQUENCE)
        np.testing.assert_allclose(found["eval_loss"], self.loss(configs.GPT2, weights, tokens, targets), rtol=F32)
        others, _, _ = self.run_plan(plan, "--data", self.space.tokens(self.ids[:first + 1]), *options, "--init", init)
        self.assertEqual([line["loss"] for line in steps], [line["loss"] for line in others])

    def test_after_a_resume(self):
        """On another mesh; the evaluation is of the weights that the checkpoint has."""
        plan, folder = self.plan(DROPPING), self.space.file(".run")
        train = ["--data", self.data, "--lr", "1e-2", "--eval-data", self.eval]
        _, (at_end,), _ = self.run_plan(plan, *train, "--steps", "3", "--checkpoint", folder)
        other = self.plan(DROPPING, mesh={"axes": ["dp=3"]})
        _, (again,), _ = self.run_plan(other, "--evaluate", "--eval-data", self.eval, "--resume", folder)
        self.assertEqual(again["step"], 2)
        np.testing.assert_allclose(again["eval_loss"], at_end["eval_loss"], rtol=F32)

    def test_the_best_checkpoint_stays(self):
        """The loss rises after some steps: the rate is too high."""
        plan, folder = self.plan(configs.GPT2), pathlib.Path(self.space.file(".run"))
        _, found, _ = self.run_plan(plan, "--data", self.data, "--steps", "12", "--lr", "3", "--eval-data", self.eval,
                                    "--eval-every", "1", "--checkpoint", folder, "--checkpoint-every", "1", "--checkpoint-sync", "--keep-best")
        losses = [line["eval_loss"] for line in found]
        best = 1 + losses.index(min(losses))
        self.assertLess(best, 10, "it should not be among the newest")
        kept = sorted(int(path.name.removeprefix("step-")) for path in folder.glob("step-*"))
        self.assertEqual(kept[0], best)
        self.assertEqual(kept[-1], 12)
        told = json.loads((folder / f"step-{best:010d}/manifest.json").read_text())
        self.assertEqual(float(told["eval_loss"]), min(losses))

    def test_on_an_emulated_gpu(self):
        """Lists as graphs of what an evaluation runs, beside those of steps; dropout is off in its kernels too."""
        with tools.Workspace(**emulated()) as space:
            weights = models.random_weights(DROPPING, 17)
            init, here = space.save_weights(weights), self.space
            for sections in ({}, {"mesh": {"axes": ["dp=2", "pp=2"]}}):
                with self.subTest(sections):
                    plan = space.compile(DROPPING, tools.spec(4, 1, SEQUENCE, **sections, **GPU))
                    self.space = space
                    steps, found, _ = self.run_plan(plan, "--share-gpu", "--data", self.data, "--steps", "2", "--lr", "0", "--init", init,
                                                    "--eval-data", self.eval, "--eval-every", "1")
                    self.space = here
                    tokens, targets = self.rows(self.held)
                    loss = self.loss(DROPPING, weights, tokens, targets)
                    np.testing.assert_allclose([line["eval_loss"] for line in found], [loss, loss], rtol=1e-5)
                    self.assertEqual(len(steps), 2)

    def test_evaluations_that_tell_nothing_are_told(self):
        plan = self.plan(configs.GPT2)
        said = self.space.must("meshwork-run", plan, "--data-type", "u16", "--evaluate", "--eval-data", self.eval)
        self.assertIn("--evaluate: the weights are random ones", said.stderr)
        train = ["meshwork-run", plan, "--data-type", "u16", "--steps", "1", "--data", self.data, "--eval-data"]
        self.assertIn("is trained on, too", self.space.must(*train, self.data).stderr)
        told = self.space.must(*train, self.eval)
        self.assertEqual(told.stderr, "")
        self.assertRegex(told.stdout, r'(?m)^evaluated "\S+": 1 file, 239 tokens, .*, 10 windows$')
        held = self.space.must(*train[:-1], "--held-out", "0.1").stdout
        self.assertRegex(held, r'(?m)^held out of "\S+": the last 6 windows$')

    def test_under_mpi(self):
        plan = self.plan(configs.GPT2, mesh={"axes": ["dp=2"]})
        found = [self.run_plan(plan, "--evaluate", "--eval-data", self.eval, launcher=launcher)[1][0]
                 for launcher in ((), MPIRUN)]
        self.assertEqual(found[0]["eval_loss"], found[1]["eval_loss"])
        self.assertEqual(found[0]["eval_targets"], found[1]["eval_targets"])

    def test_gradients_are_written_before_the_last_evaluation(self):
        """It uses their memory."""
        for sections, launcher in (({}, ()), ({"mesh": {"axes": ["dp=2"]}}, ()), ({"mesh": {"axes": ["dp=2"]}}, MPIRUN)):
            with self.subTest(sections, launcher=launcher):
                plan, written = self.plan(configs.GPT2, **sections), []
                for more in ((), ("--eval-data", self.eval, "--eval-every", "2")):
                    path = self.space.file(".safetensors")
                    _, found, _ = self.run_plan(plan, "--data", self.data, "--steps", "3", "--lr", "1e-2", "--save-gradients",
                                                path, *more, launcher=launcher)
                    self.assertEqual(len(found), 2 if more else 0)
                    written.append(pathlib.Path(path).read_bytes())
                self.assertEqual(*written)

    def test_changes_nothing(self):
        cases = {**LAYOUTS, "fp8": (DROPPING, {"mesh": {"axes": ["dp=2"]}, "precision": {
            "compute": "bf16", "matmul": "fp8", "scaling": "delayed"}})}
        for name, (config, sections) in cases.items():
            with self.subTest(name):
                plan = self.plan(config, **sections)
                train = ["--data", self.data, "--steps", "5", "--lr", "1e-2"]
                steps, none, weights = self.run_plan(plan, *train)
                again, found, same = self.run_plan(plan, *train, "--eval-data", self.eval, "--eval-every", "2", "--eval-steps", "1")
                self.assertEqual(none, [])
                self.assertEqual([line["step"] for line in found], [1, 3, 4])
                self.assertEqual([line["loss"] for line in again], [line["loss"] for line in steps])
                self.assertEqual([line["grad_norm"] for line in again], [line["grad_norm"] for line in steps])
                self.assertEqual(same, weights)
                self.assertEqual(len({line["eval_loss"] for line in found}), 3)
