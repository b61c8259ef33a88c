"""The plans against the oracle: losses of 20 AdamW steps, the gradient of every
weight, the update, schedules. f32; test_bf16.py has bf16."""
import unittest

import numpy as np
import torch

import configs
import models
import oracle
import philox
import safetensors
import tools
from adamw import AdamW, warmup_cosine

STEPS = 20
F32 = 1e-5  # relative; the project's bar. f32 rounding alone gives about 1e-7.
UNIT = 2.0 ** -24  # rounding of one f32 operation


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)

    def plan(self, config, micro=2, **more):
        return self.space.compile(config, tools.spec(
            configs.BATCH, micro, configs.SEQUENCE, **more))

    def test_initial_weights_follow_the_documented_rule(self):
        config = configs.GPT2
        plan = self.plan(config)
        for seed in (0, 2 ** 31 + 5):
            arrays = safetensors.read(self.space.initial_weights(plan, seed))
            self.assertEqual({n: a.shape for n, a in arrays.items()},
                             models.parameter_shapes(config))
            for name in ("wte.weight", "wpe.weight", "h.1.attn.c_attn.weight"):
                expected = philox.normals(name, arrays[name].shape, seed, 0, 0.02)
                # f32 logarithm and sine: a few roundings of values up to 6.7 * 0.02.
                np.testing.assert_allclose(arrays[name], expected, rtol=0,
                                           atol=16 * 0.14 * UNIT, err_msg=name)
            self.assertTrue((arrays["h.0.ln_1.weight"] == 1).all())
            self.assertTrue((arrays["h.0.ln_1.bias"] == 0).all())

    def test_losses_of_twenty_steps(self):
        for name, config in configs.ALL.items():
            with self.subTest(name):
                self.check_losses(config)

    def check_losses(self, config):
        plan = self.plan(config)
        ids = configs.corpus(config["vocab_size"])
        initial = self.space.initial_weights(plan, seed=3)
        run = self.space.train(plan, ids, STEPS, lr=3e-3, seed=3, init=initial)
        (losses, norms, _), (_, rounded, _) = (
            oracle.train(config, safetensors.read(initial), ids, configs.BATCH,
                         configs.SEQUENCE, [3e-3] * STEPS, seed=3, dtype=dtype)
            for dtype in (torch.float64, torch.float32))
        self.assertEqual(len(run.losses), STEPS)
        self.assertLess(losses[-1], losses[0] - 0.1, "the model must learn")
        np.testing.assert_allclose(run.losses, losses, rtol=F32)
        found = [line["grad_norm"] for line in run.metrics]
        self.assertAlmostEqual(found[0] / norms[0], 1, delta=F32)
        # AdamW takes a full step along an element whose gradient is rounding noise,
        # so later norms part faster than losses. By how much in f32, PyTorch's own
        # f32 run tells; two such runs are alike to a small factor.
        noise = np.abs(np.divide(rounded, norms) - 1).max()
        self.assertLess(noise, 1e-4, "too loose to tell")
        np.testing.assert_allclose(found, norms, rtol=max(F32, 4 * noise))

    def test_gradient_of_every_weight(self):
        for name, config in configs.ALL.items():
            with self.subTest(name):
                self.check_gradients(config)

    def test_gradients_of_other_options(self):
        for base, keys in (("gpt2", {"activation_function": "relu"}),
                           ("gpt2", {"activation_function": "gelu", "n_inner": None}),
                           ("gpt2", {"scale_attn_by_inverse_layer_idx": True,
                                     "tie_word_embeddings": False}),
                           ("gpt2", {"scale_attn_weights": False}),
                           ("llama", {"rope_scaling": None, "attention_bias": False}),
                           ("llama", {"num_key_value_heads": 1, "tie_word_embeddings": True}),
                           ("qwen3", {"attention_bias": True}),
                           ("mistral", {"sliding_window": None})):
            with self.subTest(base, **keys):
                self.check_gradients({**configs.ALL[base], **keys})

    def check_gradients(self, config):
        ids = configs.corpus(config["vocab_size"])
        weights = models.random_weights(config, 17)
        plan = self.plan(config)
        run = self.space.train(plan, ids, 1, lr=0, init=self.space.save_weights(weights))
        arrays = {n: w.detach().numpy() for n, w in weights.items()}
        exact = models.weights_from(config, arrays)
        tokens, targets = oracle.windows(ids, configs.BATCH, configs.SEQUENCE, 0, 0)
        loss, expected = oracle.gradients(config, exact, tokens, targets)
        self.assertAlmostEqual(run.losses[0] / loss, 1, delta=F32)
        found = run.gradients
        self.assertEqual(set(found), set(expected))
        errors = {n: oracle.relative_error(found[n], expected[n]) for n in expected}
        wrong = {n: e for n, e in errors.items() if not e < F32}
        self.assertEqual(wrong, {}, "relative L2 errors")

    def test_large_activations(self):
        """Gates far beyond where e^-x overflows, and logits of thousands: loss and norm."""
        for name, tensor, factor in (("llama", "mlp.gate_proj.weight", 300), ("llama", "lm_head.weight", 3000),
                                     ("gpt2", "mlp.c_fc.weight", 300)):
            with self.subTest(name, tensor=tensor):
                config = configs.ALL[name]
                weights = {n: (w.detach() * (factor if n.endswith(tensor) else 1)).requires_grad_()
                           for n, w in models.random_weights(config, 37).items()}
                ids = configs.corpus(config["vocab_size"])
                run = self.space.train(self.plan(config), ids, 1, lr=0, init=self.space.save_weights(weights))
                arrays = {n: w.detach().numpy() for n, w in weights.items()}
                losses, norms, _ = oracle.train(config, arrays, ids, configs.BATCH, configs.SEQUENCE, [0.0])
                self.assertAlmostEqual(run.losses[0] / losses[0], 1, delta=1e-4)
                self.assertAlmostEqual(run.metrics[0]["grad_norm"] / norms[0], 1, delta=1e-3)

    def test_every_updated_weight(self):
        """One step: the weights are those AdamW makes of the written gradients."""
        for name, rate, clip, decay in (("gpt2", 1e-2, 1.0, 0.1), ("llama", 1e-2, 0.05, 0.3),
                                        ("qwen3", 1e-2, 0, 0.0)):
            with self.subTest(name):
                config = configs.ALL[name]
                keys = {"clip_grad_norm": float(clip), "weight_decay": decay,
                        "epsilon": 1e-6, "beta1": 0.8, "beta2": 0.9}
                plan = self.plan(config, optimizer=keys)
                weights = models.random_weights(config, 23)
                run = self.space.train(plan, configs.corpus(131), 1, lr=rate,
                                       init=self.space.save_weights(weights))
                exact = {n: w.detach().double() for n, w in weights.items()}
                for tensor, gradient in run.gradients.items():
                    exact[tensor].grad = torch.tensor(gradient, dtype=torch.float64)
                AdamW(exact, 0.8, 0.9, 1e-6, decay, clip).step(rate)
                for tensor, found in run.weights.items():
                    # A handful of roundings of a value near the weight, and as
                    # many of the step, which is at most about the rate.
                    limit = 4 * UNIT * np.abs(exact[tensor].numpy()) + 16 * UNIT * rate
                    error = np.abs(found - exact[tensor].numpy())
                    self.assertLess((error / limit).max(), 1, tensor)

    def test_warmup_and_cosine(self):
        config, steps = configs.GPT2, 10
        plan = self.plan(config)
        ids = configs.corpus(config["vocab_size"])
        weights = models.random_weights(config, 29)
        run = self.space.train(plan, ids, steps, "--schedule", "cosine", "--min-lr", 1e-4,
                               "--warmup-steps", 3, lr=5e-3,
                               init=self.space.save_weights(weights))
        rates = [warmup_cosine(t, 5e-3, 3, steps, 1e-4) for t in range(steps)]
        np.testing.assert_allclose([m["lr"] for m in run.metrics], rates, rtol=1e-6)
        arrays = {n: w.detach().numpy() for n, w in weights.items()}
        losses, _, _ = oracle.train(config, arrays, ids, configs.BATCH,
                                    configs.SEQUENCE, rates)
        np.testing.assert_allclose(run.losses, losses, rtol=F32)

    def test_weights_come_back_as_they_went_in(self):
        weights = models.random_weights(configs.LLAMA, 31)
        path = self.space.save_weights(weights)
        saved = self.space.file(".safetensors")
        self.space.must("meshwork-run", self.plan(configs.LLAMA), "--steps", 0,
                        "--init", path, "--save", saved)
        for name, array in safetensors.read(saved).items():
            np.testing.assert_array_equal(array, weights[name].detach().numpy(), name)


if __name__ == "__main__":
    unittest.main()
