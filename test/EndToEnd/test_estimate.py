"""`meshwork compile --estimate`: what a plan should take, without its code."""
import json
import os
import random
import unittest

import shell

MODELS = ("llama-tiny.json", "gpt2-tiny.json", "qwen3-tiny.json", "mixtral-tiny.json", "mistral-tiny.json")
MESHES = (["dp=2"], ["dp=2", "tp=2"], ["tp=2"], ["pp=2"], ["pp=2", "dp=2"], ["cp=2"], ["dp=4"], [])
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute")
CASES = 200 if os.environ.get("MESHWORK_ALL_CASES") else 14


def random_case(draw):
    """A model and settings; not all go together, which `compile` then says."""
    axes = draw.choice(MESHES)
    settings = {"mesh.axes": axes, "batch.global": 8, "batch.micro": draw.choice((1, 2)), "batch.sequence": 64,
                "zero.stage": draw.choice((0, 1, 2, 3)),
                "recompute.policy": draw.choice(("none", "selective", "full")),
                "precision.compute": draw.choice(("bf16", "f32")),
                "overlap.collectives": draw.choice(("auto", "always", "never"))}
    if "pp=2" in axes:
        settings["pipeline.schedule"] = draw.choice(("gpipe", "1f1b", "interleaved-1f1b", "zb-h1"))
    elif draw.random() < 0.3:
        settings |= {"target.device": "cuda", "target.machine": draw.choice(("h100x8", "a100x8")),
                     "target.arch": "sm_80"}
    if "pp=2" in axes and settings["pipeline.schedule"] in ("1f1b", "gpipe") and draw.random() < 0.5:
        settings["pipeline.layers"] = [1, 3]  # uneven stages
    return draw.choice(MODELS), settings


class Estimates(unittest.TestCase):
    cost_s = 40

    def setUp(self):
        self.space = shell.Shell()
        self.addCleanup(self.space.close)

    def compile(self, model, settings, *options):
        self.space.write("s.toml", "[mesh]\naxes = []\n[batch]\nglobal = 1\nmicro = 1\nsequence = 8\n")
        sets = [part for key, value in settings.items() for part in ("--set", f"{key}={json.dumps(value)}")]
        return self.space.run("meshwork", "compile", f"examples/{model}", "--spec", "s.toml", *sets, *options)

    def estimate(self, settings, model="llama-tiny.json"):
        done = self.compile(model, settings, "--estimate", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check_as_explained(self, model, settings):
        """Whether the case compiles; then each digit is the one that explain has of the plan with code."""
        told = self.compile(model, settings, "--estimate", "--json")
        plan = self.compile(model, settings, "-o", "a.mwplan")
        self.assertEqual(told.returncode, plan.returncode, told.stderr + plan.stderr)
        if plan.returncode != 0:
            return False
        explained = json.loads(self.space.must("meshwork", "explain", "a.mwplan", "--json").stdout)
        self.assertEqual(json.loads(told.stdout), {key: explained[key] for key in json.loads(told.stdout)}, settings)
        text = self.compile(model, settings, "--estimate").stdout
        self.assertEqual(text.count("\n"), 1)
        self.assertEqual("meshwork: e" + text[1:], plan.stderr.splitlines(keepends=True)[-1])
        self.assertIn("\n" + text, self.space.must("meshwork", "explain", "a.mwplan").stdout)
        return True

    def test_it_is_what_explain_says_of_the_plan(self):
        draw = random.Random(34)
        compiled = sum(self.check_as_explained(*random_case(draw)) for _ in range(CASES))
        self.assertGreater(compiled, CASES // 2)

    def test_what_it_tells_beside_the_time_of_a_step(self):
        """Tokens a second, MFU, and what is not hidden, each worked out in another way."""
        settings = {"mesh.axes": ["dp=2", "tp=2"], "batch.global": 8, "batch.micro": 2, "batch.sequence": 64,
                    "target.device": "cuda", "target.machine": "a100x8", "overlap.collectives": "never"}
        told = self.estimate(settings)
        self.assertEqual(set(told), {"format_version", "memory_per_rank_bytes", "host_memory_per_rank", "choices", "estimate"})
        step = told["estimate"]
        self.assertAlmostEqual(step["tokens_per_second"] * step["step_ms"] * 1e-3 / (8 * 64), 1, delta=1e-9)
        self.compile("llama-tiny.json", settings | {"target.arch": "sm_80"}, "-o", "a.mwplan")
        flops = json.loads(self.space.must("meshwork", "explain", "a.mwplan", "--json").stdout)["flops_per_step"]
        self.assertAlmostEqual(step["mfu"] / (flops / (step["step_ms"] * 1e-3) / (4 * 312e12)), 1, delta=1e-9)
        moved = sum(row["ms"] for row in step["operations"] if row["operation"] in COLLECTIVES)
        self.assertAlmostEqual(sum(step["exposed_ms"].values()), moved, delta=1e-9 * moved)
        self.assertIn("tp", step["exposed_ms"])
        self.assertEqual(step["bubble_fraction"], 0)
        hidden = self.estimate(settings | {"overlap.collectives": "always"})["estimate"]
        self.assertLess(hidden["exposed_ms"]["tp"], step["exposed_ms"]["tp"])
        self.assertIsNone(self.estimate({key: value for key, value in settings.items()
                                         if key != "target.machine"})["estimate"]["mfu"])

    def test_products_in_fp8_count_by_their_own_peak(self):
        """As if each product ran at the peak of its type: 1979 and 989 Tflop/s."""
        settings = {"mesh.axes": ["dp=2"], "batch.global": 8, "batch.micro": 4, "batch.sequence": 64,
                    "target.device": "cuda", "target.arch": "sm_90a", "target.machine": "h100x8",
                    "precision.matmul": "fp8"}
        self.compile("llama-tiny.json", settings, "-o", "a.mwplan")
        told = json.loads(self.space.must("meshwork", "explain", "a.mwplan", "--json").stdout)
        flops = {"fp8": 0, "bf16": 0}
        for one in told["rank_classes"][0]["instructions"]:
            if one["operation"] in ("matmul", "attention", "attention_grad"):
                flops["fp8" if one["reads"][0]["type"].startswith(("e4m3", "e5m2")) else "bf16"] += one["flops"]
        self.assertLess(0.3, flops["fp8"] / sum(flops.values()))
        peak = 2 * sum(flops.values()) / (flops["fp8"] / 1979e12 + flops["bf16"] / 989e12)
        step = told["estimate"]
        self.assertAlmostEqual(step["mfu"] / (told["flops_per_step"] / (step["step_ms"] * 1e-3) / peak), 1, delta=1e-9)

    def test_the_copy_that_was_tried_becomes_the_plan(self):
        """Where balanced layers fit the memory, phases do not run again, unless somebody wants to see them."""
        settings = {"mesh.axes": ["pp=2", "dp=2"], "batch.global": 8, "batch.micro": 1, "batch.sequence": 64,
                    "expect.memory_per_rank": "1 GiB"}
        tried = self.compile("llama-bytes.json", settings, "-o", "tried.mwplan", "--timing")
        shown = self.compile("llama-bytes.json", settings, "-o", "shown.mwplan", "--timing", "--dump-phases", "phases")
        self.assertEqual((tried.returncode, shown.returncode), (0, 0), tried.stderr + shown.stderr)
        self.assertEqual((self.space.path / "tried.mwplan").read_bytes(), (self.space.path / "shown.mwplan").read_bytes())
        self.assertRegex(tried.stderr, r"(?m)^the rest +[0-9.]+ ms$")
        self.assertRegex(shown.stderr, r"(?m)^memory +[0-9.]+ ms$")
        self.assertNotRegex(tried.stderr, r"(?m)^memory ")
        chosen = self.compile("llama-bytes.json", settings | {"recompute.policy": "auto"}, "-o", "a.mwplan", "--timing")
        self.assertRegex(chosen.stderr, r"(?m)^memory +[0-9.]+ ms$")

    def test_what_has_no_code_has_no_estimate(self):
        settings = {"mesh.axes": ["dp=2"], "batch.global": 2, "batch.micro": 1, "batch.sequence": 64,
                    "target.device": "cuda", "target.arch": "sm_80", "precision.matmul": "fp8"}
        told = self.compile("llama-tiny.json", settings, "--estimate")
        plan = self.compile("llama-tiny.json", settings, "-o", "a.mwplan")
        self.assertEqual((told.returncode, told.stdout, told.stderr), (shell.SPEC, "", plan.stderr))

    def test_bubbles_are_told(self):
        settings = {"mesh.axes": ["pp=2"], "batch.global": 4, "batch.micro": 1, "batch.sequence": 64}
        few = self.estimate(settings)["estimate"]
        many = self.estimate(settings | {"batch.global": 16})["estimate"]
        self.assertLess(many["bubble_fraction"], few["bubble_fraction"])
        self.assertRegex(self.compile("llama-tiny.json", settings, "--estimate").stdout,
                         r"^Estimate on cpu: .* a step, .* tokens/s, .* a rank, bubble \d+\.\d %; not hidden of what")

    def test_what_does_not_fit_is_estimated_with_a_warning(self):
        settings = {"mesh.axes": ["dp=2"], "batch.global": 4, "batch.micro": 1, "batch.sequence": 64}
        whole = self.compile("llama-tiny.json", settings, "--estimate")
        done = self.compile("llama-tiny.json", settings | {"expect.memory_per_rank": "1 MiB"}, "--estimate")
        self.assertEqual((done.returncode, done.stdout), (0, whole.stdout))
        self.assertRegex(done.stderr, r"^meshwork: warning: expect.memory_per_rank: each rank needs .*, expected at most "
                                      r"1.00 MiB = 1048576 bytes: it is estimated, but does not compile\n$")
        self.assertEqual(whole.stderr, "")

    def test_it_writes_no_plan_and_goes_with_no_other_end(self):
        settings = {"mesh.axes": ["dp=2"], "batch.global": 2, "batch.micro": 1, "batch.sequence": 64}
        done = self.compile("llama-tiny.json", settings, "--estimate", "-o", "told.txt")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertTrue(self.space.read("told.txt").startswith("Estimate on cpu: "))
        for options in (["--json"], ["--estimate", "--compile-to", "step"], ["--estimate", "--with-cpu-code", "native"],
                        ["--estimate", "--print-config"]):
            self.assertEqual(self.compile("llama-tiny.json", settings, *options).returncode, shell.USAGE, options)


if __name__ == "__main__":
    unittest.main()
