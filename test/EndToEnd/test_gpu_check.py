"""The script that confirms a build on a GPU, with an emulated one."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from shell import BIN

ROOT = pathlib.Path(__file__).resolve().parents[2]


sys.path.insert(0, str(ROOT / "test" / "Gpu"))
import check  # noqa: E402


class GpuCheck(unittest.TestCase):
    def testEndsWhatTakesTooLongWithItsChildren(self):
        start = time.monotonic()
        done = check.call(["sh", "-c", "echo begun; sleep 100 & sleep 100"], limit_s=1)
        self.assertEqual((done.returncode, done.stdout), (124, "begun\n"))
        self.assertIn("did not end in 1 s", done.stderr)
        self.assertLess(time.monotonic() - start, 20)

    def testAStageThatBreaksLeavesTheResultsOfOthers(self):
        def fails(report, out):
            report.add("first", True, "good")
            raise KeyError("step_ms")

        def needs_time(report, out):
            check.Clock.deadline = 0
            check.call(["true"])

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "result.json"
            report = check.Report(path, {"gpu": "none"})
            with mock.patch.dict(check.STAGES, {"fails": fails, "late": needs_time}), \
                    mock.patch.object(check.Clock, "deadline", math.inf):
                check.run_stage("fails", report, None)
                check.run_stage("late", report, None)
            rows = json.loads(path.read_text())["rows"]
        self.assertEqual([(x["what"], x["good"]) for x in rows], [("first", True), ("fails", False), ("late", None)])

    def testNoSanitizerIsTold(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(check, "sanitizer_tool", lambda: None):
            report = check.Report(pathlib.Path(folder) / "result.json", {})
            check.sanitizer(report, None)
        self.assertEqual([(x["good"], x["text"]) for x in report.rows], [(None, "not run: no compute-sanitizer")])

    def testAnIdenticalRivalIsTimedOnce(self):
        asked = []

        def call(command, **_):
            asked.append(pathlib.Path(command[2]).stem if len(command) > 2 else "")
            answer = json.dumps({"step_ms": 30.0, "copy_gbytes": 2000.0})
            return subprocess.CompletedProcess(command, 0, answer, "")

        def timed(name, out, *options, steps=0):
            if "--profile-json" in options:
                launch = {"operation": "Launch", "ms_per_step": 18.0, "gbytes_per_s": 1000.0, "name": "slow"}
                options[-1].write_text(json.dumps({"instructions": [launch]}))
            return [{"step_ms": 20.0, "mfu": 0.5}] * 3

        check.torch_side.cache_clear()
        with tempfile.TemporaryDirectory() as folder, mock.patch.multiple(
                check, call=call, timed=timed, torch_python=lambda: "python3"):
            out = pathlib.Path(folder)
            report = check.Report(out / "result.json", {})
            check.speed(report, out)
        check.torch_side.cache_clear()
        self.assertEqual(asked, [x for x, case in check.cases.TIMED.items() if "against" not in case])
        self.assertEqual(len(report.rows), len(check.cases.TIMED))
        for row in report.rows:
            self.assertAlmostEqual(row["ratio"], 1.5)
            self.assertAlmostEqual(row["gap"], 0.1)
            self.assertEqual(row["slow"], [(0.5, 18.0, "slow")])
            self.assertEqual(row["cudnn_step_ms"], 20.0)

    def testRanks(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "gpu"
            subprocess.run([sys.executable, ROOT / "test" / "Gpu" / "bundle.py", out, "ranks"], check=True,
                           capture_output=True, env={**os.environ, "MESHWORK_BIN": str(BIN)})
            emulator = str(pathlib.Path(BIN).parent / "emulator")
            done = subprocess.run([sys.executable, out / "check.py", "ranks"], capture_output=True, text=True,
                                  env={**os.environ, "LD_LIBRARY_PATH": emulator})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            rows = json.loads((out / "out" / "gpu-check.json").read_text())["rows"]
            self.assertEqual([row["good"] for row in rows], [True] * 13)
            # A machine without a GPU is told so, not passed over.
            bare = subprocess.run([sys.executable, out / "check.py", "ranks"], capture_output=True, text=True,
                                  env={**os.environ, "LD_LIBRARY_PATH": ""})
            self.assertEqual(bare.returncode, 1)
            self.assertIn("NVIDIA GPU and its driver", bare.stdout)


if __name__ == "__main__":
    unittest.main()
