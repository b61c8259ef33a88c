"""States of the optimizer, and activations, in the host's memory: the same bits, the bytes that the
forms say, and a run that goes on with or without.

A step is the same kernels on the same numbers, wherever these lie in between, so every comparison is of
bytes.
"""
import json
import math
import pathlib
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
DROPPING = {**configs.GPT2, "embd_pdrop": 0.1, "attn_pdrop": 0.2, "resid_pdrop": 0.1}
DEEP = {**configs.LLAMA, "num_hidden_layers": 4}
WIDE = {**configs.LLAMA, "hidden_size": 64, "intermediate_size": 96}
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
    "fp8": (WIDE, {"mesh": {"axes": ["dp=2"]}, "zero": {"stage": 3},
                   "precision": {"compute": "bf16", "matmul": "fp8", "scaling": "delayed"}}),
}


# With and without documents, dropout, an evaluation; every kind of list that reads what forward keeps.
ACTIVATIONS = {
    "microbatches": (DROPPING, {"mesh": {"axes": ["dp=1"]}, "precision": {"compute": "bf16"}}),
    "pipeline": (configs.QWEN3, {"mesh": {"axes": ["pp=2"]}}),
    "gpipe": (configs.LLAMA, {"mesh": {"axes": ["pp=2"]}, "pipeline": {"schedule": "gpipe"}}),
    "zero-bubble": (DEEP, {"mesh": {"axes": ["pp=2"]}, "pipeline": {"schedule": "zb-v"}}),
    "tensor": (FOUR_HEADS, {"mesh": {"axes": ["tp=2"]}, "shard": SPLIT}),
    "ring": (configs.LLAMA, {"mesh": {"axes": ["cp=2"]}, "zero": {"stage": 3, "axes": ["cp"]},
                             "context": {"method": "ring", "layout": "zigzag"}}),
    "experts": (configs.MIXTRAL, {"mesh": {"axes": ["ep=2"]}, "experts": {"exchange": "all_to_all", "bound": 1.0}}),
    "fp8": (WIDE, {"mesh": {"axes": ["dp=2"]}, "precision": {"compute": "bf16", "matmul": "fp8"}}),
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
    cost_s = 100

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

    def activations(self, name, policy, *options):
        config, sections = ACTIVATIONS[name]
        window = ["--set", "offload.window=16 KiB"] if policy == "offload" else []
        return self.space.compile(config, spec(sections), "--set", f"recompute.policy={policy}", *window, *options)

    def test_activations_keep_their_bits(self):
        for name in ACTIVATIONS:
            with self.subTest(name):
                plain = self.train(self.activations(name, "selective"))
                for options in (self.beside(), ()):
                    plan = self.activations(name, "offload", *options)
                    self.check_same(self.train(plan), plain)
                    self.assertGreater(self.space.explain(plan)["host_memory_per_rank"]["bytes"], 0)

    def evaluated(self, plan):
        metrics = self.space.file(".jsonl")
        self.space.must("meshwork-run", plan, "--evaluate", "--eval-data", self.space.tokens(CORPUS), "--data-type", "u16",
                        "--eval-steps", 2, "--metrics", metrics)
        return [json.loads(line)["eval_loss"] for line in pathlib.Path(metrics).read_text().splitlines()]

    def test_an_evaluation_moves_nothing_back(self):
        """It runs forward alone, and waits for no copy that it does not start."""
        for name in ("microbatches", "pipeline"):
            plans = [self.activations(name, "selective"), self.activations(name, "offload", *self.beside())]
            self.assertEqual(*map(self.evaluated, plans))

    def test_bytes_of_activations(self):
        """In f32 each layer of GPT-2 keeps of a token, beside what is small, its input and the sum behind
        attention (2 h), q, k and v (3 h), what attention made (h) and the product before GELU (f)."""
        config, sections = ACTIVATIONS["tensor"]
        alone = {**sections, "mesh": {"axes": ["dp=1"]}, "shard": {}}
        text = spec(alone)
        plain, told = (self.space.explain(self.space.compile(config, text, "--set", f"recompute.policy={policy}", *more))
                       for policy, more in (("selective", ()), ("offload", ("--set", "offload.window=16 KiB"))))
        tokens, layers = 2 * SEQUENCE, config["n_layer"]
        kept = 4 * tokens * layers * (6 * config["n_embd"] + config["n_inner"])
        host = told["host_memory_per_rank"]
        microbatches = BATCH // 2
        self.assertAlmostEqual(host["bytes"], kept, delta=0.2 * kept)
        self.assertEqual(host["to_device_bytes_per_step"], host["to_host_bytes_per_step"])
        self.assertAlmostEqual(host["to_host_bytes_per_step"], microbatches * kept, delta=0.2 * microbatches * kept)
        self.assertLess(told["memory_per_rank_bytes"]["activations"], plain["memory_per_rank_bytes"]["activations"])

    def test_a_choice_for_each_layer(self):
        """Where little memory is left, what is fastest: over a fast link offloaded, over a slow one not."""
        config, sections = ACTIVATIONS["zero-bubble"][0], {"mesh": {"axes": ["dp=1"]}}
        fast = self.space.write(".toml", BESIDE.replace("bandwidth = 1e8", "bandwidth = 1e13"))
        slow = self.space.write(".toml", BESIDE.replace("bandwidth = 1e8", "bandwidth = 1e3"))
        full = self.space.explain(self.space.compile(config, spec(sections), "--set", "recompute.policy=full"))
        limit = full["memory_per_rank_bytes"]["peak"]
        for machine, offloads in ((fast, True), (slow, False)):
            done = self.space.must("meshwork", "compile", self.space.model(config), "--spec",
                                   self.space.write(".toml", spec(sections)), "-o", self.space.file(".mwplan"),
                                   "--set", f"target.machine={machine}", "--set", "recompute.policy=auto",
                                   "--set", f"expect.memory_per_rank={limit} B", "--set", "offload.activations=auto",
                                   "--set", "offload.window=16 KiB")
            said = next(line for line in done.stderr.splitlines() if "recompute:" in line)
            self.assertEqual("offload in" in said, offloads, said)

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
        plain = self.train(self.activations("microbatches", "selective", *gpu))
        self.check_same(self.train(self.activations("microbatches", "offload", *gpu, "--set",
                                                    "overlap.collectives=always")), plain)
        for name, options in (("one rank, adamw", []), ("zero-1, stochastic", ["--share-gpu"])):
            with self.subTest(name):
                plain = self.train(self.plan(name, None, *gpu), *options)
                for overlap in ("always", "never"):
                    plan = self.plan(name, "1 KiB", *gpu, "--set", f"overlap.collectives={overlap}")
                    self.check_same(self.train(plan, *options), plain)

    def test_verified_on_bytes(self):
        """Layers take turns through all policies where recompute is "auto"."""
        auto = {"recompute": {"policy": "auto"}, "expect": {"memory_per_rank": "1 GiB"}}
        for (config, sections), more in ((CASES["zero-1, stochastic"], {}), (ACTIVATIONS["pipeline"], auto),
                                         (ACTIVATIONS["ring"], {"recompute": {"policy": "offload"}})):
            text = self.space.write(".toml", spec({**sections, **more}, "1 KiB"))
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
        self.assertIn("offload.host_memory_per_rank: each rank keeps ", said)
        self.assertIn(" in the host's memory (optimizer), expected at most 500 KiB", said)
        self.assertIn("zero.stage = 1: ", said)
        self.assertIn("is the cheapest that fits", said)

    def test_memory_that_offloading_saves(self):
        """It is among the changes that a plan without room is told."""
        name = "one rank, adamw"
        full = [word for one in ("recompute.policy=full", "target.device=cuda", "target.arch=sm_80")
                for word in ("--set", one)]
        least = self.space.explain(self.plan(name, "16 MiB", *full))["memory_per_rank_bytes"]["peak"]
        said = self.refused(CASES[name][1], f"expect.memory_per_rank={least} B", *full[1::2])
        self.assertRegex(said, r"offload.optimizer = true: .*, fits, about .* a step, moves the optimizer's states")


if __name__ == "__main__":
    unittest.main()
