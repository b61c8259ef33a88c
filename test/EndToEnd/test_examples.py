"""Every example compiles, and runs; the tiny ones learn."""
import collections
import json
import math
import unittest

import shell

EXAMPLES = shell.ROOT / "examples"
TEXT = shell.ROOT / "LICENSE"  # A text that nobody edits: the numbers below hold for it.
STEPS = 120


def frequency_entropy(text):
    """Loss, in nats a byte, of a model that knows each byte's frequency and nothing else."""
    shares = [count / len(text) for count in collections.Counter(text).values()]
    return -sum(share * math.log(share) for share in shares)


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)

    def test_every_model_and_spec_compiles(self):
        models = sorted(p.name for p in EXAMPLES.glob("*.json"))
        specs = sorted(p.name for p in EXAMPLES.glob("*.toml"))
        self.assertGreater(min(len(models), len(specs)), 3)
        pairs = [(model, "f32.toml") for model in models]
        pairs += [("llama-bytes.json", spec) for spec in specs if spec != "gpt2-124m.toml"]
        pairs += [("gpt2-124m.json", "gpt2-124m.toml")]
        for model, spec in pairs:
            with self.subTest(model=model, spec=spec):
                self.space.must("meshwork", "compile", f"examples/{model}", "--spec",
                                f"examples/{spec}", "-o", "a.mwplan")
                self.space.must("meshwork-run", "a.mwplan", "--validate-only")

    def test_every_spec_trains_on_its_ranks(self):
        """A few steps each; all are the step of dp1.toml, so the losses agree."""
        def losses(spec, rate="3e-3"):
            self.space.must("meshwork", "compile", "examples/llama-tiny.json", "--spec",
                            f"examples/{spec}", "--set", "precision.compute=f32", "-o", "c.mwplan")
            (self.space.path / "c.jsonl").unlink(missing_ok=True)
            self.space.must("meshwork-run", "c.mwplan", "--data", TEXT, "--tokenizer", "bytes",
                            "--steps", 5, "--lr", rate, "--metrics", "c.jsonl")
            return [json.loads(line)["loss"] for line in self.space.read("c.jsonl").splitlines()]

        expected = losses("dp1.toml")
        for spec in ("dp2.toml", "tp2.toml", "tp2-sp.toml", "cp2.toml", "cp4-ring.toml", "zero3.toml", "hsdp.toml",
                     "pp2.toml", "pp2-zero-bubble.toml"):
            with self.subTest(spec):
                for one, other in zip(losses(spec), expected, strict=True):
                    self.assertAlmostEqual(one, other, delta=1e-5)
        self.assertLess(expected[-1], expected[0] - 0.1)
        lion = losses("lion.toml", "1e-3")
        self.assertAlmostEqual(lion[0], expected[0], delta=1e-5)
        self.assertLess(lion[-1], lion[0] - 0.1)

    def losses(self, model, *options):
        self.space.must("meshwork", "compile", f"examples/{model}", "--spec",
                        "examples/dp2.toml", "-o", "b.mwplan")
        (self.space.path / "b.jsonl").unlink(missing_ok=True)
        self.space.must("meshwork-run", "b.mwplan", "--data", TEXT, "--tokenizer",
                        "bytes", "--steps", STEPS, "--lr", "3e-3", "--warmup-steps", 5,
                        "--metrics", "b.jsonl", *options)
        return [json.loads(line)["loss"] for line in self.space.read("b.jsonl").splitlines()]

    def test_tiny_models_learn(self):
        limit = frequency_entropy(TEXT.read_bytes()) - 0.1
        for model in ("gpt2-tiny.json", "llama-tiny.json", "mistral-tiny.json",
                      "qwen2-tiny.json", "qwen3-tiny.json"):
            with self.subTest(model):
                losses = self.losses(model)
                self.assertEqual(len(losses), STEPS)
                self.assertAlmostEqual(losses[0], math.log(256), delta=0.2)
                self.assertLess(sum(losses[-5:]) / 5, limit)

    def test_a_run_goes_on_from_saved_weights(self):
        first = self.losses("llama-tiny.json", "--save", "w.safetensors")
        second = self.losses("llama-tiny.json", "--init", "w.safetensors")
        self.assertLess(second[0], first[0] - 1.5)


if __name__ == "__main__":
    unittest.main()
