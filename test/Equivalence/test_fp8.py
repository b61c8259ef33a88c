"""Products in FP8 (precision.matmul = "fp8") against PyTorch doing the same steps, on one
rank and on several, on a CPU and on an emulated GPU.

Tolerance. The recipe is exact but for one thing: where a value lies within f32's noise of
the border between two numbers of 8 bits, two implementations round it to different ones, a
step of up to 2^-3 of that one element. The noise is 2^-20 or so, a step of e4m3 2^-4 of
the value, so about one element in 10^4 is rounded otherwise; of a tensor of n elements
that is 2^-3 * sqrt(10^-4) of its norm, whatever n. A gradient has met a dozen such tensors,
which adds up to less than FLIPPED. What rounding to 8 bits itself does to a gradient must
be several times as large, or the test could not tell.
"""
import re
import unittest

import numpy as np
import torch

import configs
import fp8
import models
import oracle
import safetensors
import tools
from test_cuda import emulated

FP8 = {"matmul": "fp8"}
DELAYED = {**FP8, "scaling": "delayed"}
FLIPPED = 2.0 ** -3 * 10 ** -2 * 4
BATCH, SEQUENCE, STEPS, RATE = 4, 24, 20, 3e-3
GPT2 = {**configs.GPT2, "vocab_size": 136, "n_head": 4, "n_embd": 64, "n_inner": 128}
LLAMA = {**configs.LLAMA, "vocab_size": 136, "hidden_size": 64, "intermediate_size": 96}
# The products of its MLP have a size that is no multiple of 16.
MIXED = {**LLAMA, "intermediate_size": 104}
CORPUS = configs.corpus(vocabulary=136)
LAYOUTS = [({"dp": 2}, False, 0), ({"dp": 2}, False, 3), ({"tp": 2}, False, 0),
           ({"tp": 2}, True, 0), ({"dp": 2, "tp": 2}, True, 1)]
ONE = ({"dp": 1}, False, 0)
TARGETS = BATCH * SEQUENCE


def spec(axes=None, sequence=False, stage=0, micro=None, compute="f32", precision=FP8, **sections):
    axes = axes or {"dp": 1}
    shard = {**({"residual_sequence": ["tp"]} if sequence else {}), **sections.pop("shard", {})}
    return tools.spec(BATCH, micro or BATCH // axes.get("dp", 1), SEQUENCE, compute=compute,
                      mesh={"axes": [f"{n}={s}" for n, s in axes.items()]}, shard=shard,
                      zero={"stage": stage}, precision=precision, **sections)


def arrays_of(config, seed=17):
    return {n: w.detach().numpy() for n, w in models.random_weights(config, seed).items()}


def reference(config, arrays, wrap, dtype=torch.float64):
    """Loss and gradients of the first step; `wrap` puts the weights in."""
    weights = models.weights_from(config, arrays, dtype)
    batch = oracle.windows(CORPUS, BATCH, SEQUENCE, 0, 0)
    loss = models.loss(config, wrap(weights), *batch)
    loss.backward()
    return loss.item(), {n: w.grad.double().numpy() for n, w in weights.items()}


class Recipe:
    """Either way to find scales."""

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)

    def step(self, config, arrays, layout=ONE, space=None, options=(), **keys):
        space = space or self.space
        plan = space.compile(config, spec(*layout, precision=self.precision, **keys))
        return space.train(plan, CORPUS, 1, *options, lr=0, init=space.save_weights(arrays))

    def errors(self, found, expected):
        return {n: oracle.relative_error(found[n], expected[n]) for n in expected}

    def test_losses_of_twenty_steps_in_bf16(self):
        """As test_bf16: PyTorch in bf16 with the same recipe is one draw of the error."""
        for name, config in (("gpt2", GPT2), ("llama", LLAMA)):
            with self.subTest(name):
                plan = self.space.compile(config, spec(compute="bf16", precision=self.precision))
                initial = self.space.initial_weights(plan)
                run = self.space.train(plan, CORPUS, STEPS, lr=RATE, init=initial)
                arrays = safetensors.read(initial)
                shape = (BATCH, SEQUENCE, [RATE] * STEPS)
                exact, low = (oracle.train(config, arrays, CORPUS, *shape, dtype=dtype,
                                           wrap=self.oracle())[0]
                              for dtype in (torch.float64, torch.bfloat16))
                rms = lambda x: float(np.sqrt(np.mean(np.square(x))))
                limit = 3 * rms(np.subtract(low, exact))
                self.assertLess(limit, 0.1 * (exact[0] - exact[-1]), "too loose to tell")
                self.assertLess(rms(np.subtract(run.losses, exact)), limit)

    def test_stages_share_a_weight(self):
        """Of four layers; ranks have the first and the last, and those between."""
        config = {**LLAMA, "num_hidden_layers": 4}
        with open(self.space.model(config)) as text:
            model = text.read()
        for layer in (1, 2, 3):
            model = re.sub(rf"%l{layer}_up_weight = .*", "", model).replace(f"%l{layer}_up_weight", "%l0_up_weight")
        shared = self.space.write(".mlir", model)
        gradients = []
        for axes, more in (({"dp": 1}, {}), ({"pp": 2}, {"pipeline": {"schedule": "zb-v"}, "shard": {"layers": ["pp"]}})):
            plan = self.space.compile(shared, spec(axes, micro=1, precision=self.precision, **more))
            gradients.append(self.space.train(plan, CORPUS, 2, lr=0).gradients)
        errors = self.errors(*gradients)
        self.assertLess(max(errors.values()), FLIPPED, errors)

    def test_recompute_changes_no_bit(self):
        arrays = arrays_of(LLAMA)
        base = self.step(LLAMA, arrays, compute="bf16", recompute={"policy": "none"})
        full = self.step(LLAMA, arrays, compute="bf16", recompute={"policy": "full"})
        self.assertEqual(base.losses, full.losses)


class Fp8(Recipe, unittest.TestCase):
    precision = FP8
    oracle = staticmethod(lambda: fp8.linear)

    def test_gradient_of_every_weight(self):
        for name, config in (("gpt2", GPT2), ("llama", LLAMA), ("mixed", MIXED)):
            with self.subTest(name):
                arrays = arrays_of(config)
                loss, expected = reference(config, arrays, fp8.linear)
                exact_loss, exact = reference(config, arrays, dict)
                effect = self.errors(exact, expected)
                run = self.step(config, arrays)
                errors = self.errors(run.gradients, expected)
                self.assertLess(3 * FLIPPED, np.median(list(effect.values())), "cannot tell")
                self.assertLess(max(errors.values()), FLIPPED, errors)
                self.assertLess(abs(run.losses[0] - loss), 0.1 * abs(exact_loss - loss))

    def check_layouts(self, config, layouts, space, base, arrays, options=(), **keys):
        for layout in layouts:
            with self.subTest(config["model_type"], layout=layout):
                run = self.step(config, arrays, layout, space, options, **keys)
                self.assertAlmostEqual(run.losses[0] / base.losses[0], 1, delta=FLIPPED)
                errors = self.errors(run.gradients, base.gradients)
                self.assertLess(max(errors.values()), FLIPPED, errors)

    def test_ranks_agree(self):
        for config in (GPT2, LLAMA):
            arrays = arrays_of(config)
            base = self.step(config, arrays)
            self.check_layouts(config, LAYOUTS, self.space, base, arrays)

    def test_microbatches_add_up(self):
        """Each has scales of its own, so the sum is that of the recipe on each."""
        arrays = arrays_of(LLAMA)
        base, run = self.step(LLAMA, arrays), self.step(LLAMA, arrays, micro=2)
        errors = self.errors(run.gradients, base.gradients)
        self.assertLess(max(errors.values()), 2 * FLIPPED, errors)

    def test_moves_what_bf16_moves(self):
        """And maxima. The spec has a budget of collectives; what is gathered for the
        products is gathered in 8 bits."""
        examples = tools.ROOT / "examples"
        sent = {}
        for matmul in ("compute", "fp8"):
            plan = self.space.file(".mwplan")
            self.space.must("meshwork", "compile", examples / "llama-tiny.json", "--spec",
                            examples / "tp2-sp.toml", "--set", f"precision.matmul={matmul}",
                            "-o", plan)
            sent[matmul] = {}
            for c in self.space.explain(plan)["collectives"]:
                if c["phase"] == "forward" and "input_layernorm" in c["cause"]:
                    key = c["kind"], c["bytes_sent_per_rank"] > 1000
                    sent[matmul][key] = sent[matmul].get(key, 0) + c["bytes_sent_per_rank"]
        self.assertEqual(2 * sent["fp8"]["all_gather", True],
                         sent["compute"]["all_gather", True])
        self.assertEqual(set(sent["fp8"]) - set(sent["compute"]), {("all_reduce", False)})

    def test_explain_tells_which(self):
        plan = self.space.compile(MIXED, spec(compute="bf16"))
        text = self.space.must("meshwork", "explain", plan).stdout
        for line in (r"\*\.self_attn\.q_proj\.weight +e4m3 x e4m3 to bf16 .* yes",
                     r"\*\.self_attn\.q_proj\.weight +e5m2 x e4m3 to bf16 .* yes",
                     r"\*\.self_attn\.q_proj\.weight \(gradient\) +e4m3 x e5m2 to bf16 .* yes",
                     r"\*\.mlp\.gate_proj\.weight +bf16 x bf16 to bf16 .* no: not all sizes",
                     r"lm_head\.weight +bf16 x bf16 to bf16 .* no: "):
            self.assertRegex(text, line)

    def test_a_gpu_refuses_sizes_that_only_the_sharding_tells(self):
        """80 columns are five times 16; a pin halves them."""
        config = {**LLAMA, "hidden_size": 80, "num_attention_heads": 5, "num_key_value_heads": 5}
        pin = ('[[shard.tensor]]\nname = "model.layers.*.mlp.gate_proj.weight"\n'
               "dims = '[{}, {\"tp\"}]'\n")
        text = spec({"tp": 2}, target={"device": "cuda", "arch": "sm_90a"}, shard={"heads": []}) + pin
        done = self.space.call("meshwork", "compile", self.space.model(config), "--spec",
                               self.space.write(".toml", text), "-o", self.space.file(".mwplan"))
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("has FP8 operands, expected multiples of 16; split other dims, or set "
                      'precision.matmul to "compute"', done.stderr)

    def test_emulated_gpu(self):
        gpu = {"target": {"device": "cuda", "arch": "sm_90a"}}
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_CC="9.0")) as space:
            for config in (GPT2, LLAMA):
                arrays = arrays_of(config)
                base = self.step(config, arrays)
                self.check_layouts(config, [ONE], space, base, arrays, **gpu)
            self.check_layouts(config, LAYOUTS[-1:], space, base, arrays, ["--share-gpu"], **gpu)
            plan = space.compile(LLAMA, spec(compute="bf16", **gpu), "--with-cpu-code", "native")
            space.train(plan, CORPUS, 1, "--compare-cpu")

    def test_a_model_learns(self):
        """From text, as fast as without FP8, nearly."""
        text = self.space.write(".txt", " ".join(
            f"{a} and {b} make {a + b}." for a in range(20) for b in range(20)))
        config = {**LLAMA, "vocab_size": 256, "hidden_size": 64, "intermediate_size": 128}
        last = {}
        for matmul in ("compute", "fp8"):
            plan = self.space.compile(config, tools.spec(
                8, 8, 64, compute="bf16", precision={"matmul": matmul}))
            metrics = self.space.file(".jsonl")
            self.space.must("meshwork-run", plan, "--data", text, "--tokenizer", "bytes",
                            "--steps", 80, "--lr", 3e-3, "--metrics", metrics)
            with open(metrics) as lines:
                losses = [float(line.split('"loss":')[1].split(",")[0]) for line in lines]
            self.assertGreater(losses[0], 5)
            last[matmul] = np.mean(losses[-10:])
        self.assertLess(last["fp8"], 1.5)
        self.assertLess(abs(last["fp8"] - last["compute"]), 0.1 * last["compute"])


class Delayed(Recipe, unittest.TestCase):
    """Scales from the steps before. Of some steps, which change no weight, no value lies at a
    border between two numbers; there gradients agree as in f32. A wrong scale changes all."""
    precision = DELAYED
    oracle = staticmethod(lambda: fp8.Delayed(TARGETS))
    STEPS = range(2, 10)

    def gradients(self, config, arrays, steps, wrap, ids=CORPUS):
        weights = models.weights_from(config, arrays, torch.float64)
        for step in range(steps):
            for weight in weights.values():
                weight.grad = None
            batch = oracle.windows(ids, BATCH, SEQUENCE, 0, step)
            models.loss(config, wrap(weights), *batch).backward()
        return {n: w.grad.numpy() for n, w in weights.items()}

    def run_steps(self, config, arrays, steps, layout=ONE, options=(), space=None, ids=CORPUS,
                  **keys):
        space = space or self.space
        plan = space.compile(config, spec(*layout, precision=self.precision, **keys))
        return space.train(plan, ids, steps, *options, lr=0, init=space.save_weights(arrays))

    def assert_differs(self, found, expected):
        effect = list(self.errors(found, expected).values())
        self.assertLess(1e-3, np.median(effect), "cannot tell")

    def assert_agree(self, errors_after):
        largest = []
        for steps in self.STEPS:
            largest.append(max(errors_after(steps).values()))
            if largest[-1] < 1e-4:
                return
        self.fail(f"expected no difference after one of some steps, found {largest}")

    def test_scales_come_from_the_steps_before(self):
        for config in (GPT2, LLAMA, MIXED):
            arrays = arrays_of(config)

            def errors_after(steps):
                expected = self.gradients(config, arrays, steps, self.oracle())
                of_first = self.gradients(config, arrays, steps, lambda w: self.oracle()(w))
                self.assert_differs(of_first, expected)
                return self.errors(self.run_steps(config, arrays, steps).gradients, expected)

            with self.subTest(config["model_type"]):
                self.assert_agree(errors_after)

    def test_what_grows_is_cut_off(self):
        """A token that no step before has makes of one norm's result almost one number."""
        strange = 135
        arrays = arrays_of(LLAMA)
        arrays["model.embed_tokens.weight"][strange] = 0
        arrays["model.embed_tokens.weight"][strange, 3] = 20
        plain = np.where(CORPUS == strange, 0, CORPUS)
        places = np.arange(len(plain))

        def errors_after(steps):
            *before, last = (oracle.windows(places, BATCH, SEQUENCE, 0, s)[0].numpy() for s in range(steps))
            ids = plain.copy()
            ids[np.setdiff1d(last, before)[:1]] = strange
            expected, current = (self.gradients(LLAMA, arrays, steps, wrap, ids)
                                 for wrap in (self.oracle(), fp8.linear))
            self.assert_differs(current, expected)
            run = self.run_steps(LLAMA, arrays, steps, ids=ids)
            told = [line["fp8_saturated"] for line in run.metrics]
            self.assertEqual(told[:-1], [0] * (steps - 1))
            self.assertGreater(told[-1], 0)
            self.assertRegex(run.said, rf"step {steps - 1}/.* {told[-1]} saturated in FP8")
            return self.errors(run.gradients, expected)

        self.assert_agree(errors_after)

    def test_the_first_step_has_scales_too(self):
        self.STEPS = [1, 1]
        for config in (GPT2, LLAMA):
            seeds = iter((17, 18))

            def errors_after(steps):
                arrays = arrays_of(config, next(seeds))
                return self.errors(self.run_steps(config, arrays, steps).gradients,
                                   self.gradients(config, arrays, steps, self.oracle()))

            with self.subTest(config["model_type"]):
                self.assert_agree(errors_after)

    def check_layout(self, config, layout, **keys):
        arrays = arrays_of(config)
        with self.subTest(config["model_type"], layout=layout):
            self.assert_agree(lambda steps: self.errors(
                self.run_steps(config, arrays, steps, layout, **keys).gradients,
                self.run_steps(config, arrays, steps).gradients))

    def test_ranks_remember_alike(self):
        """Microbatches, too: one scale is for all of a step."""
        for config in (GPT2, LLAMA):
            self.check_layout(config, ONE, micro=2)
            for layout in LAYOUTS[1:]:
                self.check_layout(config, layout)
            self.check_layout(config, ({"pp": 2}, False, 0), micro=2, shard={"layers": ["pp"]})

    def test_emulated_gpu(self):
        gpu = {"target": {"device": "cuda", "arch": "sm_90a"}}
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_CC="9.0")) as space:
            self.check_layout(LLAMA, LAYOUTS[-1], space=space, options=["--share-gpu"], **gpu)
            plan = space.compile(GPT2, spec(compute="bf16", precision=self.precision, **gpu),
                                 "--with-cpu-code", "native")
            space.train(plan, CORPUS, 2, "--compare-cpu")

    def test_a_run_that_resumes_remembers(self):
        """On the same mesh bit for bit; on another one as closely as ranks agree."""
        arrays = arrays_of(LLAMA)
        whole = self.run_steps(LLAMA, arrays, 4, compute="bf16")
        saved = self.space.file(".checkpoints")
        self.run_steps(LLAMA, arrays, 2, compute="bf16", options=("--checkpoint", saved))
        for layout in (ONE, ({"dp": 2, "tp": 2}, True, 3)):
            plan = self.space.compile(LLAMA, spec(*layout, compute="bf16", precision=self.precision))
            run = self.space.train(plan, CORPUS, 4, "--resume", saved, lr=0)
            if layout is ONE:
                self.assertEqual(run.losses, whole.losses[2:])
            for found, expected in zip(run.losses, whole.losses[2:], strict=True):
                self.assertAlmostEqual(found / expected, 1, delta=FLIPPED)

    def test_a_plan_that_scales_otherwise_resumes(self):
        """What is remembered is no part of the model: it is left, or begins anew."""
        plans = [self.space.compile(LLAMA, spec(precision=p)) for p in (DELAYED, FP8, DELAYED)]
        saved = [self.space.file(".checkpoints") for _ in plans]
        self.space.train(plans[0], CORPUS, 2, "--checkpoint", saved[0])
        for i in (1, 2):
            self.space.train(plans[i], CORPUS, 2 + i, "--resume", saved[i - 1], "--checkpoint", saved[i])
        self.space.must("meshwork", "checkpoint", "verify", saved[2])
        told = self.space.must("meshwork", "checkpoint", "inspect", saved[2]).stdout
        self.assertRegex(told, r"state gradient_magnitude: F32, (\d+) elements in \1 tensors")

    def test_maxima_wait_for_the_end_of_the_step(self):
        plan = self.space.compile(LLAMA, spec({"dp": 2}, precision=self.precision))
        moved = self.space.explain(plan)["collectives"]
        self.assertEqual({c["phase"] for c in moved}, {"update"})
        text = self.space.must("meshwork", "explain", plan).stdout
        self.assertIn("activations and gradients by that of the steps before", text)


if __name__ == "__main__":
    unittest.main()
