"""Gradients that are reduced in 8 or 4 bits (zero.gradients): no element is further off than half of the scales of its
blocks, on each rank one; what is not rounded stays as it is, and training goes on as well."""
import re
import unittest

import numpy as np

import configs
import models
import oracle
import tools
from test_cuda import emulated
from test_parallel import Agreement

BATCH, SEQUENCE = 12, 17
BLOCK = 16
LARGEST = {"int8": 127, "int4": 7}
# Of sums of some 2^8 f32 in another order, over the largest magnitude.
SAME = 2.0 ** -24 * 2 ** 8
GPT2 = {**configs.GPT2, "vocab_size": 131, "n_head": 4, "n_inner": 101}
LLAMA = {**configs.LLAMA, "vocab_size": 131}
NARROW = {**LLAMA, "hidden_size": 15, "intermediate_size": 13}  # a rank has 5 elements of a row
RARE = 77  # a token
SMALL_NORMS = {**LLAMA, "rms_norm_eps": 1e-12, "num_hidden_layers": 1}
# Sizes that three and four ranks do not divide.
LAYOUTS = [(LLAMA, ["dp=3"], {"stage": 2}, {}),
           (GPT2, ["dp=4"], {"stage": 3}, {"overlap": {"collectives": "always"}}),
           (LLAMA, ["dp=3"], {"stage": 1}, {}),
           (NARROW, ["dp=3"], {"stage": 2}, {}),
           (LLAMA, ["dp=2", "fsdp=2"], {"stage": 3, "axes": ["fsdp", "dp"], "gathered": ["fsdp"]}, {}),
           (GPT2, ["dp=2", "tp=2"], {"stage": 3, "reduce": "step"}, {"shard": {"residual_sequence": ["tp"]}}),
           (LLAMA, ["pp=2", "dp=2"], {"stage": 2}, {"pipeline": {"schedule": "zb-h1"}}),
           (configs.MIXTRAL, ["ep=2", "dp=2"], {"stage": 2}, {"shard": {"experts": ["ep"]}})]
# Copies of what is split, and stages that share a matrix.
MORE_LAYOUTS = [(LLAMA, ["dp=2", "fsdp=2"], {"stage": 2, "axes": ["fsdp"]}, {}),
                (GPT2, ["dp=2", "tp=2"], {"stage": 1}, {}),
                (GPT2, ["pp=2", "dp=2"], {"stage": 1}, {})]


def size_of(mesh, *names):
    return int(np.prod([int(axis.split("=")[1]) for axis in mesh if axis.split("=")[0] in names]))


def blocks_of(rows, how):
    """What the numbers of a block stand for, rounded as the run rounds it, and half of its scale, by element."""
    blocks = rows.reshape(-1, BLOCK)
    most = np.abs(blocks).max(1, keepdims=True)
    numbers = np.rint(np.where(most > 0, blocks * (np.float32(LARGEST[how]) / most), np.float32(0)))
    scale = most / np.float32(LARGEST[how])
    return (numbers * scale).reshape(rows.shape), np.broadcast_to(scale / 2, blocks.shape).reshape(rows.shape)


class QuantizedGradients(Agreement):
    cost_s = 60
    batch, sequence, corpus = BATCH, SEQUENCE, configs.corpus(vocabulary=131)

    def spec(self, mesh, zero=None, batch=BATCH, compute="f32", **sections):
        ranks = size_of(mesh, "dp", "fsdp", "ep")
        return tools.spec(batch, batch // ranks // (2 if "pp=2" in mesh else 1), SEQUENCE, compute=compute,
                          mesh={"axes": mesh}, **({"zero": zero} if zero else {}), **sections)

    def gradients(self, config, mesh, zero, sections, init, space=None, options=()):
        space = space or self.space
        plan = space.compile(config, self.spec(mesh, zero, **sections))
        return space.train(plan, self.corpus, 1, *options, lr=0, init=init)

    def of_ranks(self, config, count):
        """What each rank adds, as PyTorch has it: of its samples, each sum divided by the targets of all."""
        arrays = {name: weight.detach().numpy() for name, weight in self.random_weights(config).items()}
        tokens, targets = oracle.windows(self.corpus, BATCH, SEQUENCE, 0, 0)
        parts = []
        for own in np.split(np.arange(BATCH), count):
            _, gradients = oracle.gradients(config, models.weights_from(config, arrays), tokens[own], targets[own])
            parts.append({name: (array / count).astype("f4") for name, array in gradients.items()})
        return parts

    def assert_near(self, quantized, exact, ranks, how, sums=1):
        """By the scale that a tensor's largest magnitude would have, which no block's exceeds; of two sums, the
        second one rounds what the first one made, which may be as large as all."""
        for name, array in exact.items():
            most = sum(np.abs(part[name]).max() for part in ranks)
            limit = sums * most / LARGEST[how] / 2 + SAME * most
            self.assertLess(np.abs(quantized[name] - array).max(), limit, name)

    def assert_told(self, run, exact):
        """A step tells the norm of what differs from the gradient that is not rounded."""
        squares = sum(np.sum((run.gradients[name].astype("f8") - array) ** 2) for name, array in exact.items())
        self.assertAlmostEqual(run.metrics[0]["gradient_error"] / np.sqrt(squares), 1, delta=0.1)

    def test_no_element_is_further_off_than_half_a_scale(self):
        for config, mesh, zero, sections in LAYOUTS:
            init = self.space.save_weights(self.random_weights(config))
            count = size_of(mesh, "dp", "fsdp")
            if "pp=2" in mesh or "ep=2" in mesh:
                continue  # each microbatch is rounded: below
            exact = self.gradients(config, mesh, zero, sections, init).gradients
            ranks = self.of_ranks(config, count)
            for how in LARGEST:
                with self.subTest(model=config["model_type"], mesh=mesh, how=how, **zero):
                    run = self.gradients(config, mesh, {**zero, "gradients": how, "gradient_error": True}, sections, init)
                    self.assert_near(run.gradients, exact, ranks, how, sums=2 if "fsdp=2" in mesh else 1)
                    self.assert_told(run, exact)
                    effects = {name: oracle.relative_error(run.gradients[name], exact[name])
                               for name, array in exact.items() if array.ndim > 1 and "wpe" not in name}
                    self.assertGreater(min(effects.values()), 100 * SAME, "cannot tell")
                    for name, array in exact.items():
                        if array.ndim == 1:
                            self.assertTrue(np.array_equal(run.gradients[name], array), name)

    def test_blocks_are_rounded_one_by_one(self):
        """Rows of the head, which ranks divide, so that blocks lie along them: all of its numbers, but for those that
        another order of sums rounds the other way."""
        model = {**LLAMA, "vocab_size": 132}
        init = self.space.save_weights(self.random_weights(model))
        ranks = self.of_ranks(model, 3)
        name = "lm_head.weight"
        for how in LARGEST:
            run = self.gradients(model, ["dp=3"], {"stage": 2, "gradients": how, "gradient_block": BLOCK}, {}, init)
            parts = [blocks_of(part[name], how) for part in ranks]
            far = np.abs(run.gradients[name] - sum(wide for wide, _ in parts))
            limit = sum(half for _, half in parts)
            with self.subTest(how=how):
                self.assertLess(np.mean(far > limit / 10), 0.005)
                exact = sum(part[name] for part in ranks)
                self.assertTrue((np.abs(run.gradients[name] - exact) <= limit * (1 + 1e-5) + SAME * limit.max()).all())

    def test_in_any_mix(self):
        """Where microbatches follow each other each is rounded. A step's loss is as it was, and gradients are near."""
        for config, mesh, zero, sections in LAYOUTS[-3:] + MORE_LAYOUTS:
            init = self.space.save_weights(self.random_weights(config))
            exact = self.gradients(config, mesh, zero, sections, init)
            for how, limit in (("int8", 0.03), ("int4", 0.4)):
                with self.subTest(model=config["model_type"], mesh=mesh, how=how):
                    run = self.gradients(config, mesh, {**zero, "gradients": how, "gradient_error": True}, sections, init)
                    self.assertEqual(run.losses, exact.losses)
                    self.assert_told(run, exact.gradients)
                    for name, array in exact.gradients.items():
                        self.assertLess(oracle.relative_error(run.gradients[name], array), limit, name)

    def test_stages_that_share_a_matrix_send_its_parts(self):
        """As without: what is reduced over the data first is half as large."""
        config, mesh, zero, sections = MORE_LAYOUTS[-1]
        usual, rounded = ([(one["kind"], one["bytes_sent_per_rank"]) for one in self.space.explain(self.space.compile(
            config, self.spec(mesh, {**zero, "gradients": how}, **sections)))["collectives"] if one["axis"] == "pp"]
            for how in ("precision", "int8"))
        self.assertIn(("all_reduce", 4 * config["vocab_size"] * config["n_embd"] // 2), usual)
        self.assertEqual(usual, rounded)

    def test_telling_the_error_changes_no_bit(self):
        config, mesh, zero, sections = LAYOUTS[0]
        init = self.space.save_weights(self.random_weights(config))
        silent, run = (self.gradients(config, mesh, {**zero, "gradients": "int4", **more}, sections, init)
                       for more in ({}, {"gradient_error": True}))
        self.assertNotIn("gradient_error", silent.metrics[0])
        for name, gradient in silent.gradients.items():
            self.assertTrue(np.array_equal(gradient, run.gradients[name]), name)

    def test_on_a_gpu(self):
        gpu = {"target": {"device": "cuda", "arch": "sm_80"}}
        zero = {"stage": 3}
        with tools.Workspace(**emulated()) as space:
            init = space.save_weights(self.random_weights(LLAMA))
            ranks = self.of_ranks(LLAMA, 2)
            exact = self.gradients(LLAMA, ["dp=2"], zero, {}, init).gradients
            for how in LARGEST:
                with self.subTest(how=how):
                    run = self.gradients(LLAMA, ["dp=2"], {**zero, "gradients": how, "gradient_error": True}, gpu, init, space,
                                         ["--share-gpu"])
                    self.assert_near(run.gradients, exact, ranks, how)
                    self.assert_told(run, exact)

    def test_trains_as_well(self):
        """500 steps of the quickstart's model are as far apart; they take too long here."""
        losses = {}
        for how in ("precision", "int8", "int4"):
            plan = self.space.compile(LLAMA, self.spec(["dp=2", "fsdp=2"], {"stage": 3, "axes": ["fsdp"], "gradients": how},
                                                       compute="bf16"))
            run = self.space.train(plan, self.corpus, 60, lr=3e-3)
            losses[how] = np.mean(run.losses[-10:])
        for how, limit in (("int8", 0.01), ("int4", 0.03)):
            self.assertAlmostEqual(losses[how] / losses["precision"], 1, delta=limit, msg=str(losses))

    def test_a_norm_that_is_no_number_ends_the_run(self):
        """The head's gradient is about 1e38, while the loss is a number: the words are those that it has without."""
        weights = {name: np.array(weight.detach().numpy()) for name, weight in self.random_weights(LLAMA).items()}
        weights["model.norm.weight"][:] = 3e37
        weights["lm_head.weight"] *= np.float32(1e-37)
        init, said = self.space.save_weights(weights), []
        for how in ("precision", "int8", "int4"):
            plan = self.space.compile(LLAMA, self.spec(["dp=2"], {"stage": 2, "gradients": how}))
            done = self.space.call("meshwork-run", plan, "--data", self.space.tokens(self.corpus), "--data-type", "u16",
                                   "--steps", 1, "--init", init)
            self.assertEqual(done.returncode, 65, done.stderr)
            said.append(re.sub(r'"t\d+"', "a buffer", done.stderr.splitlines()[-1]))
        self.assertRegex(said[0], "gradient norm")
        self.assertEqual(len(set(said)), 1, said)

    def one_infinite(self):
        """(weights, ids): one token makes an activation of 2e38, which a down projection of zeros hides from the loss.
        That projection's gradient is infinite. One sample of the first step has the token, the last."""
        weights = {name: np.array(weight.detach().numpy()) for name, weight in self.random_weights(SMALL_NORMS).items()}
        layer, column = "model.layers.0.", 5
        for name in ("self_attn.o_proj.weight", "self_attn.o_proj.bias", "mlp.down_proj.weight", "mlp.down_proj.bias",
                     "mlp.gate_proj.bias", "mlp.up_proj.bias"):
            weights[layer + name][:] = 0
        table, inputs = weights["model.embed_tokens.weight"], weights[layer + "post_attention_layernorm.weight"]
        table *= 1e-3 / np.abs(table).max()
        table[:, 0] = -1e-3
        table[RARE] *= 1e-3
        table[RARE, 0] = 1e-3
        inputs[:] = 1
        wide = 1.4e19 / np.sqrt(inputs.size)  # a norm leaves the square root of its width, where one element is all
        for name in ("gate", "up"):
            weights[layer + f"mlp.{name}_proj.weight"][column] = 0
            weights[layer + f"mlp.{name}_proj.weight"][column, 0] = wide
        ids = np.where(self.corpus == RARE, RARE + 1, self.corpus)
        places, _ = oracle.windows(np.arange(ids.size), BATCH, SEQUENCE, 0, 0)
        ids[int(places[-1, 5])] = RARE
        return weights, ids

    @staticmethod
    def words_of(line, how):
        """Without numbers of buffers and instructions."""
        line = re.sub(r"\[\d+\]", "", re.sub(r'"t\d+"', "a buffer", line))
        return line if how == "precision" else line.replace("is nan", "is inf").replace("holds a NaN", "holds an infinity")

    def test_an_infinity_on_one_rank(self):
        """It ends the run, or skips the step, by the words that it has without, but that its block is NaN then. They
        name the rank and the instruction that it comes from."""
        weights, ids = self.one_infinite()
        init, ends, skips = self.space.save_weights(weights), [], []
        tokens, targets = oracle.windows(ids, BATCH, SEQUENCE, 0, 0)
        for own, isHere in ((slice(None, BATCH // 2), False), (slice(BATCH // 2, None), True)):
            loss, gradients = oracle.gradients(SMALL_NORMS, models.weights_from(SMALL_NORMS, weights), tokens[own], targets[own])
            most = np.abs(gradients["model.layers.0.mlp.down_proj.weight"]).max()
            self.assertTrue(np.isfinite(loss))
            self.assertEqual(most > 2 * np.finfo("f4").max, isHere, most)
        for how in ("precision", "int8", "int4"):
            plan = self.space.compile(SMALL_NORMS, self.spec(["dp=2"], {"stage": 2, "gradients": how}))
            arguments = [plan, "--data", self.space.tokens(ids), "--data-type", "u16", "--init", init]
            done = self.space.call("meshwork-run", *arguments, "--steps", 1)
            self.assertEqual(done.returncode, 65, done.stderr)
            ends.append(self.words_of(done.stderr.splitlines()[-1], how))
            done = self.space.must("meshwork-run", *arguments, "--steps", 2, "--skip-bad-steps", 1)
            skips.append([self.words_of(line, how) for line in done.stdout.splitlines() if "is skipped" in line])
        self.assertRegex(ends[0], "gradient norm of step 0 is inf, its loss is 5.* an infinity in a buffer, .* on rank 1")
        self.assertEqual(len(skips[0]), 1, skips)
        self.assertEqual(ends, ends[:1] * 3)
        self.assertEqual(skips, skips[:1] * 3)

    def test_copies_stay_equal(self):
        """Each of two copies writes half of a checkpoint. So a run that goes on from one has the same bits if, and
        only if, they were equal."""
        layouts = [(["dp=2", "fsdp=2"], {"stage": 3, "axes": ["fsdp"]}, "int8"),
                   (["dp=2", "fsdp=2"], {"stage": 2, "axes": ["fsdp"], "reduce": "step"}, "int4")]
        for mesh, zero, how in layouts:
            with self.subTest(how):
                plan = self.space.compile(LLAMA, self.spec(mesh, {**zero, "gradients": how}, compute="bf16"))
                folder = self.space.file("")
                whole = self.space.train(plan, self.corpus, 22)
                self.space.train(plan, self.corpus, 20, "--checkpoint", folder)
                resumed = self.space.train(plan, self.corpus, 22, "--resume", folder)
                self.assertEqual(resumed.losses, whole.losses[20:])
                self.assertEqual(resumed.weight_bytes, whole.weight_bytes)

    def test_resumes_with_and_without(self):
        init, folder = self.space.save_weights(self.random_weights(LLAMA)), self.space.file("")
        three, two = (self.space.compile(LLAMA, self.spec(mesh, {"stage": 3, "gradients": how}))
                      for mesh, how in ((["dp=3"], "int8"), (["dp=2"], "precision")))
        self.space.train(three, self.corpus, 2, "--checkpoint", folder, init=init)
        whole = self.space.train(three, self.corpus, 3, init=init)
        resumed = self.space.train(two, self.corpus, 3, "--resume", folder)
        self.assertAlmostEqual(resumed.losses[-1] / whole.losses[-1], 1, delta=1e-4)


if __name__ == "__main__":
    unittest.main()
