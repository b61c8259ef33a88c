"""The oracle itself: it must be right before it may judge."""
import math
import pathlib
import re
import tempfile
import unittest

import numpy as np
import torch

import configs
import gpt2
import models
import oracle
import philox
import rotary
import safetensors
from adamw import AdamW, warmup_cosine
from kernels import Reference, Separate, visible
from xxh3 import xxh3_64


def batch(vocabulary, rows=2, length=7):
    generator = torch.Generator().manual_seed(1)
    window = torch.randint(vocabulary, (rows, length + 1), generator=generator)
    return window[:, :-1], window[:, 1:]


class Models(unittest.TestCase):
    def test_gradients_are_those_of_the_loss(self):
        """Central differences along a random direction, each family. A padding row is
        the exception to that."""
        for name, config in configs.ALL.items():
            with self.subTest(name):
                config = {**config, "pad_token_id": None}
                weights = models.random_weights(config, 3, torch.float64)
                tokens, targets = batch(config["vocab_size"])
                models.loss(config, weights, tokens, targets).backward()
                generator = torch.Generator().manual_seed(5)
                direction = {n: torch.randn(w.shape, generator=generator,
                                            dtype=torch.float64)
                             for n, w in weights.items() if w.requires_grad}
                slope = sum((w.grad * direction[n]).sum().item()
                            for n, w in weights.items() if w.requires_grad)

                def at(h):
                    moved = {n: w.detach() + h * direction.get(n, 0) for n, w in weights.items()}
                    return models.loss(config, moved, tokens, targets).item()

                h = 1e-5
                self.assertAlmostEqual((at(h) - at(-h)) / (2 * h) / slope, 1, delta=1e-6)

    def test_every_weight_matters(self):
        for name, config in configs.ALL.items():
            with self.subTest(name):
                weights = models.random_weights(config, 3, torch.float64)
                models.loss(config, weights, *batch(config["vocab_size"], rows=12)).backward()
                for tensor, weight in weights.items():
                    if not weight.requires_grad:
                        continue
                    self.assertGreater(weight.grad.norm().item(), 0, tensor)

    def test_padding_row(self):
        """Its embedding gets no gradient, a head that shares it does."""
        table = "model.embed_tokens.weight"
        tokens = torch.tensor([[configs.PADDING, 5, configs.PADDING, 7]])
        for name in ("llama", "qwen3"):
            config, found = configs.ALL[name], {}
            for padding in (config["pad_token_id"], None):
                weights = models.random_weights(config, 3, torch.float64)
                models.loss({**config, "pad_token_id": padding}, weights, tokens,
                            tokens.flip(1)).backward()
                found[padding is None] = weights
            for tensor, weight in found[True].items():
                different = weight.grad.ne(found[False][tensor].grad).view(len(weight), -1).any(1)
                rows = [configs.PADDING] if tensor == table else []
                self.assertEqual(different.nonzero().flatten().tolist(), rows, tensor)
            row = found[False][table].grad[configs.PADDING]
            self.assertEqual(bool(row.any()), config["tie_word_embeddings"])

    def test_torch_layers_agree(self):
        kernels = Reference()
        x = torch.randn(3, 5, 8, dtype=torch.float64)
        w, b = torch.randn(8, dtype=torch.float64), torch.randn(8, dtype=torch.float64)
        functional = torch.nn.functional
        torch.testing.assert_close(kernels.layer_norm(x, w, b, 1e-5),
                                   functional.layer_norm(x, (8,), w, b, 1e-5))
        torch.testing.assert_close(kernels.gelu_tanh(x),
                                   functional.gelu(x, approximate="tanh"))
        torch.testing.assert_close(kernels.silu(x), functional.silu(x))
        targets = torch.tensor([[1, 2, 0, 7, 4]] * 3)
        torch.testing.assert_close(
            kernels.cross_entropy(x, targets),
            functional.cross_entropy(x.flatten(0, 1), targets.flatten()))

    def test_window_counts_keys(self):
        mask = visible(6, 3)
        self.assertEqual(mask.sum(1).tolist(), [1, 2, 3, 3, 3, 3])
        self.assertTrue(bool(mask[5, 5]) and not bool(mask[4, 5]))

    def test_documents(self):
        begins = oracle.documents(torch.tensor([[7, 1, 7, 7, 2], [1, 1, 7, 1, 7]]), begin=7)
        self.assertEqual(begins.tolist(), [[0, 0, 2, 3, 3], [0, 0, 2, 2, 4]])
        begins = oracle.documents(torch.tensor([[7, 1, 7, 7, 2], [1, 1, 7, 1, 7]]), end=7)
        self.assertEqual(begins.tolist(), [[0, 1, 1, 3, 4], [0, 0, 0, 3, 3]])

    def test_a_document_is_like_a_sequence_of_its_own(self):
        cuts = [0, 4, 5, 11]
        q, k, v = (torch.randn(1, heads, cuts[-1], 6, dtype=torch.float64) for heads in (4, 2, 2))
        begins = torch.tensor([[begin for begin, end in zip(cuts, cuts[1:]) for _ in range(begin, end)]])
        for window in (0, 3):
            whole = Separate(begins).attention(q, k, v, 0.3, window, lambda p: p)
            parts = [Reference().attention(*(x[:, :, begin:end] for x in (q, k, v)), 0.3, window, lambda p: p)
                     for begin, end in zip(cuts, cuts[1:])]
            torch.testing.assert_close(whole, torch.cat(parts, dim=2))

    def test_later_tokens_do_not_matter(self):
        for name, config in configs.ALL.items():
            with self.subTest(name):
                weights = models.random_weights(config, 3, torch.float64)
                tokens, _ = batch(config["vocab_size"])
                other = tokens.clone()
                other[:, 5:] = (other[:, 5:] + 1) % config["vocab_size"]

                def run(ids):
                    return models.family(config).logits(config, weights, ids,
                                                        Reference(), models.no_drop)
                first, second = run(tokens), run(other)
                torch.testing.assert_close(first[:, :5], second[:, :5])
                self.assertFalse(torch.allclose(first[:, 5:], second[:, 5:]))

    def test_shapes_of_a_known_model(self):
        config = {**configs.GPT2, "vocab_size": 50257, "n_positions": 1024,
                  "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": None}
        count = sum(math.prod(s) for s in gpt2.parameter_shapes(config).values())
        self.assertEqual(count, 124_439_808)  # as published


class Rotary(unittest.TestCase):
    config = {"max_position_embeddings": 64, "rope_theta": 10000.0}

    def test_scores_depend_on_distance(self):
        cos, sin = rotary.tables(self.config, 8, 32, torch.float64)
        q, k = torch.randn(8, dtype=torch.float64), torch.randn(8, dtype=torch.float64)
        turned_q, turned_k = (rotary.rotate(t.expand(32, 8), cos, sin) for t in (q, k))
        scores = turned_q @ turned_k.t()
        for distance in range(5):
            diagonal = scores.diagonal(-distance)
            self.assertLess((diagonal - diagonal[0]).abs().max().item(), 1e-5)

    def frequencies(self, scaling):
        cos, sin = rotary.tables({**self.config, "rope_scaling": scaling}, 16, 2,
                                 torch.float64)
        return torch.atan2(sin[1], cos[1]), torch.hypot(sin[1], cos[1])

    def test_linear_divides(self):
        plain, _ = self.frequencies(None)
        scaled, _ = self.frequencies({"rope_type": "linear", "factor": 4.0})
        torch.testing.assert_close(scaled * 4, plain, rtol=1e-6, atol=0)

    def test_llama3_keeps_short_waves_and_stretches_long_ones(self):
        plain, _ = self.frequencies(None)
        scaled, _ = self.frequencies(configs.LLAMA["rope_scaling"])
        ratio = plain / scaled
        self.assertAlmostEqual(ratio[-1].item(), 8, delta=1e-4)
        self.assertTrue(bool((ratio[1:] >= ratio[:-1] - 1e-5).all()))

    def test_yarn_ends_and_temperature(self):
        plain, _ = self.frequencies(None)
        scaled, size = self.frequencies({"rope_type": "yarn", "factor": 4.0})
        self.assertAlmostEqual((plain / scaled)[0].item(), 1, delta=1e-5)
        self.assertAlmostEqual((plain / scaled)[-1].item(), 4, delta=1e-5)
        torch.testing.assert_close(size, torch.full_like(size, 0.1 * math.log(4) + 1))

    def test_original_context_beside_or_inside(self):
        yarn = {"rope_type": "yarn", "factor": 4.0}
        original = {"original_max_position_embeddings": 16}
        inside = {**self.config, "rope_scaling": {**yarn, **original}}
        beside = {**self.config, **original, "rope_scaling": yarn}
        absent = {**self.config, "rope_scaling": yarn}
        first, second, third = (torch.stack(rotary.tables(c, 16, 9, torch.float64))
                                for c in (inside, beside, absent))
        self.assertTrue(torch.equal(first, second))
        self.assertFalse(torch.equal(first, third))


class Optimizer(unittest.TestCase):
    def test_torch_adamw_agrees(self):
        config = configs.GPT2
        ours = models.random_weights(config, 1, torch.float64)
        theirs = {n: w.detach().clone().requires_grad_() for n, w in ours.items()}
        groups = [{"params": [w for w in theirs.values() if (w.dim() > 1) == decayed],
                   "weight_decay": 0.1 if decayed else 0.0} for decayed in (True, False)]
        reference = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95), eps=1e-8)
        adamw = AdamW(ours)
        for _ in range(4):
            for weights in (ours, theirs):
                models.loss(config, weights, *batch(config["vocab_size"])).backward()
            norm = torch.nn.utils.clip_grad_norm_(list(theirs.values()), 1.0)
            self.assertAlmostEqual(adamw.step(1e-2), norm.item(), places=9)
            reference.step()
            reference.zero_grad()
        for name in ours:
            torch.testing.assert_close(ours[name], theirs[name])

    def test_warmup_cosine(self):
        rates = [warmup_cosine(t, 1.0, 4, 13, 0.1) for t in range(14)]
        self.assertEqual(rates[:4], [0.25, 0.5, 0.75, 1.0])
        self.assertAlmostEqual(rates[8], 0.55)  # halfway from step 4 to the last, 12
        self.assertAlmostEqual(rates[11], 0.1 + 0.45 * (1 - math.cos(math.pi / 8)))
        self.assertEqual(rates[12:], [0.1, 0.1])


class Files(unittest.TestCase):
    def test_the_documented_samples_are_those_of_the_oracle(self):
        """The code that users are given, against the oracle's, which the launcher's losses agree with."""
        readme = (pathlib.Path(__file__).resolve().parents[2] / "runtime/io/README.md").read_text()
        (code,) = re.findall(r"^```python\n(.*?)^```", readme, re.M | re.S)
        given = {}
        exec(code, given)
        data, sequence = np.arange(1000), 17
        for seed, step in ((0, 0), (2 ** 32 - 1, 5), (3, 2 ** 33 + 1)):
            tokens, targets = philox.batch(data, seed, step, 6, sequence)
            for index in range(6):
                file, start = given["window"]([[len(data)]], sequence, seed, step, index, 6 * step + index)
                self.assertEqual(file, 0)
                np.testing.assert_array_equal(data[start:start + sequence], tokens[index])
                np.testing.assert_array_equal(data[start + 1:start + sequence + 1], targets[index])
        for sources, weights in (([[1000]], None), ([[100, 60], [700]], None), ([[100, 60], [700], [18]], (5, 3, 1))):
            for order in ("random", "epochs"):
                for of_run in (*range(40), 1023, 1024, 2 ** 40 + 7):
                    where = (sources, sequence, 11, of_run // 4, of_run % 4, of_run, order, weights)
                    self.assertEqual(given["window"](*where), philox.window(*where))

    def test_philox_known_answers(self):
        """Vectors of the generator's authors."""
        self.assertEqual(tuple(map(int, philox.philox4x32((0, 0, 0, 0), (0, 0)))),
                         (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8))
        ones = 0xFFFFFFFF
        self.assertEqual(tuple(map(int, philox.philox4x32((ones,) * 4, (ones, ones)))),
                         (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD))

    def test_xxh3_known_answers(self):
        """From the specification's reference implementation."""
        for text, answer in (("drop", 0x2490B07D75BF8F56),
                             ("h.0.mlp.dropout", 0xB138222FFE288071),
                             ("h.0.attn.attn_dropout", 0x556517AB0470D780),
                             ("model.layers.11.self_attn.q_proj.weight",
                              0x8D5E290980F81E0B)):
            self.assertEqual(xxh3_64(text), answer, text)

    def test_dropout_rate(self):
        factors = philox.dropout_factors("drop", (100, 100), 0.25, 7, 0)
        self.assertEqual(sorted(set(factors.flat)), [0.0, 1 / 0.75])
        # Binomial: deviation 0.0043, so this is 5 of them.
        self.assertAlmostEqual((factors == 0).mean(), 0.25, delta=0.022)

    def test_safetensors(self):
        arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3),
                  "b": np.array([], np.float64), "c": np.array(3, np.int64)}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.safetensors"
            safetensors.write(path, arrays)
            for name, array in safetensors.read(path).items():
                np.testing.assert_array_equal(array, arrays[name])
            whole = path.read_bytes()
            for broken in (whole[:-1], whole + b"\0", whole[:20]):
                path.write_bytes(broken)
                with self.assertRaises(ValueError):
                    safetensors.read(path)


if __name__ == "__main__":
    unittest.main()
