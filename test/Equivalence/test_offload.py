"""States of the optimizer in the host's memory: the same bits, the bytes that the forms say, and
a run that goes on with or without.

The update of a step is the same kernels on the same numbers, wherever these lie between two steps, so
every comparison is of bytes.
"""
import json
import math
import pathlib
import subprocess
import unittest

import configs
import models
import same_bits
import tools
from test_cuda import emulated

BATCH, SEQUENCE, RATE = 8, 17, 1e-2
CORPUS = configs.corpus()
SPLIT = {"heads": ["tp"], "ffn": ["tp"], "vocab": ["tp"], "residual_sequence": ["tp"]}
# Where copies take no cores, what is brought and put back runs beside the update.
BESIDE = """name = "beside"
device = "cpu"
ranks_per_node = 8
[flops]
f32 = 1e11
[memory]
bandwidth = 1e10
[link.host]
bandwidth = 1e8
takes_cores = false
[link.in_process]
latency = 1e-6
bandwidth = 1e10
"""
FOUR_HEADS = {**configs.GPT2, "n_head": 4}
# Model, sections. By pairs: every precision, optimizer and way of sharing states.
CASES = {
    "one rank, adamw": (configs.LLAMA, {"mesh": {"axes": ["dp=1"]}, "precision": {"compute": "bf16"}}),
    "no axes, f32": (configs.GPT2, {"mesh": {"axes": []}}),
    "zero-1, stochastic": (configs.QWEN2, {"mesh": {"axes": ["dp=2"]}, "zero": {"stage": 1},
                                           "precision": {"compute": "bf16", "rounding": "stochastic"}}),
    "zero-2, lion": (FOUR_HEADS, {"mesh": {"axes": ["dp=2", "tp=2"]}, "shard": SPLIT, "zero": {"stage": 2},
                                  "precision": {"compute": "bf16"}, "optimizer": {"kind": "lion"}}),
    "zero-3 that divides nothing": (configs.GPT2, {"mesh": {"axes": ["dp=3"]}, "zero": {"stage": 3},
                                                   "precision": {"compute": "bf16"}}),
    "zero-3 f32, momentum": (configs.MISTRAL, {"mesh": {"axes": ["dp=2"]}, "zero": {"stage": 3},
                                               "optimizer": {"kind": "sgd", "momentum": 0.9}}),
    "masters alone": (configs.LLAMA, {"mesh": {"axes": ["dp=2"]}, "precision": {"compute": "bf16"},
                                      "optimizer": {"kind": "sgd"}}),
    "pipeline": (configs.QWEN3, {"mesh": {"axes": ["pp=2", "dp=2"]}, "zero": {"stage": 1},
                                 "pipeline": {"schedule": "zb-h1"}, "precision": {"compute": "bf16"}}),
    "context": (configs.LLAMA, {"mesh": {"axes": ["dp=2", "cp=2"]}, "zero": {"stage": 3, "axes": ["dp", "cp"]},
                                "context": {"method": "ring", "layout": "zigzag"}}),
    "experts": (configs.MIXTRAL, {"mesh": {"axes": ["ep=2"]}, "zero": {"stage": 1, "axes": ["ep"]},
                                  "experts": {"exchange": "all_to_all"},
                                  "precision": {"compute": "bf16"}}),
    "fp8": ({**configs.LLAMA, "hidden_size": 64, "intermediate_size": 96},
            {"mesh": {"axes": ["dp=2"]}, "zero": {"stage": 3},
             "precision": {"compute": "bf16", "matmul": "fp8", "scaling": "delayed"}}),
}


def spec(sections, offload=None):
    """`offload` is a window's size; none: everything stays on the device."""
    more = {"offload": {"optimizer": True, "window": offload}} if offload else {}
    ranks = {"ep=2": 2, "dp=2": 2}
    data = math.prod(ranks.get(axis, 1) for axis in sections["mesh"]["axes"]) or 1
    micro = 2 if data < 3 and "dp=3" not in sections["mesh"]["axes"] else 1
    batch = 6 if "dp=3" in sections["mesh"]["axes"] else BATCH
    return tools.spec(batch, micro, SEQUENCE, **{"precision": {"compute": "f32"}, **sections, **more})


class Offload(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace(**emulated())
        cls.addClassCleanup(cls.space.close)
        cls.machine = cls.space.write(".toml", BESIDE)

    def plan(self, name, offload=None, *options):
        config, sections = CASES[name]
        return self.space.compile(config, spec(sections, offload), *options)

    def beside(self):
        return ["--set", f"target.machine={self.machine}", "--set", "overlap.collectives=always"]

    def train(self, plan, *options, steps=3, launcher=()):
        return self.space.train(plan, CORPUS, steps, *options, lr=RATE, launcher=launcher)

    def check_same(self, ours, theirs):
        for key in ("loss", "grad_norm"):
            self.assertEqual([line[key] for line in ours.metrics], [line[key] for line in theirs.metrics])
        self.assertEqual(ours.weight_bytes, theirs.weight_bytes)
        for name, value in theirs.gradients.items():
            self.assertEqual(ours.gradients[name].tobytes(), value.tobytes(), name)

    def test_same_bits(self):
        for i, name in enumerate(CASES):
            with self.subTest(name):
                plain = self.train(self.plan(name))
                for window, options in (("1 KiB", self.beside()), ("20 KiB", ())):
                    self.check_same(self.train(self.plan(name, window, *options)), plain)

    def test_copies_run_beside_the_update(self):
        """Two windows: one is brought while the other is used and put back."""
        plan = self.plan("zero-1, stochastic", "1 KiB", *self.beside())
        told = self.space.explain(plan)
        update = [one for one in told["rank_classes"][0]["instructions"] if one["phase"] == "update"]
        operations = [one["operation"] for one in update]
        first = operations.index("copy")
        self.assertEqual(operations[first:first + 3], ["copy", "copy", "wait"])
        self.assertGreater(told["estimate"]["exposed_ms"]["host"], 0)

    def test_bytes(self):
        """Of AdamW in bf16 12 a parameter, shared as ZeRO says; twice over the link in a step, and
        so much less in the device's memory, but for two windows."""
        for name, each in (("one rank, adamw", 12), ("no axes, f32", 8), ("zero-1, stochastic", 12),
                           ("masters alone", 4), ("zero-3 f32, momentum", 4)):
            with self.subTest(name):
                config, sections = CASES[name]
                share = 2 if "zero" in sections else 1
                count = sum(math.prod(shape) for shape in models.parameter_shapes(config).values())
                plain, told = (self.space.explain(self.plan(name, window)) for window in (None, "4 KiB"))
                self.assertEqual(plain["host_memory_per_rank"]["bytes"], 0)
                host = told["host_memory_per_rank"]
                states = sum(len(set(one) & {"master", "first_moment", "second_moment", "momentum"})
                             for one in told["rank_classes"][0]["parameters"])
                self.assertGreaterEqual(host["bytes"], each * count / share)
                self.assertLess(host["bytes"], each * count / share + 64 * states)
                for way in ("to_device_bytes_per_step", "to_host_bytes_per_step"):
                    self.assertEqual(host[way], host["bytes"])
                self.assertEqual(told["memory_per_rank_bytes"]["optimizer"], 0)
                self.assertEqual(self.kept(plain) - self.kept(told), host["bytes"])
                windows = sum(one["bytes"] for one in told["rank_classes"][0]["buffers"]
                              if one["name"] == "window of states")
                self.assertLessEqual(told["memory_per_rank_bytes"]["peak"],
                                     plain["memory_per_rank_bytes"]["peak"] - host["bytes"] + windows)

    @staticmethod
    def kept(told):
        """Bytes on the device that live from load to exit, where each begins at a multiple of 64."""
        return sum(-(-one["bytes"] // 64) * 64 for one in told["rank_classes"][0]["buffers"]
                   if one["life"] is None and one["space"] == "device")

    def test_a_run_goes_on_with_or_without(self):
        name, folder = "zero-1, stochastic", self.space.file(".checkpoints")
        plain, offloaded = self.plan(name), self.plan(name, "1 KiB")
        whole = self.train(plain, steps=6)
        for step, plan in ((2, offloaded), (4, plain), (6, offloaded)):
            run = self.train(plan, "--checkpoint", folder, "--resume", "auto", steps=step)
        self.assertEqual(run.weight_bytes, whole.weight_bytes)

    def test_checkpoints_are_the_same_files(self):
        name, kept = "zero-3 that divides nothing", []
        for window in (None, "1 KiB"):
            folder = pathlib.Path(self.space.file(".checkpoints"))
            self.train(self.plan(name, window), "--checkpoint", folder, steps=2)
            kept.append({str(path.relative_to(folder)): path.read_bytes()
                         for path in folder.rglob("*") if path.suffix == ".safetensors"})
        self.assertGreater(sum(map(len, kept[0].values())), 0)
        self.assertEqual(kept[0].keys(), kept[1].keys())
        self.assertTrue(kept[0] == kept[1])

    def test_under_mpi(self):
        name = "zero-2, lion"
        plan = self.plan(name, "1 KiB", *self.beside())
        self.check_same(self.train(plan, launcher=[*same_bits.MPIRUN, "4"]), self.train(self.plan(name)))

    def test_on_emulated_gpus(self):
        """Pinned memory, copies in streams of their own."""
        gpu = ["--set", "target.device=cuda", "--set", "target.arch=sm_80"]
        for name, options in (("one rank, adamw", []), ("zero-1, stochastic", ["--share-gpu"])):
            with self.subTest(name):
                plain = self.train(self.plan(name, None, *gpu), *options)
                for overlap in ("always", "never"):
                    plan = self.plan(name, "1 KiB", *gpu, "--set", f"overlap.collectives={overlap}")
                    self.check_same(self.train(plan, *options), plain)

    def test_verified_on_bytes(self):
        config, sections = CASES["zero-1, stochastic"]
        text = self.space.write(".toml", spec(sections, "1 KiB"))
        done = self.space.call("meshwork", "verify", self.space.model(config), "--spec", text, "--by-running")
        self.assertEqual(done.returncode, 0, done.stderr)

    def refused(self, sections, *settings):
        text = self.space.write(".toml", spec(sections))
        options = [word for one in settings for word in ("--set", one)]
        plan = self.space.file(".mwplan")
        done = self.space.call("meshwork", "compile", self.space.model(configs.LLAMA), "--spec", text, "-o", plan,
                               *options)
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertFalse(pathlib.Path(plan).exists())
        return done.stderr

    def test_a_host_without_room(self):
        """What lies there, how much that is, and what helps, compiled."""
        said = self.refused(CASES["masters alone"][1], "optimizer.kind=adamw", "offload.optimizer=true",
                            "offload.host_memory_per_rank=500 KiB")
        self.assertIn("offload.host_memory_per_rank: each rank keeps states of the optimizer in the host's memory, ",
                      said)
        self.assertIn("zero.stage = 1: ", said)
        self.assertIn("is the cheapest that fits", said)

    def test_memory_that_offloading_saves(self):
        """It is among the changes that a plan without room is told."""
        name, full = "one rank, adamw", ["--set", "recompute.policy=full"]
        least = self.space.explain(self.plan(name, "16 MiB", *full))["memory_per_rank_bytes"]["peak"]
        said = self.refused(CASES[name][1], f"expect.memory_per_rank={least} B", full[1])
        self.assertRegex(said, r"offload.optimizer = true: .*, fits, about .* a step, moves the optimizer's states")


if __name__ == "__main__":
    unittest.main()
