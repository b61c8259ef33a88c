"""The script that confirms a build on a GPU, with an emulated one."""
import ctypes
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from checkpoints import xxh3_128
from shell import BIN

ROOT = pathlib.Path(__file__).resolve().parents[2]

sys.path[:0] = [str(ROOT / "test" / folder) for folder in ("Gpu", "Equivalence")]
import check  # noqa: E402
import launcher  # noqa: E402
import machine  # noqa: E402
import plan_file  # noqa: E402
import process  # noqa: E402
import report as reports  # noqa: E402
import rivals  # noqa: E402
import rows  # noqa: E402
import sanitized  # noqa: E402
import speeds  # noqa: E402
import stages  # noqa: E402

FRAME = 64  # bytes before a plan's payload, include/meshwork/Plan/Frame.h
LIBRARY_KERNELS = ["cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_nn_align8", "nvjet_tst_128x256_64x4_2x1_v_bz_NTN",
                   "_ZN8cublasLt19splitKreduce_kernelILi32EEEv", "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                   "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_31"]


class Running(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(setattr, process.Clock, "deadline", math.inf)

    def report(self, stages=(), bundle="one"):
        return reports.Report(self.folder, {"gpu": "none", "bundle": bundle}, stages)

    def statuses(self):
        rows = json.loads((self.folder / "gpu-check.json").read_text())["rows"]
        return [(x["stage"], x["what"], x["status"]) for x in rows]

    def test_ends_what_takes_too_long_with_its_children(self):
        start = time.monotonic()
        done = process.call(["sh", "-c", "echo begun; sleep 1000 & sleep 1000"], limit_s=1)
        self.assertEqual((done.returncode, done.stdout), (124, "begun\n"))
        self.assertIn("did not end in 1 s", done.stderr)
        self.assertLess(time.monotonic() - start, 900)

    def test_a_case_that_breaks_or_has_no_time_leaves_the_results_of_others(self):
        def good(report, _):
            report.add("first", True, "good")

        def fails(_report, _folder):
            raise KeyError("step_ms")

        def hangs(_report, _folder):
            process.ended(["sleep", "100"], limit_s=1)

        def late(_report, _folder):
            process.Clock.deadline = 0
            process.ended(["true"])

        cases = [stages.Case(x.__name__, x) for x in (good, fails, hangs, late, good)]
        report = self.report()
        stages.run_stage("some", stages.Stage(60, lambda: cases), report, None, math.inf)
        self.assertEqual(self.statuses(), [("some", "first", "ok"), ("some", "fails", "failed"),
                                           ("some", "hangs", "not run"), ("some", "late", "not run"),
                                           ("some", "first", "ok")])
        self.assertTrue(report.failed)

    def test_stages_run_one_by_one_fill_one_file(self):
        for stage in ("kernels", "ranks", "kernels"):
            report = self.report([stage])
            report.stage = stage
            report.add("x", True, "good")
        self.assertEqual(self.statuses(), [("ranks", "x", "ok"), ("kernels", "x", "ok")])
        self.assertEqual(self.report(bundle="another").rows, [])

    def test_stages_are_chosen_by_name(self):
        names = ["kernels", "speed:a", "speed:b", "sanitizer"]
        for asked, expected in (([], names), (["speed"], names[1:3]), (["speed:b", "kernels"], ["kernels", "speed:b"])):
            self.assertEqual(check.chosen(asked, names), expected)
        with self.assertRaisesRegex(ValueError, "there is no stage speed:c"):
            check.chosen(["speed:c"], names)

    def test_a_machine_file_is_found_by_the_name_of_the_gpu(self):
        for gpu, name in (("NVIDIA H200, 580.1, 143771 MiB", "h200x8"), ("NVIDIA A100-SXM4-80GB", "a100x8"),
                          ("NVIDIA L4", "h100x8")):
            self.assertEqual(machine.shipped_for(gpu), name)
        text = (ROOT / "examples" / "machines" / "h100x8.toml").read_text()
        found = machine.figures(text)
        self.assertEqual((found["flops.bf16"], found["attention.backward.half_head"], found["link.host.bandwidth"],
                          found["ranks_per_node"]), (960e12, 47, 55e9, 8))
        rows = machine.table({"flops.bf16": 480e12, "x": 1.0}, found, "h100x8")
        self.assertEqual(rows[1:], [["flops.bf16", "4.8e+14", "9.6e+14", "0.50"], ["x", "1", None, None]])

    def test_no_sanitizer_is_told(self):
        with mock.patch.object(sanitized, "tool", lambda: None), self.assertRaisesRegex(process.NotRun, "no compute"):
            sanitized.look("memcheck", "gpt2-one-cuda", [], None, None)

    def test_a_sanitizer_looks_at_our_kernels_alone(self):
        for option, expected in (("--kernel-name", "regex="), ("--kernel-regex", "kns=")):
            tool = self.folder / f"sanitizer{option}"
            tool.write_text(f"#!/bin/sh\n[ $1 = --help ] && echo '{option} arg' || echo \"$@\"\n")
            tool.chmod(0o755)
            found = sanitized.kernel_filter(str(tool))
            self.assertEqual(found[0], option)
            self.assertTrue(found[1].startswith(expected))
        for name in LIBRARY_KERNELS:
            self.assertIsNone(re.search(sanitized.OUR_KERNELS, name), name)

    def test_rows_say_why(self):
        def instruction(name, operation, ms, flops=0, size=0, **more):
            return {"name": name, "operation": operation, "phase": "forward", "calls_per_step": 1, "ms_per_step": ms,
                    "flops": flops, "bytes": size, **more}
        shape = {"batch": 1, "m": 1000, "n": 2000, "k": 500, "lhs": "bf16", "rhs": "bf16", "dst": "bf16",
                 "lhs_transposed": False, "rhs_transposed": True, "dst_transposed": False, "bias": True,
                 "epilogue": "gelu", "adds": "no"}
        profile = [instruction(f"h.{i}.c_fc", "Matmul", 2.0, flops=2 * 10 ** 9, product=shape) for i in range(3)]
        profile += [instruction("ln", "Launch", 1.0, size=10 ** 9), instruction("wte", "Embedding", 1.0, size=10 ** 8)]
        plain = [instruction("h.0.c_fc", "Matmul", 1.5, product={**shape, "bias": False, "epilogue": "none"})]
        rates = [{"product": 0, "ms": 1.0, "note": ""}, {"product": 0, "kernel": "nvjet"}]
        table = rows.products(profile, plain, rates)
        row = dict(zip(*table))
        self.assertEqual(len(table), 2)
        self.assertEqual([row[x] for x in ("product", "calls", "layout", "epilogue", "ms", "TFLOP/s", "plain TFLOP/s",
                                           "of plain", "apart ms", "kernel of plain")],
                         ["h.*.c_fc", 3, "NT", "gelu+bias", 2.0, 1.0, 2.0, 0.5, 1.5, "nvjet"])
        _, slow = rows.memory_bound(profile, 1000.0)
        self.assertEqual(slow, [(0.1, 1.0, "wte")])
        text, told = rows.where_time_goes(9.0, 10.0, 4e12, 0.5, "NVIDIA H100 80GB HBM3")
        self.assertAlmostEqual(told["gap"], 0.1)
        self.assertAlmostEqual(told["mfu_nominal"], 400 / 989.4)
        self.assertAlmostEqual(told["measured_peak_tflops"], 800)
        self.assertIn("of the nominal bf16 peak (989.4 TFLOP/s)", text)
        self.assertIn("50.0 % of the measured one (800.0)", text)

    def test_a_machine_without_cudnn_is_not_at_fault(self):
        timed, report = speeds.Timed("gpt2-124m", "none", True), self.report()
        lacks = subprocess.CompletedProcess([], launcher.UNAVAILABLE, "", "no libcudnn.so.9")
        with mock.patch.object(timed, "profiled", side_effect=[([], []), launcher.Unavailable("no libcudnn.so.9"),
                                                               ([], [])]):
            timed.ways_of_attention("x", report, self.folder)
        self.assertEqual(report.rows[0]["lines"], ["cuDNN: not run: no libcudnn.so.9"])
        self.assertEqual(list(report.rows[0]["attention_ms"]), ["our kernels", "wgmma"])
        with mock.patch.object(launcher, "train", lambda *_, **__: lacks), \
                self.assertRaisesRegex(launcher.Unavailable, "exit 69: no libcudnn"):
            launcher.metrics("x", self.folder, steps=1)

    def test_a_rival_that_does_not_end_leaves_what_it_has(self):
        line = json.dumps({"way": "eager", "step_ms": 30.0, "micro": 8, "attention": "flash", "torch": "2"})
        rival = rivals.Rival("llama-1b", "none", False)
        self.assertEqual(list(rival.ours), ["llama-1b", "llama-1b-fp8", "llama-1b-fp8-delayed", "llama-1b-offloaded"])
        rival.ours["llama-1b"].step_ms, rival.ours["llama-1b-fp8"].step_ms = 20.0, 15.0
        ends = subprocess.CompletedProcess([], 124, f"{line}\n", "did not end in 210 s")
        report = self.report()
        with mock.patch.object(rivals, "torch_python", lambda: "python3"), \
                mock.patch.object(process, "call", lambda *_, **__: ends):
            rival.torch_step("PyTorch", report, self.folder)
        self.assertEqual(report.rows[0]["ratios"], {"llama-1b": 1.5, "llama-1b-fp8": 2.0})
        self.assertIn("the rest: not run: did not end in 210 s", report.rows[0]["lines"])


LAYERS = """
import sys; sys.argv = ["", "", "", "", "cpu"]; import json, pathlib, torch, torch_step
for path in sorted(pathlib.Path("configs").iterdir()):
    step = torch_step.Step(json.loads(path.read_text()), 2, 64)
    tokens, targets = torch.randint(250, (2, 2, 64))
    plain = step.forward(tokens, targets)
    with torch_step.prepared(step, torch_step.by_layer):
        assert torch.equal(step.forward(tokens, targets), plain), path
print("equal")
"""

MICROBATCHES = """
import sys; sys.argv = ["", "", "", "", "cpu"]; import contextlib, json, torch, torch_step
# In f32: where a CPU has no products of bf16, PyTorch adds them up in bf16.
torch.autocast = lambda *_: contextlib.nullcontext()
def gradients(micro):
    step = torch_step.Step(json.load(open("configs/gpt2-124m.json")), 6, 64)
    step.optimizer.step = lambda: kept.update({k: w.grad.clone() for k, w in step.weights.items()})
    plain, run, tried = step.loss, step.run, []
    step.run = lambda: torch.manual_seed(0) and run()  # the same tokens each time
    def loss(tokens, targets):
        tried.append(len(tokens))
        if len(tokens) > micro:
            raise torch.cuda.OutOfMemoryError("planted")
        return plain(tokens, targets)
    step.loss, kept = loss, {}
    step.fit()
    return tried, kept
tried, whole = gradients(6)
assert tried == [6], tried
tried, parts = gradients(2)
assert tried == [6, 3, 2, 2, 2], tried
far = max(((whole[k] - parts[k]).norm() / whole[k].norm()).item() for k in whole)
assert 0 < far < 2 ** -14, far  # sums of f32 in another order
print("equal")
"""


def plant(path, kernels, change):
    """Has `change` rewrite the PTX of a plan's kernels of such names, in as many bytes, and redoes the frame. The plan is
    then no longer packed."""
    data = bytearray(path.read_bytes()[:FRAME] + plan_file.flat_buffer(path))
    data[16:24] = (len(data) - FRAME).to_bytes(8, "little")
    for found in list(re.finditer(rb"\.entry " + kernels + rb"\(", data)):
        begin, end = found.start(), data.index(b"\n}", found.start())
        body = change(bytes(data[begin:end]))
        data[begin:end] = body + b" " * (end - begin - len(body))
    data[24:40] = bytes.fromhex(xxh3_128(bytes(data[FRAME:])))
    short = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    short.restype, short.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
    data[40:48] = short(bytes(data[:40]), 40).to_bytes(8, "little")
    path.unlink()  # other folders have links to it
    path.write_bytes(data)


def subtract(body):
    return body.replace(b"add.rn.f32", b"sub.rn.f32")


def never_end(body):
    without = body.replace(b".ptr .global .align 1 ", b"", 1)
    return without.replace(b"\tret;", b"\tHERE: bra.uni HERE;\tret;")


class Whole(unittest.TestCase):
    """A small bundle, packed once, and all of the script."""
    cost_s = 200

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.gpu = cls.folder / "gpu"
        subprocess.run([sys.executable, ROOT / "test" / "Gpu" / "bundle.py", "--small", cls.gpu], check=True,
                       capture_output=True, env={**os.environ, "MESHWORK_BIN": str(BIN)})

    def check(self, gpu, *stages, emulator=str(BIN.parent / "emulator"), **more):
        """The finished script and its rows: (stage, what) -> row."""
        out = gpu / "out"
        shutil.rmtree(out, ignore_errors=True)
        done = subprocess.run([sys.executable, gpu / "check.py", *stages], capture_output=True, text=True,
                              env={**os.environ, "LD_LIBRARY_PATH": emulator, "MESHWORK_EMULATOR_CC": "9.0", **more})
        self.assertEqual(sorted(x.name for x in out.iterdir()), ["gpu-check.json", "gpu-check.txt"], done.stderr)
        self.rows = json.loads((out / "gpu-check.json").read_text())["rows"]
        return done

    def row(self, what):
        return next(x for x in self.rows if x["what"] == what)

    def status(self, what):
        return self.row(what)["status"]

    def copy(self, name, compared):
        """With no other plans of the stage `kernels`: what is compared takes most of a test's time."""
        other = self.folder / name / "gpu"
        shutil.copytree(self.gpu, other, copy_function=os.link)
        for plan in (other / "plans").glob("compare-*.mwplan"):
            if not plan.name.startswith(tuple(f"compare-{one}" for one in compared)):
                plan.unlink()
        return other

    def test_the_filter_knows_all_kernels_of_plans(self):
        plans = [plan_file.flat_buffer(path) for path in (self.gpu / "plans").iterdir() if path.suffix == ".mwplan"]
        names = {name for data in (*plans, (self.gpu / "meshwork-run").read_bytes())
                 for name in re.findall(rb"\.entry (\w+)\(", data)}
        self.assertGreater(len(names), 20)
        self.assertIn(b"moveBoxes", names)
        for name in names:
            self.assertRegex(name.decode(), sanitized.OUR_KERNELS)

    def test_all_stages(self):
        done = self.check(self.gpu)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        kinds = {status: [x["what"] for x in self.rows if x["status"] == status] for status in reports.MARKS}
        self.assertEqual(kinds["failed"], [])
        self.assertEqual(len([x for x in kinds["ok"] if x.startswith("kernels")]), 15)
        self.assertIn("wgmma shapes", kinds["ok"])
        self.assertIn("copies to the host", kinds["ok"])
        self.assertIn("counted turns", kinds["ok"])
        self.assertEqual(len([x for x in kinds["ok"] if x.startswith("ranks")]), 8)
        self.assertIn("pytorch gpt2-124m PyTorch", kinds["not run"])
        self.assertEqual([x["step_ms"] > 0 for x in self.rows if x["what"] == "pytorch llama-1b-fp8 step"], [True])
        self.assertIn("speed gpt2-1.5b step", kinds["not run"])
        self.assertIn("memcheck gpt2-one-cuda", kinds["not run"])
        self.assertIn("memcheck wgmma", kinds["not run"])
        self.assertEqual([row[0] for row in self.row("attention")["table"][1:]], ["AttentionGrad", "Attention"])
        self.check_machine()
        self.check_speed("gpt2-124m", epilogues={"gelu+bias"})
        self.check_speed("llama-1b-fp8", epilogues={""})
        self.check_speed("mixture", epilogues={""})
        products = self.row("speed mixture products")["table"]
        self.assertLess(1, len([row for row in products if "mlp.experts" in row[0] or "block_sparse_moe" in row[0]]))
        libraries = [x["text"] for x in self.rows if x["what"] == "library"]
        self.assertEqual(len(libraries), 4)
        self.assertIn(f"cuBLASLt (for products): 13.1.0, {BIN.parent}/emulator/libcublasLt.so.13", libraries)

    def check_machine(self):
        """Beside the H100's figures, as an emulator has no machine file of its own."""
        row = self.row("machine")
        names, *figures = row["table"]
        self.assertEqual(names, ["", "measured", "h100x8", "measured / shipped"])
        found = {key: (measured, shipped) for key, measured, shipped, _ in figures}
        self.assertEqual(found["flops.bf16"][1], "9.6e+14")
        self.assertEqual(found["link.host.bandwidth"][1], "5.5e+10")
        self.assertIn("attention.bf16", found)
        for measured, _ in found.values():
            self.assertGreaterEqual(float(measured), 0)
        self.assertTrue(any("attention in bf16" in line for line in row["lines"]))
        self.assertIn('arch = "sm_90a"', row["file"])

    def check_speed(self, name, epilogues):
        step, profile = self.row(f"speed {name} step"), self.row(f"speed {name} profile")
        self.assertGreater(step["step_ms"], 0)
        self.assertAlmostEqual(profile["gap"], 1 - profile["instructions_ms"] / step["step_ms"])
        self.assertAlmostEqual(profile["measured_peak_tflops"] * step["mfu"], profile["tflops"])
        products = self.row(f"speed {name} products")["table"]
        found = {row[products[0].index("epilogue")] for row in products[1:]}
        self.assertLessEqual(epilogues, found)
        self.assertEqual("apart ms" in products[0], epilogues != {""})
        ways = self.row(f"speed {name} ways of attention")["attention_ms"]
        self.assertEqual(list(ways), ["our kernels", "cuDNN", "wgmma"])
        self.assertGreater(min(ways.values()), 0)
        for way in ways:
            self.assertIn(f"ours by {way}", self.row(f"speed {name} attention")["table"][0])
        self.assertGreater(self.row(f"speed {name} step untuned")["ratio"], 0)
        self.assertIn("(not run: PyTorch's rates", self.row(f"speed {name} memory")["text"])

    def test_a_wrong_kernel_and_one_that_never_ends(self):
        gpu = self.copy("planted", ("gpt2-124m", "llama-30m-documents"))
        plant(gpu / "plans" / "compare-gpt2-124m-bf16.mwplan", rb"kernel_\d+", subtract)
        # Only the way without wgmma and cuDNN runs this kernel: one case takes 25 seconds, not three.
        plant(gpu / "plans" / "compare-llama-30m-documents-bf16.mwplan", rb"attention_bf16_\w+", never_end)
        done = self.check(gpu, "kernels", "--case-seconds", "25", MESHWORK_EMULATOR_INSTRUCTIONS="0")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        wrong = self.row("kernels gpt2-124m bf16")
        self.assertEqual(wrong["status"], "failed")
        far = [float(x["times_allowed"]) for x in wrong["differences"]]
        self.assertGreater(len(far), 1)
        self.assertEqual(far, sorted(far, reverse=True))
        self.assertGreater(far[-1], 1)
        hangs = self.row("kernels llama-30m-documents bf16 --no-wgmma-attention")
        self.assertEqual((hangs["status"], hangs["good"]), ("not run", None))
        self.assertIn("did not end in 25 s", hangs["text"])
        for other in ("gpt2-124m fp8", "llama-30m-documents bf16", "llama-30m-documents bf16 --cudnn-attention"):
            self.assertEqual(self.status(f"kernels {other}"), "ok", other)

    def test_a_library_without_epilogues(self):
        gelu_aux_bias = "164"
        done = self.check(self.copy("without", ("gpt2-124m",)), "kernels", MESHWORK_EMULATOR_BLAS_WITHOUT=gelu_aux_bias)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        gpt2 = self.row("kernels gpt2-124m bf16")
        self.assertEqual(gpt2["status"], "ok")
        self.assertRegex("\n".join(gpt2["lines"]), r"cuBLASLt ran \d+ of \d+ epilogues of products\n"
                         r"  a kernel beside ran \d+, as .*: cuBLASLt has no algorithm with GELU_AUX_BIAS")

    def test_the_side_of_pytorch(self):
        """Here without a GPU, and whatever version there is."""
        def lines(*command):
            done = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=self.gpu)
            self.assertEqual(done.returncode, 0, done.stderr)
            return speeds.json_lines(done.stdout) or done.stdout
        self.assertEqual(lines("-c", LAYERS), "equal\n")
        self.assertEqual(lines("-c", MICROBATCHES), "equal\n")
        step = lines("torch_step.py", "configs/gpt2-124m.json", "2", "64", "cpu")
        self.assertEqual([x["way"] for x in step], ["eager", "compiled by layer", "compiled", "CUDA graphs"])
        self.assertGreater(step[0]["step_ms"], 0)
        product = {"batch": 1, "m": 64, "n": 48, "k": 32, "lhs": "bf16", "rhs": "bf16", "dst": "bf16",
                   "lhs_transposed": True, "rhs_transposed": True, "dst_transposed": True}
        (self.gpu / "shapes.json").write_text(json.dumps({"products": [product], "attention": []}))
        rates = lines("torch_rates.py", "shapes.json", "cpu")
        self.assertGreater(rows.of(rates, "product", 0)["ms"], 0)
        self.assertIn("copy_gbytes", rates[0])

    def test_a_machine_without_a_gpu_is_told_so(self):
        bare = self.check(self.gpu, "ranks", emulator="")
        self.assertEqual(bare.returncode, 1)
        self.assertIn("NVIDIA GPU and its driver", bare.stdout)
        self.assertIn("driver (for everything): not found", bare.stdout)


if __name__ == "__main__":
    unittest.main()
