"""Plans for a GPU against the same plans for the CPU: loss, every gradient, every updated
weight, on one rank and on ranks that share a GPU. Where no GPU is, the driver, cuBLASLt and
PTX are emulated on the CPU (test/Support/Emulator): the launcher, the plan and its kernels are those
that a GPU runs.

Tolerance. That of test_sharded for sums in another order; and functions that a GPU
approximates (exp, quotients and roots to 2^-22, where the CPU has 2^-24) may put a factor
of four between them.
"""
import json
import os
import pathlib
import re
import unittest

import numpy as np

import configs
import tools
from test_parallel import EPSILON, RATE, Agreement
from test_sharded import BATCH, CORPUS, GPT2, LLAMA, SEQUENCE, spec

APPROXIMATE = 8
EMULATOR = tools.BIN.parent / "emulator"
GPU = {"target": {"device": "cuda", "arch": "sm_80"}}  # one assembly each
ONE = ({"dp": 1, "fsdp": 1, "tp": 1}, False, 0)
# dp, tensor and sequence parallelism, ZeRO-1, ZeRO-3, and a mixture.
LAYOUTS = [({"dp": 2, "fsdp": 1, "tp": 1}, False, 0),
           ({"dp": 1, "fsdp": 1, "tp": 2}, True, 0),
           ({"dp": 2, "fsdp": 1, "tp": 1}, False, 1),
           ({"dp": 2, "fsdp": 1, "tp": 1}, False, 3),
           ({"dp": 2, "fsdp": 1, "tp": 2}, True, 3)]


def emulated(**more):
    path = os.pathsep.join(filter(None, [str(EMULATOR), os.environ.get("LD_LIBRARY_PATH")]))
    return {"LD_LIBRARY_PATH": path, "MESHWORK_CACHE_DIR": "", **more}


class Cuda(Agreement):
    cost_s = 300
    batch, sequence, corpus = BATCH, SEQUENCE, CORPUS

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace(**emulated())
        cls.addClassCleanup(cls.space.close)

    def run_on(self, device, config, layout, weights, steps=1, options=(), **sections):
        if device == "cuda":
            sections["target"] = {**GPU["target"], **sections.get("target", {})}
        plan = self.space.compile(config, spec(*layout, **sections))
        if device == "cuda" and np.prod(list(layout[0].values())) > 1:
            options = ["--share-gpu", *options]
        return self.space.train(plan, CORPUS, steps, *options, lr=RATE, init=weights)

    def check(self, config, layout, **sections):
        weights = self.space.save_weights(self.random_weights(config))
        limits = {n: APPROXIMATE * x for n, x in self.gradient_limits(config).items()}
        base = self.run_on("cpu", config, ONE, weights, **{k: v for k, v in sections.items() if k != "target"})
        run = self.run_on("cuda", config, layout, weights, **sections)
        self.assertAlmostEqual(run.losses[0] / base.losses[0], 1, delta=1e-6)
        found, expected = run.gradients, base.gradients
        self.assertEqual(set(found), set(limits))
        far = {n: np.linalg.norm(found[n] - expected[n]) / limits[n] for n in limits}
        self.assertLess(max(far.values()), 1, max(far, key=far.get))
        self.check_weights(run.weights, base.weights, limits, steps=1)

    def test_one_rank(self):
        for config in (GPT2, LLAMA):
            with self.subTest(config["model_type"]):
                self.check(config, ONE)

    def test_dropout_masks_are_the_same(self):
        config = {**GPT2, "embd_pdrop": 0.1, "attn_pdrop": 0.2, "resid_pdrop": 0.3}
        self.check(config, ONE)

    @tools.slow
    def test_ranks_that_share_a_gpu(self):
        for config in (GPT2, LLAMA):
            for layout in LAYOUTS:
                with self.subTest(config["model_type"], layout=layout):
                    self.check(config, layout)

    def test_odd_vocabularies(self):
        """Products run over 256 of 250 words, over 128 of a rank's 125: with no change of meaning."""
        pairs = [(GPT2, ONE), (LLAMA, LAYOUTS[1]), (GPT2, LAYOUTS[4]), (LLAMA, LAYOUTS[3])]
        for (config, layout), compute in zip(pairs, ("f32", "bf16", "f32", "f32")):
            odd = {**config, "vocab_size": 250}
            with self.subTest(config["model_type"], layout=layout):
                plan = self.space.compile(odd, spec(*layout, **GPU, precision={"compute": compute}))
                self.assertIn("zero behind rows", self.space.must("meshwork", "explain", plan, "--schedule").stdout)
                if compute == "f32":
                    self.check(odd, layout)
                    continue
                done = self.space.must("meshwork-run", self.space.compile(
                    odd, spec(*layout, **GPU, precision={"compute": compute}), "--with-cpu-code", "native"),
                    "--data", self.space.tokens(CORPUS), "--data-type", "u16", "--steps", 1, "--compare-cpu",
                    "--share-gpu")
                self.assertIn("Fill", done.stdout)

    def test_a_gpu_for_each_rank(self):
        """By NCCL: in one process, and under mpirun to the same bits."""
        weights = self.space.save_weights(self.random_weights(LLAMA))
        for layout in LAYOUTS[-2:]:
            ranks = int(np.prod(list(layout[0].values())))
            with tools.Workspace(**emulated(MESHWORK_EMULATOR_DEVICES=str(ranks))) as gpus:
                plan = gpus.compile(LLAMA, spec(*layout, **GPU))
                one = gpus.train(plan, CORPUS, 2, lr=RATE, init=weights)
                many = gpus.train(plan, CORPUS, 2, lr=RATE, init=weights,
                                  launcher=["mpirun", "--oversubscribe", "--allow-run-as-root",
                                            "-n", str(ranks)])
                shared = gpus.train(plan, CORPUS, 2, "--share-gpu", lr=RATE, init=weights)
                self.assertEqual(one.weight_bytes, many.weight_bytes)
            self.assertEqual(one.losses, many.losses)
            np.testing.assert_allclose(shared.losses, one.losses, rtol=1e-6)

    def test_a_driver_that_knows_no_priorities_in_graphs(self):
        weights = self.space.save_weights(self.random_weights(LLAMA))
        plan = self.space.compile(LLAMA, spec(*LAYOUTS[3], **GPU))
        losses = []
        for driver in ("11040", "12040"):
            with tools.Workspace(**emulated(MESHWORK_EMULATOR_DEVICES="2", MESHWORK_EMULATOR_DRIVER=driver)) as gpus:
                losses.append(gpus.train(plan, CORPUS, 2, lr=RATE, init=weights).losses)
        self.assertEqual(*losses)

    def test_products_are_timed_and_the_peak_is_measured(self):
        """By rank 0 for all, also where ranks are processes."""
        weights = self.space.save_weights(self.random_weights(LLAMA))
        layout = LAYOUTS[0]
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_DEVICES="2")) as gpus:
            plan = gpus.compile(LLAMA, spec(*layout, **GPU))
            plain = gpus.train(plan, CORPUS, 2, lr=RATE, init=weights)
            for launcher in ([], ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2"]):
                run = gpus.train(plan, CORPUS, 2, "--tune-matmuls", "--measure-peak", lr=RATE,
                                 init=weights, launcher=launcher)
                np.testing.assert_allclose(run.losses, plain.losses, rtol=1e-6)
                self.assertGreater(run.metrics[-1]["mfu"], 0)

    def test_timings_are_kept(self):
        """A second run knows them all; a file that is broken or cannot be written stops nobody."""
        plan = self.space.compile(GPT2, spec(*ONE, **GPU, precision={"compute": "bf16"}))
        run = ["meshwork-run", plan, "--data", self.space.tokens(CORPUS), "--data-type", "u16", "--steps", 1,
               "--tune-matmuls"]
        folder = self.space.path / "cache"
        with tools.Workspace(**emulated(MESHWORK_CACHE_DIR=str(folder))) as kept:
            first = kept.must(*run).stdout
            timed = int(re.search(r"tuning: (\d+) timed, 0 known, kept in ", first)[1])
            self.assertGreater(timed, 5)
            self.assertIn(f"tuning: 0 timed, {timed} known", kept.must(*run).stdout)
            [file] = folder.iterdir()
            self.assertIn("cublasLt-130100-", file.name)
            head, changed, cut, *rest = file.read_text().splitlines()
            changed = changed.replace(":", ":f", 1)
            file.write_text("\n".join([head, changed, cut[:20], *rest]))
            self.assertIn(f"tuning: 2 timed, {timed - 2} known", kept.must(*run).stdout)
            file.write_bytes(b"\xff" * 100)
            self.assertIn(f"tuning: {timed} timed, 0 known", kept.must(*run).stdout)
            self.assertEqual(len(file.read_text().splitlines()), 1 + timed)
        with tools.Workspace(**emulated(MESHWORK_CACHE_DIR="/proc/none")) as nowhere:
            self.assertIn(f"tuning: {timed} timed, 0 known, not kept: ", nowhere.must(*run).stdout)

    @tools.slow
    def test_the_same_bits_again(self):
        weights = self.space.save_weights(self.random_weights(LLAMA))
        for layout in (ONE, LAYOUTS[-1]):
            runs = [self.run_on("cuda", LLAMA, layout, weights, steps=2, options=options)
                    for options in ([], ["--synchronous"], ["--profile"])]
            self.assertEqual(runs[0].weight_bytes, runs[1].weight_bytes)
            self.assertEqual(runs[0].weight_bytes, runs[2].weight_bytes)
            self.assertEqual(runs[0].losses, runs[1].losses)

    def test_saves_beside_the_next_step(self):
        """What is copied while a step runs is what was there when the one before had ended."""
        for layout in (ONE, LAYOUTS[-1]):
            plan = self.space.compile(LLAMA, spec(*layout, **GPU))
            kept = {}
            for options in ((), ("--checkpoint-sync",)):
                folder = pathlib.Path(self.space.file(".checkpoints"))
                self.space.train(plan, CORPUS, 5, "--share-gpu", "--checkpoint", folder, "--checkpoint-every", 2,
                                 "--keep", 9, *options, lr=RATE)
                kept[options] = {step.name: {path.name: path.read_bytes() for path in step.glob("states*")}
                                 for step in folder.glob("step-*")}
            beside, alone = kept.values()
            self.assertEqual(len(alone), 3)
            self.assertGreater(len(beside), 1)  # one that is late is made a step later
            for step in beside.keys() & alone.keys():
                self.assertEqual(beside[step], alone[step])
            self.assertGreater(len(beside.keys() & alone.keys()), 1)

    def launches(self, plan):
        text = self.space.must("meshwork", "explain", plan).stdout
        return sum(int(n) for n in re.findall(r"^  (?:launch|fill) +(\d+) ", text, re.MULTILINE))

    @tools.slow
    def test_merged_launches_change_no_bit(self):
        for config in (GPT2, LLAMA):
            weights = self.space.save_weights(self.random_weights(config))
            drawn = {"compute": "bf16", "rounding": "stochastic"}
            for target, layout, precision in (("cuda", ONE, {}), ("cuda", LAYOUTS[2], {}),
                                              ("cpu", ONE, {}), ("cuda", ONE, drawn)):
                with self.subTest(config["model_type"], target=target, precision=precision):
                    arch = {"arch": "sm_80"} if target == "cuda" else {}
                    options = ["--share-gpu"] if layout != ONE and target == "cuda" else []
                    more = {"precision": precision} if precision else {}
                    plans = [self.space.compile(config, spec(*layout, **more, target={
                        "device": target, "merge_launches": merge, **arch}))
                             for merge in ("never", "always")]
                    self.assertLess(self.launches(plans[1]), self.launches(plans[0]))
                    apart, merged = [self.space.train(plan, CORPUS, 2, *options, lr=RATE,
                                                      init=weights) for plan in plans]
                    self.assertEqual(merged.losses, apart.losses)
                    self.assertEqual(merged.weight_bytes, apart.weight_bytes)

    def epilogues(self, plan):
        text = self.space.must("meshwork", "explain", plan).stdout
        return dict((kind, int(n)) for kind, n in re.findall(
            r"^  matmul_(gelu_grad|gelu|sum_lhs|sum_rhs) +(\d+) ", text, re.MULTILINE))

    @tools.slow
    def test_epilogues_of_products(self):
        """Gradients as on the CPU, whose plan has none; what is chosen depends on the policy."""
        config = {**GPT2, "n_inner": 64}  # aux of a part takes multiples of 8
        layers = config["n_layer"]
        tensor_parallel = ({"dp": 1, "fsdp": 1, "tp": 2}, False, 0)
        for i, (policy, gelu) in enumerate((("none", layers), ("selective", layers), ("full", 2 * layers))):
            options = {"recompute": {"policy": policy}, "target": {**GPU["target"], "epilogues": "always"}}
            for j, layout in enumerate((ONE, LAYOUTS[0], tensor_parallel, LAYOUTS[3])):
                with self.subTest(policy, layout=layout):
                    found = self.epilogues(self.space.compile(config, spec(*layout, **options)))
                    self.assertEqual((found["gelu"], found["gelu_grad"]), (gelu, layers))
                    self.assertGreaterEqual(found["sum_rhs"], 2 * layers)
                    if j % 3 == i:  # each policy and each layout runs
                        self.check(config, layout, **options)

    def test_where_products_have_epilogues(self):
        """By default in bf16 on a GPU; elsewhere when told to."""
        bf16, f32, cpu = {"compute": "bf16"}, {"compute": "f32"}, {"device": "cpu"}
        for target, precision, has in ((GPU["target"], bf16, True), (GPU["target"], f32, False), (cpu, bf16, False),
                                       ({**GPU["target"], "epilogues": "never"}, bf16, False),
                                       ({**cpu, "epilogues": "always"}, f32, True)):
            with self.subTest(target=target, precision=precision):
                plan = self.space.compile(GPT2, spec(*ONE, target=target, precision=precision))
                self.assertEqual(bool(self.epilogues(plan)), has)

    def test_epilogues_on_the_cpu(self):
        weights = self.space.save_weights(self.random_weights(GPT2))
        limits = {n: APPROXIMATE * x for n, x in self.gradient_limits(GPT2).items()}
        apart, within = [self.run_on("cpu", GPT2, ONE, weights, target={"device": "cpu", "epilogues": x})
                         for x in ("never", "always")]
        for name, limit in limits.items():
            self.assertLess(np.linalg.norm(within.gradients[name] - apart.gradients[name]), limit, name)

    def test_epilogues_in_bf16(self):
        """With and without: a GELU of a sum before it is rounded, sums rounded once more."""
        weights = self.space.save_weights(self.random_weights(GPT2))
        for gradients in ("bf16", "f32"):
            precision = {"compute": "bf16", "gradients": gradients}
            runs = []
            for epilogues in ("auto", "never"):
                plan = self.space.compile(GPT2, spec(
                    *ONE, precision=precision, target={**GPU["target"], "epilogues": epilogues}))
                self.assertEqual(bool(self.epilogues(plan)), epilogues == "auto")
                runs.append(self.space.train(plan, CORPUS, 1, lr=RATE, init=weights))
            np.testing.assert_allclose(runs[0].losses, runs[1].losses, rtol=2 ** -9)
            one, other = runs[0].gradients, runs[1].gradients
            for name, expected in other.items():
                # Gradients of layer norms are sums of many that cancel.
                self.assertLess(np.linalg.norm(one[name] - expected), 2 ** -4 * np.linalg.norm(expected), name)

    def test_a_library_without_epilogues(self):
        """Kernels beside the products: each instruction against the CPU's, losses as with them."""
        data = ["--data", self.space.tokens(CORPUS), "--data-type", "u16", "--steps", 2]
        target = {**GPU["target"], "epilogues": "always"}
        for compute, names in (("f32", ["GELU_AUX_BIAS", "DGELU", "BGRAD[AB]"]), ("bf16", ["BIAS", "GELU_AUX_BIAS"])):
            plan = self.space.compile({**GPT2, "n_inner": 64}, spec(*ONE, target=target, precision={"compute": compute}),
                                      "--with-cpu-code", "native")
            fused = self.space.must("meshwork-run", plan, *data)
            self.assertNotIn("epilogues of products", fused.stdout)
            with tools.Workspace(**emulated(MESHWORK_EMULATOR_BLAS_WITHOUT="4,32,36,160,164,192,256,512")) as without:
                beside = without.must("meshwork-run", plan, *data)
                without.must("meshwork-run", plan, *data, "--compare-cpu")
            losses = [[float(x) for x in re.findall(r"step .* loss ([0-9.]+)", run.stdout)] for run in (fused, beside)]
            self.assertEqual(len(losses[0]), 2)
            np.testing.assert_allclose(*losses, rtol=2 ** -9)
            self.assertRegex(beside.stdout, r"cuBLASLt ran 0 of \d+ epilogues of products\n")
            for name in names:
                self.assertRegex(beside.stdout,
                                 rf'a kernel beside ran \d+, as ".*": cuBLASLt has no algorithm with {name}')

    def test_a_library_with_neither_epilogue_nor_product(self):
        """It says what was asked, and what to compile instead."""
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_BLAS_WITHOUT="1,164")) as space:
            plan = space.compile(GPT2, spec(*ONE, **GPU, precision={"compute": "bf16"}))
            done = space.call("meshwork-run", plan, "--data", space.tokens(CORPUS), "--data-type", "u16", "--steps", 1)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("GELU_AUX_BIAS", done.stderr)
            self.assertIn('target.epilogues = "never"', done.stderr)

    def test_bf16_learns_as_on_the_cpu(self):
        for config in (GPT2, LLAMA):
            weights = self.space.save_weights(self.random_weights(config))
            losses = [self.run_on(device, config, ONE, weights, steps=4,
                                  precision={"compute": "bf16"}).losses
                      for device in ("cpu", "cuda")]
            # bf16 rounds at 2^-9; losses are means over many tokens.
            np.testing.assert_allclose(losses[1], losses[0], rtol=2 ** -9)

    def test_each_instruction_against_the_cpu(self):
        for compute in ("f32", "bf16"):
            for config in (GPT2, LLAMA):
                with self.subTest(config["model_type"], compute=compute):
                    plan = self.space.compile(
                        config, spec(*ONE, **GPU, precision={"compute": compute}),
                        "--with-cpu-code", "native")
                    done = self.space.must(
                        "meshwork-run", plan, "--data", self.space.tokens(CORPUS), "--data-type",
                        "u16", "--steps", 2, "--compare-cpu")
                    for kind in ("Launch", "Matmul", "Attention", "AttentionGrad", "Embedding",
                                 "EmbeddingGrad"):
                        self.assertRegex(done.stdout, rf"{kind} \({compute}\)")

    @tools.slow
    def test_each_instruction_at_real_sizes(self):
        """Tensors of which a sum over all takes one part, and such as take hundreds."""
        for name, changes in (("llama-30m", {"num_hidden_layers": 1}), ("gpt2-124m", {"n_layer": 1, "vocab_size": 3000})):
            with self.subTest(name):
                config = json.loads((tools.ROOT / "examples" / f"{name}.json").read_text())
                plan = self.space.compile({**config, **changes}, tools.spec(2, 2, 64, compute="bf16", **GPU),
                                          "--with-cpu-code", "native")
                done = self.space.must("meshwork-run", plan, "--data", self.space.tokens(CORPUS), "--data-type", "u16",
                                       "--steps", 1, "--compare-cpu", "--timeout", 1000)
                self.assertRegex(done.stdout, r"Launch \(f32\)")

    def test_heads_that_turn_in_part_and_caps(self):
        """Each instruction against the CPU's: a part of a head is cut out, turned and set back; scores and logits with
        caps."""
        for model, instruction in (configs.GPT_NEOX, r"RotaryTable \(f32\)"), (configs.GEMMA2, r"AttentionGrad \(bf16\)"):
            with self.subTest(model["model_type"]):
                plan = self.space.compile({**model, "vocab_size": 136}, spec(*ONE, **GPU, precision={"compute": "bf16"}),
                                          "--with-cpu-code", "native")
                done = self.space.must("meshwork-run", plan, "--data", self.space.tokens(CORPUS), "--data-type", "u16",
                                       "--steps", 2, "--compare-cpu")
                self.assertRegex(done.stdout, instruction)

    def test_attention_by_cudnn(self):
        """Each instruction against the CPU's; a window, groups of heads."""
        for name in ("gpt2", "llama", "mistral"):
            with self.subTest(name):
                config = {**configs.ALL[name], "vocab_size": 136, **({"n_head": 2} if name == "gpt2" else
                                                                     {"head_dim": 16})}
                plan = self.space.compile(config, spec(*ONE, **GPU, precision={"compute": "bf16"}),
                                          "--with-cpu-code", "native")
                done = self.space.must(
                    "meshwork-run", plan, "--data", self.space.tokens(CORPUS), "--data-type", "u16",
                    "--steps", 2, "--compare-cpu", "--cudnn-attention")
                self.assertRegex(done.stdout, r"cuDNN ran (\d+) of \1 instructions of attention")
                self.assertRegex(done.stdout, r"AttentionGrad \(bf16\)")

    def test_attention_is_by_what_is_faster(self):
        """With --tune-matmuls: kept like the timings of products, and never where ranks must have the same bits."""
        config = {**LLAMA, "head_dim": 16}
        plan = self.space.compile(config, spec(*ONE, **GPU, precision={"compute": "bf16"}))
        run = ["meshwork-run", plan, "--data", self.space.tokens(CORPUS), "--data-type", "u16", "--steps", 2,
               "--tune-matmuls"]
        by_cudnn = r"cuDNN ran ([1-9]\d*) of \1 instructions of attention\n"
        by_kernels = r"cuDNN ran 0 of (\d+) instructions of attention\n  the plan's kernels ran \1, .*: faster here"
        with tools.Workspace() as folders:
            caches = [{"MESHWORK_CACHE_DIR": str(folders.path / name)} for name in "ab"]
            with tools.Workspace(**emulated(**caches[0])) as fast:
                first = fast.must(*run).stdout
                self.assertRegex(first, by_cudnn)
            with tools.Workspace(**emulated(**caches[1], MESHWORK_EMULATOR_DNN_SLOW="1")) as slow:
                second = slow.must(*run).stdout
                self.assertRegex(second, by_kernels)
            with tools.Workspace(**emulated(**caches[1])) as again:
                third = again.must(*run).stdout
                self.assertRegex(third, r"tuning: 0 timed, ")
                self.assertRegex(third, by_kernels)
        losses = [[float(x) for x in re.findall(r"step .* loss ([0-9.]+)", text)] for text in (first, second)]
        np.testing.assert_allclose(*losses, rtol=2 ** -9)
        same = {"shard": {"heads": []}, "mesh": {"axes": ["tp=2"]}}
        plan = self.space.compile(config, tools.spec(BATCH, 1, SEQUENCE, precision={"compute": "bf16"}, **same, **GPU))
        done = self.space.must("meshwork-run", plan, *run[2:], "--share-gpu")
        self.assertRegex(done.stdout, "the plan's kernels ran .*other ranks compute the same gradient")

    @tools.slow
    def test_ranks_with_attention_by_cudnn(self):
        """In graphs, by threads and by processes; bf16 rounds at 2^-9."""
        config = {**LLAMA, "head_dim": 16}
        weights = self.space.save_weights(self.random_weights(config))
        precision = {"precision": {"compute": "bf16"}}
        for layout in LAYOUTS[-2:]:
            ranks = int(np.prod(list(layout[0].values())))
            base = self.run_on("cuda", config, layout, weights, steps=3, **precision)
            shared = self.run_on("cuda", config, layout, weights, steps=3, options=["--cudnn-attention"],
                                 **precision)
            np.testing.assert_allclose(shared.losses, base.losses, rtol=2 ** -9)
            with tools.Workspace(**emulated(MESHWORK_EMULATOR_DEVICES=str(ranks))) as gpus:
                plan = gpus.compile(config, spec(*layout, **GPU, **precision))
                many = gpus.train(plan, CORPUS, 3, "--cudnn-attention", lr=RATE, init=weights,
                                  launcher=["mpirun", "--oversubscribe", "--allow-run-as-root",
                                            "-n", str(ranks)])
            np.testing.assert_allclose(many.losses, base.losses, rtol=2 ** -9)

    def test_why_attention_is_not_by_cudnn(self):
        same = {"shard": {"heads": []}, "mesh": {"axes": ["tp=2"]}}
        for why, config, sections in (
                ("q is f32, expected bf16", LLAMA, {}),
                ("dropout", {**GPT2, "attn_pdrop": 0.2}, {"precision": {"compute": "bf16"}}),
                ("expected dense rows", {**LLAMA, "head_dim": 12}, {"precision": {"compute": "bf16"}}),
                ("other ranks compute the same gradient", {**LLAMA, "head_dim": 16},
                 {"precision": {"compute": "bf16"}, **same})):
            with self.subTest(why):
                plan = self.space.compile(config, tools.spec(BATCH, 1, SEQUENCE, **{"mesh": {"axes": ["dp=1"]},
                                                                                    **sections, **GPU}))
                done = self.space.must("meshwork-run", plan, "--data", self.space.tokens(CORPUS), "--data-type",
                                       "u16", "--steps", 1, "--cudnn-attention", "--share-gpu")
                self.assertRegex(done.stdout, f"the plan's kernels ran .*{why}")


class Wgmma(unittest.TestCase):
    """Attention on an emulated GPU of compute capability 9.0."""
    cost_s = 60
    heads = {"gpt2": {"n_head": 2}, "llama": {"head_dim": 16}, "mistral": {"head_dim": 80}}
    target = {"target": {"device": "cuda", "arch": "sm_90a"}, "precision": {"compute": "bf16"}}

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace(**emulated(MESHWORK_EMULATOR_CC="9.0"))
        cls.addClassCleanup(cls.space.close)

    def config(self, name):
        return {**configs.ALL[name], "vocab_size": 136, **self.heads[name]}

    def run_plan(self, plan, *options, steps=2):
        return self.space.must("meshwork-run", plan, "--data", self.space.tokens(CORPUS), "--data-type", "u16",
                               "--steps", steps, *options).stdout

    def test_each_instruction_against_the_cpu(self):
        """A window, groups of heads, documents; ranks that compute the same gradient, or share a sequence: queries of
        a rank with all keys, and with those of each rank in turn."""
        same = {"shard": {"heads": []}, "mesh": {"axes": ["tp=2"]}}
        gathered, ring = ({"mesh": {"axes": ["cp=3"]}, "shard": {"sequence": ["cp"]},
                           "context": {"method": method, "layout": "zigzag"}} for method in ("gathered", "ring"))
        for name, sections, options in (("gpt2", {}, []), ("llama", {"documents": "separate"}, ["--document-end", 3]),
                                        ("mistral", {}, []), ("llama", same, ["--share-gpu"]),
                                        ("mistral", gathered, ["--share-gpu"]), ("llama", ring, ["--share-gpu"])):
            with self.subTest(name, sections=sections):
                sections = {"mesh": {"axes": ["dp=1"]}, **self.target, **sections}
                plan = self.space.compile(self.config(name), tools.spec(BATCH, 1, SEQUENCE - 1, **sections),
                                          "--with-cpu-code", "native")
                text = self.run_plan(plan, "--compare-cpu", *options)
                self.assertRegex(text, r"wgmma ran ([1-9]\d*) of \1 instructions of attention")
                self.assertRegex(text, r"AttentionGrad \(bf16\)")

    def test_learns_as_by_the_plans_kernels(self):
        """Some sums are in another order: bf16 rounds at 2^-9. Whoever is fastest runs where that is asked for."""
        plan = self.space.compile(self.config("llama"), spec(*ONE, **self.target))
        texts = [self.run_plan(plan, *options, steps=3) for options in (
            ["--no-wgmma-attention"], [], ["--wgmma-attention"], ["--cudnn-attention"], ["--tune-matmuls"])]
        losses = [[float(x) for x in re.findall(r"step .* loss ([0-9.]+)", text)] for text in texts]
        for other in losses[1:]:
            np.testing.assert_allclose(other, losses[0], rtol=2 ** -9)
        self.assertEqual(losses[1], losses[2])
        self.assertRegex(texts[1], r"wgmma ran ([1-9]\d*) of \1 instructions of attention")
        self.assertNotIn("wgmma", texts[0])
        self.assertRegex(texts[3], r"cuDNN ran ([1-9]\d*) of \1 instructions of attention")
        self.assertNotIn("wgmma ran", texts[3])
        self.assertRegex(texts[4], r"cuDNN ran \d+ of (\d+) instructions of attention\n(?:  others ran .*\n)*"
                         r"wgmma ran \d+ of ")

    def test_why_the_plans_kernels_run(self):
        for why, config, sections in (
                ("q is f32, expected bf16", self.config("llama"), {"precision": {"compute": "f32"}}),
                ("dropout", {**self.config("gpt2"), "attn_pdrop": 0.2}, {}),
                ("heads of 144 elements, expected at most 128", {**self.config("llama"), "head_dim": 144}, {})):
            with self.subTest(why):
                plan = self.space.compile(config, spec(*ONE, **{**self.target, **sections}))
                self.assertRegex(self.run_plan(plan, steps=1), f"the plan's kernels ran .*{why}")

    def test_a_driver_that_does_not_take_them(self):
        """Told where nobody asked for them, an error where somebody did."""
        plan = self.space.compile(self.config("gpt2"), spec(*ONE, **{**GPU, "precision": {"compute": "bf16"}}))
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_CC="9.0", MESHWORK_EMULATOR_DRIVER="11080")) as older:
            done = older.must("meshwork-run", plan, "--steps", 0)
            self.assertRegex(done.stdout, r"the plan's kernels run attention on GPU 0: .*PTX version 8.0")
            done = older.call("meshwork-run", plan, "--steps", 0, "--wgmma-attention")
            self.assertEqual(done.returncode, 69, done.stderr)
            self.assertIn("--wgmma-attention on GPU 0: ", done.stderr)

    def test_another_gpu(self):
        plan = self.space.compile(self.config("gpt2"), spec(*ONE, **GPU))
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_CC="8.0")) as older:
            self.assertNotIn("wgmma", older.must("meshwork-run", plan, "--steps", 0).stdout)
            done = older.call("meshwork-run", plan, "--steps", 0, "--wgmma-attention")
            self.assertEqual(done.returncode, 69, done.stderr)
            self.assertIn("--wgmma-attention on GPU 0: the GPU has compute capability 8.0, expected 9.0", done.stderr)


class Refusals(unittest.TestCase):
    def test_no_cudnn(self):
        """A file that is no library stands in its place."""
        with tools.Workspace(**emulated()) as space:
            (space.path / "libcudnn.so.9").write_text("none")
            path = os.pathsep.join([str(space.path), str(EMULATOR)])
            plan = space.compile(LLAMA, spec(*ONE, **GPU))
            with tools.Workspace(LD_LIBRARY_PATH=path) as without:
                done = without.call("meshwork-run", plan, "--steps", 0, "--cudnn-attention")
                self.assertEqual(done.returncode, 69, done.stderr)
                self.assertIn("--cudnn-attention needs NVIDIA's cuDNN", done.stderr)
                self.assertEqual(without.call("meshwork-run", plan, "--steps", 0).returncode, 0)

    def test_no_driver(self):
        """Exit code 69, and what is missing."""
        with tools.Workspace(LD_LIBRARY_PATH="") as space:
            plan = space.compile(GPT2, spec(*ONE, **GPU))
            for option in ("--validate-only", "--share-gpu"):
                done = space.call("meshwork-run", plan, "--steps", 0, option)
                self.assertEqual(done.returncode, 69, done.stderr)
                self.assertIn("NVIDIA GPU and its driver", done.stderr)

    def test_fewer_gpus_than_ranks(self):
        with tools.Workspace(**emulated()) as space:
            plan = space.compile(GPT2, spec(*LAYOUTS[0], **GPU))
            done = space.call("meshwork-run", plan, "--steps", 0)
            self.assertEqual(done.returncode, 69, done.stderr)
            self.assertIn("2 ranks on this machine need as many GPUs, there is 1", done.stderr)

    def test_processes_that_share_a_gpu(self):
        """NCCL before 2.30 cannot; it would hang or fail far from the cause."""
        launcher = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2"]
        for version, code in (("22809", 69), ("23000", 0)):
            with tools.Workspace(**emulated(MESHWORK_EMULATOR_NCCL_VERSION=version)) as space:
                plan = space.compile(GPT2, spec(*LAYOUTS[0], **GPU))
                done = space.call("meshwork-run", plan, "--data", space.tokens(CORPUS), "--data-type", "u16",
                                  "--steps", 1, "--share-gpu", launcher=launcher)
                self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                self.assertEqual("needs NCCL 23000 (2.30) or newer" in done.stderr, code == 69, done.stderr)

    def test_too_little_memory(self):
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_MEMORY="1000000")) as space:
            plan = space.compile(GPT2, spec(*ONE, **GPU))
            done = space.call("meshwork-run", plan, "--steps", 0)
            self.assertEqual(done.returncode, 71, done.stderr)
            self.assertIn("free: compile with a smaller micro batch", done.stderr)

    def test_a_kernel_that_fails(self):
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_INSTRUCTIONS="10")) as space:
            plan = space.compile(GPT2, spec(*ONE, **GPU))
            done = space.call("meshwork-run", plan, "--data", space.tokens(CORPUS), "--data-type", "u16", "--steps", 1)
            self.assertEqual(done.returncode, 70, done.stdout + done.stderr)
            self.assertIn("the warp runs more than 10 instructions", done.stderr)

    def test_too_little_memory_beside_nccl(self):
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_DEVICES="2", MESHWORK_EMULATOR_MEMORY="64000000",
                                        MESHWORK_EMULATOR_NCCL_BYTES="63500000")) as space:
            plan = space.compile(GPT2, spec(*LAYOUTS[0], **GPU))
            done = space.call("meshwork-run", plan, "--steps", 0)
            self.assertEqual(done.returncode, 71, done.stderr)
            self.assertRegex(done.stderr, "which has .* free beside NCCL's communicators, which took 60.6 MiB")

    def test_code_for_another_gpu(self):
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_CC="8.0")) as space:
            plan = space.compile(GPT2, spec(*ONE, target={"device": "cuda", "arch": "sm_90a"}))
            done = space.call("meshwork-run", plan, "--steps", 0)
            self.assertEqual(done.returncode, 69, done.stderr)
            self.assertIn("no code of the plan runs on GPU 0", done.stderr)

    def test_options_of_gpus_on_the_cpu(self):
        with tools.Workspace() as space:
            plan = space.compile(GPT2, spec(*ONE))
            for option in ("--compare-cpu", "--cudnn-attention", "--wgmma-attention", "--no-wgmma-attention"):
                done = space.call("meshwork-run", plan, "--steps", 0, option)
                self.assertEqual(done.returncode, 64, done.stderr)


if __name__ == "__main__":
    unittest.main()
