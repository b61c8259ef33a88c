"""Bad input through the command line: the right exit code, a message that names the
thing, no signal, nothing half-written."""
import json
import os
import pathlib
import re
import random
import unittest

import numpy as np

import configs
import models
import safetensors
import tools

USAGE, DATA, NO_INPUT, CANNOT_CREATE, IO, SPEC = 64, 65, 66, 73, 74, 78


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)
        cls.config = configs.GPT2
        cls.model = cls.space.model(cls.config)
        cls.plan = cls.space.compile(cls.model, tools.spec(4, 2, 23))
        cls.data = cls.space.tokens(configs.corpus())

    def refuse(self, code, needles, tool, *arguments):
        """The tool ends with `code` and says each of `needles` on stderr."""
        done = self.space.call(tool, *arguments)
        shown = f"{' '.join(map(str, done.args))}\n{done.stdout}\n{done.stderr}"
        self.assertEqual(done.returncode, code, shown)
        for needle in needles:
            self.assertIn(needle, done.stderr, shown)
        return done

    def train(self, *options, plan=None, data=None):
        return ["meshwork-run", plan or self.plan, "--data", data or self.data,
                "--data-type", "u16", "--steps", 1, *options]

    def compile_with(self, spec):
        return ["meshwork", "compile", self.model, "--spec",
                self.space.write(".toml", spec), "-o", self.space.file(".mwplan")]

    def test_missing_files(self):
        gone = str(self.space.path / "gone")
        self.refuse(NO_INPUT, ["gone"], *self.train(plan=gone))
        self.refuse(NO_INPUT, ["gone"], *self.train(data=gone))
        self.refuse(NO_INPUT, ["gone"], *self.train("--init", gone))
        self.refuse(NO_INPUT, ["gone"], "meshwork", "import", gone, "-o", gone + "2")
        self.refuse(NO_INPUT, ["gone"], "meshwork", "explain", gone)
        self.refuse(NO_INPUT, ["gone"], "meshwork", "compile", gone, "--spec", gone,
                    "-o", gone + "2")

    def test_data(self):
        ids = configs.corpus(length=100)
        short = self.space.tokens(ids[:configs.SEQUENCE])
        self.refuse(DATA, ["23", "24"], *self.train(data=short))
        odd = self.space.write(".u16", ids.astype("<u2").tobytes()[:-1])
        self.refuse(DATA, [pathlib.Path(odd).name], *self.train(data=odd))
        ids[57] = 131
        self.refuse(DATA, ["57", "131", "130"],
                    *self.train(data=self.space.tokens(ids)))
        self.refuse(DATA, [], *self.train(data=self.space.write(".u16", b"")))
        header = np.zeros(256, "<i4")
        header[:3] = 20240520, 1, 1000
        lying = self.space.write(".bin", header.tobytes() + b"\0" * 100)
        self.refuse(DATA, ["1000"], "meshwork-run", self.plan, "--data", lying,
                    "--steps", 1)

    def test_weights(self):
        arrays = {n: w.detach().numpy()
                  for n, w in models.random_weights(self.config, 1).items()}
        missing = {n: a for n, a in arrays.items() if n != "h.1.ln_2.bias"}
        self.refuse(DATA, ["h.1.ln_2.bias"],
                    *self.train("--init", self.space.save_weights(missing)))
        reshaped = {**arrays, "wpe.weight": arrays["wpe.weight"].T}
        self.refuse(DATA, ["wpe.weight"],
                    *self.train("--init", self.space.save_weights(reshaped)))
        whole = pathlib.Path(self.space.save_weights(arrays)).read_bytes()
        for broken in (whole[:-4], whole + b"\0\0\0\0", whole[:100], b"", whole[:7],
                       b"\xff" * 8 + whole[8:]):
            path = self.space.write(".safetensors", broken)
            self.refuse(DATA, [], *self.train("--init", path))

    def test_broken_plans(self):
        """Prefixes and single-bit flips. Where no bit may differ, no flip survives."""
        whole = pathlib.Path(self.plan).read_bytes()
        choose = random.Random(41)
        lengths = [0, 1, 7, 8, 63, 64, 65, len(whole) - 1]
        lengths += [choose.randrange(len(whole)) for _ in range(92)]
        broken = [whole[:length] for length in lengths]
        places = list(range(0, 64 * 8, 16)) + [8 * choose.randrange(64, len(whole)) +
                                               choose.randrange(8) for _ in range(160)]
        for bit in places:
            flipped = bytearray(whole)
            flipped[bit // 8] ^= 1 << bit % 8
            broken.append(bytes(flipped))
        broken += [whole + b"\0", whole * 2, b"\0" * 4096, os.urandom(4096)]
        path = self.space.file(".mwplan")
        for content in broken:
            pathlib.Path(path).write_bytes(content)
            done = self.refuse(DATA, [], "meshwork-run", path, "--validate-only")
            self.assertTrue(done.stderr.strip())
        self.refuse(DATA, [], "meshwork", "explain", path)

    def test_specs(self):
        good = tools.spec(4, 2, 23)
        for spec, needles in (
                (good + "[optimizer]\nbeta_1 = 0.9\n", ["beta_1", "beta1"]),
                (good.replace('"dp=1"', '"dp=3"'), ["3"]),
                (good.replace("micro = 2", "micro = 3"), ["3", "4"]),
                (good.replace("global = 4", "global = -4"), ["global"]),
                (good.replace("global = 4", 'global = "four"'), ["global"]),
                (good.replace("sequence = 23", ""), ["sequence"]),
                (good + "[optimizer]\nbeta1 = nan\n", ["beta1"]),
                (good.replace('"f32"', '"f16"'), ["f16", "bf16"]),
                (good + "[expect]\nmemory_per_rank = \"1 KiB\"\n", ["memory_per_rank"]),
                ("[mesh\n", []), ("", ["mesh"]), ("\0\xff", [])):
            with self.subTest(spec):
                self.refuse(SPEC, needles, *self.compile_with(spec))
        both = good.replace("micro = 2", "micro = x") + "[nonsense]\na = 1\n"
        self.refuse(SPEC, [], *self.compile_with(both))
        # Longer than the model's positions.
        done = self.space.call(*self.compile_with(tools.spec(4, 2, 41)))
        self.assertIn(done.returncode, (DATA, SPEC), done.stderr)
        self.assertIn("41", done.stderr)

    def test_models(self):
        whole = pathlib.Path(self.model).read_text()
        spec = self.space.write(".toml", tools.spec(4, 2, 23))
        choose = random.Random(43)
        # The model's config stands in front of it, and is a text of any words.
        config, function, body = whole.partition("func.func")
        texts = ["", "module {", "\0", whole[:len(whole) // 2],
                 config + function + body.replace("layer_norm", "layer_norn", 1),
                 config + function + body.replace("epsilon", "epsilom", 1)]
        self.assertNotIn(whole, texts)
        texts += [whole[:choose.randrange(len(whole) - 2)] for _ in range(10)]
        for text in texts:
            path = self.space.write(".mlir", text)
            done = self.refuse(DATA, [], "meshwork", "compile", path, "--spec", spec,
                               "-o", self.space.file(".mwplan"))
            self.assertTrue(done.stderr.strip())

    def test_configs(self):
        text = json.dumps(self.config)
        for config, needles in (
                (text[:-1] + ', "n_embd": 48}', ["n_embd"]),
                (json.dumps({**self.config, "n_head": 5}), ["5", "48"]),
                (json.dumps({**self.config, "activation_function": "mish"}),
                 ["activation_function"]),
                (json.dumps({**self.config, "model_type": "mamba"}), ["mamba"]),
                (json.dumps({**self.config, "n_layer": "two"}), ["n_layer"]),
                (json.dumps({**configs.LLAMA, "rope_scaling": {"rope_type": "other"}}),
                 ["other"]),
                (json.dumps({**configs.LLAMA, "num_key_value_heads": 3}), ["3"]),
                ("[" * 100000, []), ("", []), ("{}", ["model_type"])):
            with self.subTest(config[:80]):
                path = self.space.write(".json", config)
                self.refuse(DATA, needles, "meshwork", "import", path, "-o",
                            self.space.file(".mlir"))

    def test_usage(self):
        self.refuse(USAGE, [], "meshwork-run")
        self.refuse(USAGE, [], "meshwork")
        self.refuse(USAGE, ["frob"], "meshwork", "frob")
        self.refuse(USAGE, ["--frob"], *self.train("--frob"))
        self.refuse(USAGE, ["x"], *self.train("--lr", "x"))
        self.refuse(USAGE, [], *self.train("--steps", "-1"))
        self.refuse(USAGE, ["2"], *self.train("-n", 2))
        self.refuse(USAGE, ['meshwork: error: unknown option "--sepc"; did you mean "--spec"?'],
                    "meshwork", "compile", self.model, "--sepc", "x.toml")
        self.refuse(USAGE, ['"--jsn"; did you mean "--json"?'], "meshwork", "explain", self.plan, "--jsn")

    def test_help_tells_version_and_phases(self):
        for tool in ("meshwork", "meshwork-run"):
            self.assertRegex(self.space.must(tool, "--version").stdout, rf"^{tool} \d+\.\d+\.\d+\n$")
        self.assertIn("LLVM version", self.space.must("meshwork-opt", "--version").stdout)
        refused = self.refuse(USAGE, ["--compile-to"], *self.compile_with(tools.spec(4, 2, 23)), "--compile-to", "x")
        phases = re.search(r"expected (\w+(, \w+)+)", refused.stderr)[1]
        helped = " ".join(self.space.must("meshwork", "compile", "--help").stdout.split())
        self.assertIn(f"({phases})", helped)

    def test_outputs(self):
        nowhere = str(self.space.path / "no" / "such" / "folder")
        for option in ("--save", "--save-gradients", "--metrics", "--trace"):
            self.refuse(CANNOT_CREATE, [nowhere], *self.train(option, nowhere))
        self.refuse(CANNOT_CREATE, [nowhere], "meshwork", "compile", self.model,
                    "--spec", self.space.write(".toml", tools.spec(4, 2, 23)),
                    "-o", nowhere)
        self.refuse(CANNOT_CREATE, [], *self.train("--save", self.space.path))
        self.refuse(IO, ["/dev/full"], *self.train("--metrics", "/dev/full"))

    def test_loss_that_is_not_finite(self):
        for dp in (1, 2):
            plan = self.space.compile(self.model, tools.spec(4, 1, 23, dp=dp))
            arrays = {n: w.detach().numpy().copy()
                      for n, w in models.random_weights(self.config, 1).items()}
            arrays["h.1.mlp.c_fc.weight"][3, 5] = np.nan
            save = self.space.file(".safetensors")
            init = self.space.save_weights(arrays)
            self.refuse(DATA, ["step 0", "h.1.mlp.c_fc"],
                        *self.train("--init", init, "--save", save, plan=plan))
            for name, array in safetensors.read(save).items():  # as before the step
                np.testing.assert_array_equal(array, arrays[name], name)

    def test_rate_that_blows_up(self):
        save, metrics = self.space.file(".safetensors"), self.space.file(".jsonl")
        done = self.refuse(DATA, ["step ", "optimizer"], "meshwork-run", self.plan,
                           "--data", self.data, "--data-type", "u16", "--steps", 50,
                           "--lr", "1e25", "--save", save, "--metrics", metrics)
        for name, array in safetensors.read(save).items():  # of the last good step
            self.assertTrue(np.isfinite(array).all(), name)
        lines = pathlib.Path(metrics).read_text().splitlines()
        steps = [json.loads(line)["step"] for line in lines]
        self.assertIn(f"step {steps[-1]} ", done.stderr)  # which has a line too


if __name__ == "__main__":
    unittest.main()
