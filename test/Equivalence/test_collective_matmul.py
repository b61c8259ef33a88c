"""Products in chunks beside their collectives (overlap.matmul): not a bit differs from whole ones, where the library sums
a row alike however many there are, nor a byte of what is sent. `always` cuts all that it can; on a CPU `auto` leaves all whole, and says why."""
import json
import pathlib
import unittest

import numpy as np

import configs
import test_fp8
import tools
from test_cuda import emulated
from test_parallel import EPSILON, RATE, Agreement

SEQUENCE, STEPS = 24, 2
SEQUENCE_PARALLEL = {"shard": {"residual_sequence": ["tp"]}}
WITH_CP = {"shard": {"sequence": ["cp"], "residual_sequence": ["cp", "tp"]}}
THREE_HEADS = {**configs.LLAMA, "num_attention_heads": 3, "num_key_value_heads": 3}
# What it is called, model, mesh, samples of a microbatch, chunks, tokens, other sections.
LAYOUTS = [
    ("tokens", configs.LLAMA, ["tp=2"], 1, 4, SEQUENCE, SEQUENCE_PARALLEL),
    ("chunks of several sizes", configs.LLAMA, ["tp=2"], 1, 5, SEQUENCE, SEQUENCE_PARALLEL),
    ("samples", configs.LLAMA, ["tp=2"], 4, 2, SEQUENCE, {**SEQUENCE_PARALLEL, "recompute": {"policy": "none"}}),
    ("three ranks", THREE_HEADS, ["cp=2", "tp=3"], 1, 2, 30, WITH_CP),
    ("all_reduce", {**configs.GPT2, "n_head": 4}, ["dp=2", "tp=2"], 2, 3, SEQUENCE, {"recompute": {"policy": "full"}}),
    ("pipeline", {**configs.GPT2, "n_head": 4}, ["pp=2", "tp=2"], 1, 2, SEQUENCE,
     {**SEQUENCE_PARALLEL, "pipeline": {"schedule": "zb-h1"}}),
    ("experts", configs.MIXTRAL, ["ep=2", "tp=2"], 1, 2, SEQUENCE, SEQUENCE_PARALLEL),
    ("ZeRO-3 in bf16", configs.LLAMA, ["dp=2", "tp=2"], 1, 2, SEQUENCE,
     {**SEQUENCE_PARALLEL, "zero": {"stage": 3}, "precision": {"compute": "bf16"}}),
    ("FP8", {**test_fp8.LLAMA, "vocab_size": 136}, ["tp=2"], 1, 2, 32,
     {**SEQUENCE_PARALLEL, "precision": {**test_fp8.FP8, "compute": "bf16"}}),
]


def moved(plan):
    """Bytes and count of collectives, by kind and axis."""
    sums = {}
    for one in plan["collectives"]:
        bytes_, count = sums.get((one["kind"], one["axis"]), (0, 0))
        sums[one["kind"], one["axis"]] = bytes_ + one["bytes_sent_per_rank"], count + one["count"]
    return sums


def sums_by_rows(layout, more):
    """Whether a product's number of rows decides in which order it is summed: oneDNN's in f32, below AVX-512."""
    wide = any("avx512f" in line.split() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
               if line.startswith("flags"))
    compute = {**layout[6], **more}.get("precision", {}).get("compute", "f32")
    return not wide and compute == "f32"


class CollectiveMatmul(Agreement):
    cost_s = 60
    batch, sequence, corpus = 8, SEQUENCE, configs.corpus(vocabulary=131)

    def compile(self, layout, overlap, space=None, **more):
        _, model, mesh, micro, _, tokens, sections = layout
        return (space or self.space).compile(model, tools.spec(
            8, micro, tokens, mesh={"axes": mesh}, optimizer={"epsilon": EPSILON}, overlap=overlap,
            **{**sections, **more}))

    def assert_same(self, layout, space=None, options=(), **more):
        space = space or self.space
        overlaps = {"matmul": "never"}, {"matmul": "always", "chunks": layout[4], "collectives": "always"}
        init = space.save_weights(self.random_weights(layout[1]))
        plans = [self.compile(layout, overlap, space, **more) for overlap in overlaps]
        whole, cut = (space.train(plan, self.corpus, STEPS, *options, lr=RATE, init=init) for plan in plans)
        self.assertEqual(whole.losses, cut.losses)
        if sums_by_rows(layout, more):
            self.assert_close(layout[1], whole, cut)
        else:
            self.assertEqual(whole.weight_bytes, cut.weight_bytes)
            for name, gradient in whole.gradients.items():
                self.assertTrue(np.array_equal(gradient, cut.gradients[name]), name)
        ofWhole, ofCut = (moved(space.explain(plan)) for plan in plans)
        self.assertEqual({key: sent for key, (sent, _) in ofWhole.items()},
                         {key: sent for key, (sent, _) in ofCut.items()})
        self.assertGreater(sum(count for _, count in ofCut.values()), sum(count for _, count in ofWhole.values()))

    def assert_close(self, model, whole, cut):
        """To the rounding of f32."""
        for name, limit in self.gradient_limits(model).items():
            self.assertLess(np.linalg.norm(cut.gradients[name] - whole.gradients[name]), limit, name)

    def test_changes_no_bit(self):
        for layout in LAYOUTS:
            with self.subTest(layout[0]):
                self.assert_same(layout)

    def test_chunks_of_one_row(self):
        """oneDNN sums a vector's product in an order of its own, so bits differ by the rounding of f32."""
        layout = ("17 tokens", THREE_HEADS, ["cp=2", "tp=3"], 1, 2, 17, WITH_CP)
        init = self.space.save_weights(self.random_weights(THREE_HEADS))
        whole, cut = (self.space.train(self.compile(layout, overlap), self.corpus, 1, lr=RATE, init=init)
                      for overlap in ({"matmul": "never"}, {"matmul": "always", "chunks": 2}))
        self.assertAlmostEqual(whole.losses[0] / cut.losses[0], 1, delta=1e-6)
        self.assert_close(THREE_HEADS, whole, cut)

    def test_changes_no_bit_on_a_gpu(self):
        gpu = {"target": {"device": "cuda", "arch": "sm_80"}, "precision": {"compute": "bf16"}}
        with tools.Workspace(**emulated()) as space:
            self.assert_same(LAYOUTS[0], space, ["--share-gpu"], **gpu)

    def test_one_chunk_is_a_whole_product(self):
        whole, one = (self.space.explain(self.compile(LAYOUTS[0], overlap))
                      for overlap in ({"matmul": "never"}, {"matmul": "always", "chunks": 1}))
        for plan in whole, one:
            del plan["spec"]
        self.assertEqual(whole, one)

    def test_auto_says_why(self):
        """Threads move data with the cores that multiply."""
        plan = self.space.explain(self.compile(LAYOUTS[0], {"matmul": "auto"}))
        told = [one for one in plan["collectives"] if "left whole: moving chunks takes the cores" in one["cause"]]
        self.assertGreater(len(told), 3)

    def estimate(self, rows, matmul):
        """Of a model of 8B on eight GPUs that share each sequence of so many tokens."""
        text = tools.spec(1, 1, rows, compute="bf16", mesh={"axes": ["tp=8"]}, overlap={"matmul": matmul},
                          target={"device": "cuda", "machine": "h100x8"}, **SEQUENCE_PARALLEL)
        done = self.space.must("meshwork", "compile", tools.ROOT / "examples/large/llama-3.1-8b.json", "--spec",
                               self.space.write(".toml", text), "--estimate", "--json")
        told = json.loads(done.stdout)
        return told["estimate"]["step_ms"], told["memory_per_rank_bytes"]["peak"]

    def test_auto_takes_what_gains(self):
        """A small gather takes mostly its fixed time, so that two would take twice as long."""
        self.assertEqual(self.estimate(128, "auto"), self.estimate(128, "never"))
        (chunked, needed), (whole, usual) = (self.estimate(8192, matmul) for matmul in ("auto", "never"))
        self.assertLess(chunked, 0.99 * whole)
        self.assertLess(needed, 1.01 * usual)


if __name__ == "__main__":
    unittest.main()
