"""Sizes that the axes do not divide - vocabulary, ffn, sequence, state under ZeRO -
against one rank: loss, every gradient, every updated weight; and transports against
each other, bit by bit.

Tolerances are those of test_parallel: splits reorder sums, and nothing else.
"""
import itertools
import pathlib
import shutil
import subprocess
import unittest

import numpy as np

import configs
import pairs
import tools
from test_parallel import EPSILON, RATE, Agreement

BATCH, SEQUENCE, VOCABULARY = 2, 23, 131
GPT2 = {**configs.GPT2, "vocab_size": VOCABULARY, "n_head": 12, "n_inner": 101}


def llama(tp):
    """Key heads that tp divides, or, of 4, in whose parts it is cut: blocks nest."""
    return {**configs.LLAMA, "vocab_size": VOCABULARY, "intermediate_size": 71,
            "num_attention_heads": 6 if tp == 3 else 4,
            "num_key_value_heads": 3 if tp == 3 else 2}


def spec(dp, tp, sequence, stage, rules=None, **sections):
    zero = {"stage": stage, "axes": ["dp"]} if stage else {"stage": 0}
    shard = {**({"residual_sequence": ["tp"]} if sequence else {}), **(rules or {})}
    return tools.spec(BATCH, BATCH // dp, SEQUENCE, mesh={"axes": [f"dp={dp}", f"tp={tp}"]},
                      shard=shard, zero=zero, optimizer={"epsilon": EPSILON}, **sections)


CASES = [(model, tp, sequence, dp, stage)
         for model, tp, sequence, (dp, stage) in itertools.product(
             ("gpt2", "llama"), (2, 3, 4), (False, True), ((1, 0), (2, 1), (2, 2), (2, 3)))]


class Uneven(Agreement):
    batch, sequence, corpus = BATCH, SEQUENCE, configs.corpus(vocabulary=VOCABULARY)

    def run_spec(self, config, text, steps, weights):
        return self.space.train(self.space.compile(config, text), self.corpus, steps, lr=RATE, init=weights)

    def check_all(self, config, tp, layouts, rules=None):
        weights = self.space.save_weights(self.random_weights(config))
        limits = self.gradient_limits(config)
        base = self.run_spec(config, spec(1, 1, False, 0), 1, weights)
        base_gradients, base_weights = base.gradients, base.weights
        for dp, sequence, stage in layouts:
            with self.subTest(tp=tp, dp=dp, sequence=sequence, stage=stage):
                run = self.run_spec(config, spec(dp, tp, sequence, stage, rules), 1, weights)
                self.assertAlmostEqual(run.losses[0] / base.losses[0], 1, delta=1e-6)
                self.assertAlmostEqual(run.metrics[0]["grad_norm"] / base.metrics[0]["grad_norm"], 1, delta=1e-6)
                found = run.gradients
                self.assertEqual(set(found), set(limits))
                far = {n: np.linalg.norm(found[n] - base_gradients[n]) / limits[n] for n in limits}
                self.assertLess(max(far.values()), 1, max(far, key=far.get))
                self.check_weights(run.weights, base_weights, limits, steps=1)

    def test_layouts(self):
        chosen = pairs.choose(CASES)
        for model, tp in itertools.product(("gpt2", "llama"), (2, 3, 4)):
            layouts = [(dp, sequence, stage) for name, parts, sequence, dp, stage in chosen if (name, parts) == (model, tp)]
            self.check_all(GPT2 if model == "gpt2" else llama(tp), tp, layouts)

    def test_head_and_ffn_on_parts_of_sequences(self):
        """Nothing but the residual stream is split: its padding meets the loss."""
        whole = {"vocab": [], "ffn": []}
        self.check_all(GPT2, 3, [(1, True, 0), (2, True, 3)], whole)
        self.check_all(llama(4), 4, [(2, True, 2)], whole)

    def test_heads_of_ten_on_two_axes(self):
        """A part of a part: of the rotary table, one layer takes it and others what it is cut from."""
        config = {**configs.ALL["qwen3"], "head_dim": 10, "num_hidden_layers": 3}
        pinned = ("[[shard.tensor]]\nname = 'model.layers.1.self_attn.q_proj.weight'\n"
                  "dims = '[{}, {\"x\", \"tp\"}, {}]'\n")
        run, base = (self.space.train(self.space.compile(config, tools.spec(BATCH, BATCH, SEQUENCE, mesh={"axes": axes}) + pin),
                                      self.corpus, 1, lr=RATE) for axes, pin in ((["tp=2", "x=2"], pinned), ([], "")))
        self.assertAlmostEqual(run.losses[0] / base.losses[0], 1, delta=1e-6)
        whole = np.sqrt(sum(np.square(g).sum() for g in base.gradients.values()))
        for name, expected in base.gradients.items():
            self.assertLess(np.linalg.norm(run.gradients[name] - expected), 1e-5 * whole, name)

    def test_heads_that_a_pin_alone_splits(self):
        """The weight and the bias before attention are whole, and a rank takes its heads of q, k and v."""
        pinned = "[[shard.tensor]]\nname = 'h.0.attn.c_proj.weight'\ndims = '[{\"x\"}, {}, {}]'\n"
        weights = self.space.save_weights(self.random_weights(GPT2))
        run, base = (self.run_spec(GPT2, tools.spec(BATCH, BATCH, SEQUENCE, mesh={"axes": axes}) + pin, 1, weights)
                     for axes, pin in ((["x=3"], pinned), ([], "")))
        self.assertAlmostEqual(run.losses[0] / base.losses[0], 1, delta=1e-6)
        whole = np.sqrt(sum(np.square(g).sum() for g in base.gradients.values()))
        for name, expected in base.gradients.items():
            self.assertLess(np.linalg.norm(run.gradients[name] - expected), 1e-5 * whole, name)

    def test_pins_over_axes_of_others(self):
        """Blocks of a head, columns of a rank's rows, what an exchange reads of another's result, and heads that a
        pin splits over an axis that exchanges them, or that has samples of its own."""
        def pin(name, dims):
            return f"[[shard.tensor]]\nname = '{name}'\ndims = '{dims}'\n"

        cases = [
            (GPT2, ["x=3"], {}, pin("h.*.attn.c_attn.weight", '[{?}, {?}, {?}, {"x"}]')),
            (GPT2, ["x=5"], {}, pin("h.*.attn.c_attn.bias", '[{?}, {?}, {"x"}]')),
            (GPT2, ["cp=2"], {"shard": {"sequence": ["cp"]}, "context": {"method": "ulysses"}},
             pin("h.*.attn.c_attn.bias", '[{?}, {"cp"}p1, {?}]')),
            ({**llama(4), "hidden_size": 50}, ["cp=3", "b=2"],
             {"shard": {"sequence": ["b", "cp"]}, "context": {"layout": "zigzag"}},
             pin("*.input_layernorm.weight", '[{"cp"}]')),
            ({**configs.MISTRAL, "num_attention_heads": 9}, ["cp=3"],
             {"shard": {"sequence": ["cp"]}, "context": {"method": "ulysses"}},
             pin("*.o_proj.weight", '[{}, {"cp"}, {}]')),
            ({**llama(4), "attention_dropout": 0.1}, ["dp=2", "x=2"], {},
             pin("*.o_proj.weight", '[{}, {"dp", "x"}, {}]'))]
        for config, axes, sections, pinned in cases:
            with self.subTest(axes=axes, pinned=pinned):
                weights = self.space.save_weights(self.random_weights(config))
                run, base = (self.run_spec(config, tools.spec(4, 2, 17, **made) + text, 1, weights)
                             for made, text in (({"mesh": {"axes": axes}, **sections}, pinned), ({"mesh": {"axes": []}}, "")))
                self.assertAlmostEqual(run.losses[0] / base.losses[0], 1, delta=1e-6)
                whole = np.sqrt(sum(np.square(g).sum() for g in base.gradients.values()))
                for name, expected in base.gradients.items():
                    self.assertLess(np.linalg.norm(run.gradients[name] - expected), 1e-5 * whole, name)

    def test_losses_of_ten_steps(self):
        """With clipping, weight decay and bf16 in the compute type."""
        for compute, tolerance in (("f32", 1e-5), ("bf16", 5e-3)):
            weights = self.space.save_weights(self.random_weights(GPT2))
            losses = [self.run_spec(GPT2, spec(dp, tp, sequence, stage, precision={"compute": compute}), 10, weights).losses
                      for dp, tp, sequence, stage in ((1, 1, False, 0), (1, 3, True, 0), (2, 4, True, 3))]
            for other in losses[1:]:
                np.testing.assert_allclose(other, losses[0], rtol=tolerance)

    def test_initial_weights_do_not_depend_on_the_mesh(self):
        files = [self.space.initial_weights(self.space.compile(GPT2, spec(*layout)))
                 for layout in ((1, 1, False, 0), (1, 3, True, 0), (2, 4, True, 3))]
        contents = [pathlib.Path(file).read_bytes() for file in files]
        self.assertEqual(contents[1], contents[0])
        self.assertEqual(contents[2], contents[0])

    @unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed")
    def test_processes_give_the_bits_of_threads(self):
        plan = self.space.compile(llama(4), spec(2, 4, True, 3))
        threads = self.space.train(plan, self.corpus, 3, lr=RATE)
        saved, gradients, data = self.space.file(".safetensors"), self.space.file(".safetensors"), self.space.tokens(self.corpus)
        done = subprocess.run(
            ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "8", str(tools.BIN / "meshwork-run"), plan, "--data", data,
             "--data-type", "u16", "--steps", "3", "--lr", str(RATE), "--seed", "0", "--save", saved,
             "--save-gradients", gradients], capture_output=True, text=True, timeout=tools.TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(pathlib.Path(saved).read_bytes(), threads.weight_bytes)
        self.assertEqual(pathlib.Path(gradients).read_bytes(), pathlib.Path(threads.gradients_path).read_bytes())

    def test_heads_and_samples_stay_whole(self):
        model = self.space.model(GPT2)
        done = self.space.call("meshwork", "compile", model, "--spec", self.space.write(".toml", spec(1, 5, False, 0)), "-o",
                               self.space.file(".mwplan"))
        self.assertEqual(done.returncode, 78)
        self.assertIn("dim 'heads' of size 12 cannot be split over axis 'tp' of size 5; an axis of 4 or 6 ranks would divide it",
                      done.stderr)


if __name__ == "__main__":
    unittest.main()
