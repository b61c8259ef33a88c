"""Context parallelism: ranks share a sequence, attention included. Losses, every gradient
and every updated weight against one rank, whatever the method, the layout and the mask.

How far they may lie apart is derived as in test_parallel: only the order of sums differs. A
ring rounds twice as often ahead of a sum: each row's result and log-sum-exp are merged of parts.
"""
import functools
import itertools
import unittest

import numpy as np

import configs
import pairs
import tools
from test_cuda import APPROXIMATE, GPU, emulated
from test_parallel import EPSILON, RATE, Agreement

SEQUENCES = (24, 23)  # 23 leaves parts of 12 and 11, of 8 and 7, chunks of 3 and 2
BATCH = 2
MARK = 0  # begins a document
MPIRUN = ("mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "4")
METHODS = ("gathered", "ulysses", "ring")
ROUNDINGS = {"gathered": 1, "ulysses": 1, "ring": 2}  # ahead of a sum, of those on one rank
LAYOUTS = ("block", "zigzag")
GROUPED = {**configs.LLAMA, "num_attention_heads": 4, "num_key_value_heads": 1}
MODELS = {"gpt2": {**configs.GPT2, "n_head": 4, "attn_pdrop": 0.2, "resid_pdrop": 0.1},
          "llama": configs.LLAMA, "one key head": GROUPED,
          "window": {**configs.MISTRAL, "num_key_value_heads": 2}}
# Axes, rules of [shard], other sections.
MESHES = {
    "cp2": (["cp=2"], {}, {}),
    "cp3": (["cp=3"], {}, {}),
    "cp4": (["cp=4"], {}, {"recompute": {"policy": "full"}}),
    "cp2-tp2": (["cp=2", "tp=2"], {"residual_sequence": ["tp"]}, {}),
    "cp8": (["cp=8"], {}, {}),
    "zero3-cp2": (["dp=2", "cp=2"], {}, {"zero": {"stage": 3}}),
    "pp2-cp2": (["pp=2", "cp=2"], {}, {"pipeline": {"schedule": "1f1b"}, "recompute": {"policy": "none"}}),
}


def shares_heads(model, mesh):
    """Whether the ranks that split a sequence divide what tp leaves of the heads: those of
    keys, or where one is left, those that share it."""
    heads = MODELS[model].get("n_head") or MODELS[model]["num_attention_heads"]
    keys = MODELS[model].get("num_key_value_heads", heads)
    sizes = dict(axis.split("=") for axis in MESHES[mesh][0])
    cp, tp = int(sizes["cp"]), int(sizes.get("tp", 1))
    keys_left, group_left = max(keys // tp, 1), heads // keys // max(tp // keys, 1)
    return keys_left % cp == 0 or (keys_left == 1 and group_left % cp == 0)


def cases():
    """Pairs of all but the lengths, which alternate."""
    legal = [case for case in itertools.product(METHODS, LAYOUTS, MODELS, MESHES, ("joined", "separate", "apart"))
             if case[0] != "ulysses" or shares_heads(*case[2:4])]
    for number, case in enumerate(pairs.choose(legal)):
        yield *case, SEQUENCES[number % 2]


class Context(Agreement):
    batch = BATCH

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace(**emulated())
        cls.addClassCleanup(cls.space.close)

    def run_spec(self, config, sequence, axes, documents, *options, launcher=(), **sections):
        micro = 1 if "dp=2" in axes or "pp=2" in axes else 2
        text = tools.spec(BATCH, micro, sequence, documents=documents, mesh={"axes": axes},
                          optimizer={"epsilon": EPSILON}, **sections)
        plan = self.space.compile(config, text)
        if documents != "joined":
            options += "--document-begin", MARK
        weights = self.space.save_weights(self.random_weights(config))
        return self.space.train(plan, self.corpus, 1, *options, lr=RATE, init=weights, launcher=launcher)

    @functools.cache
    def one_rank(self, model, documents, sequence):
        """Loss, gradients, weights, and how far those of others may lie apart."""
        config, self.sequence = MODELS[model], sequence
        run = self.run_spec(config, sequence, ["dp=1"], documents)
        return run.losses[0], run.gradients, run.weights, self.gradient_limits(config)

    def check(self, run, expected, factor=1):
        loss, gradients, weights, limits = expected
        limits = {name: factor * limit for name, limit in limits.items()}
        self.assertAlmostEqual(run.losses[0] / loss, 1, delta=1e-6)
        found = run.gradients
        self.assertEqual(set(found), set(gradients))
        far = {n: np.linalg.norm(found[n] - gradients[n]) / limits[n] for n in gradients}
        self.assertLess(max(far.values()), 1, max(far, key=far.get))
        self.check_weights(run.weights, weights, limits, 1)

    def test_equals_one_rank(self):
        for method, layout, model, mesh, documents, sequence in cases():
            with self.subTest(method=method, layout=layout, model=model, mesh=mesh,
                              documents=documents, sequence=sequence):
                axes, rules, sections = MESHES[mesh]
                run = self.run_spec(MODELS[model], sequence, axes, documents, **sections,
                                    shard={"sequence": ["cp"], **rules},
                                    context={"method": method, "layout": layout})
                self.check(run, self.one_rank(model, documents, sequence), ROUNDINGS[method])

    def test_the_residual_stream_may_name_the_axes_of_the_sequence(self):
        def explained(residual):
            text = tools.spec(BATCH, 2, 23, mesh={"axes": ["cp=2", "tp=2"]},
                              shard={"sequence": ["cp"], "residual_sequence": residual})
            told = self.space.explain(self.space.compile(MODELS["llama"], text))
            return [told[key] for key in ("collectives", "memory_per_rank_bytes", "rank_classes")]
        self.assertEqual(explained(["cp", "tp"]), explained(["tp"]))
        self.assertNotEqual(explained(["cp"]), explained(["tp"]))

    def test_heads_exchanged_in_a_ring(self):
        """Axes with methods of their own; a process a rank, and hops beside the computation, change
        no bit."""
        for method, layout, model, documents in (("ring", "zigzag", "gpt2", "separate"),
                                                 ("ring", "block", "one key head", "joined"),
                                                 ("gathered", "zigzag", "window", "separate")):
            with self.subTest(method=method, layout=layout, model=model):
                def run(*options, **sections):
                    context = {"method": {"cp": method, "up": "ulysses"}, "layout": layout}
                    return self.run_spec(MODELS[model], 23, ["cp=2", "up=2"], documents, *options,
                                         shard={"sequence": ["cp", "up"]}, context=context, **sections)

                expected = run()
                self.check(expected, self.one_rank(model, documents, 23), ROUNDINGS[method])
                for name, found in (("overlap", run(overlap={"collectives": "always"})),
                                    ("mpirun", run(launcher=MPIRUN))):
                    for tensor, value in expected.weights.items():
                        np.testing.assert_array_equal(found.weights[tensor], value, f"{name} {tensor}")

    def test_zero_over_ranks_that_share_sequences(self):
        """In both orders: the gather of a minor axis is contiguous, that of a major one is not. Neither 131 nor 104 nor
        144 is a multiple of 6; the head is tied."""
        for stage, axes, model, documents in ((3, ["dp", "cp"], "gpt2", "separate"), (3, ["cp", "dp"], "llama", "joined"),
                                              (1, ["cp"], "gpt2", "joined"), (2, ["cp", "dp"], "window", "apart")):
            with self.subTest(stage=stage, axes=axes, model=model):
                run = self.run_spec(MODELS[model], 23, ["dp=2", "cp=3"], documents, shard={"sequence": ["cp"]},
                                    context={"method": "ring", "layout": "zigzag"}, zero={"stage": stage, "axes": axes})
                self.check(run, self.one_rank(model, documents, 23), ROUNDINGS["ring"])

    def test_on_an_emulated_gpu(self):
        for method in METHODS:
            for layout, documents in (("zigzag", "apart"), ("block", "joined")):
                with self.subTest(method=method, layout=layout, documents=documents):
                    axes, rules, sections = MESHES["cp2"]
                    run = self.run_spec(MODELS["llama"], 24, axes, documents, "--share-gpu", **sections, **GPU,
                                        shard={"sequence": ["cp"], **rules},
                                        context={"method": method, "layout": layout})
                    self.check(run, self.one_rank("llama", documents, 24), APPROXIMATE * ROUNDINGS[method])

    def test_a_ring_by_nccl(self):
        """A GPU for each rank, hops in streams of their own beside the computation, in bf16."""
        def losses(**sections):
            return self.run_spec(MODELS["gpt2"], 23, ["cp=2"], "separate", **sections,
                                 precision={"compute": "bf16"}, shard={"sequence": ["cp"]},
                                 context={"method": "ring", "layout": "zigzag"}).losses

        self.sequence = 23
        expected, space = losses(), self.space
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_DEVICES="2")) as self.space:
            found = losses(**GPU, overlap={"collectives": "always"})
        self.space = space
        # bf16 rounds at 2^-9; losses are means over many tokens.
        np.testing.assert_allclose(found, expected, rtol=2 ** -9)

    def compile_tiny(self, ranks, sequence=24, **sections):
        text = tools.spec(2, 2, sequence, mesh={"axes": [f"cp={ranks}"]}, **sections)
        return self.space.compile(configs.LLAMA, text)

    def test_zigzag_balances(self):
        """Blocks of half a rank's part that causality leaves: 2N + 1 for each rank."""
        for ranks in (2, 4, 8):
            for layout in ("zigzag", "block"):
                plan = self.compile_tiny(ranks, sequence=48, context={"method": "gathered", "layout": layout})
                (found,) = self.space.explain(plan)["shared_attention"]
                expected = {"zigzag": [2 * ranks + 1] * ranks, "block": [4 * i + 3 for i in range(ranks)]}
                self.assertEqual(found["blocks_of_rank"], expected[layout])
                self.assertEqual(found["block"], 24 // ranks)
                told = self.space.must("meshwork", "explain", plan).stdout
                self.assertIn("Attention over sequences that cp" + " in zigzag" * (layout == "zigzag")
                              + " splits: gathered", told)

    def test_auto_is_one_that_works(self):
        """Heads that three ranks do not divide leave one method; the plan says which."""
        plan = self.compile_tiny(3)
        self.assertIn('method = "gathered"', self.space.explain(plan)["spec"])

    def test_errors_name_a_way_out(self):
        def message(**sections):
            text = tools.spec(2, 2, 24, mesh={"axes": ["cp=3"]}, **sections)
            done = self.space.call("meshwork", "compile", self.space.model(configs.LLAMA), "--spec",
                                   self.space.write(".toml", text), "-o", self.space.file(".mwplan"))
            self.assertEqual(done.returncode, 78, done.stderr)
            return done.stderr

        self.assertIn("has 4 heads, 2 of keys, on a rank, which the 3 ranks that split the sequence (cp) cannot share "
                      'equally; "gathered" and "ring" work with any number of ranks, "ulysses" with 2',
                      message(context={"method": "ulysses"}))


if __name__ == "__main__":
    unittest.main()
