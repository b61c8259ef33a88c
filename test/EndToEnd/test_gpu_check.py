"""The script that confirms a build on a GPU, with an emulated one."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from shell import BIN

ROOT = pathlib.Path(__file__).resolve().parents[2]


class GpuCheck(unittest.TestCase):
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
            self.assertEqual([row["good"] for row in rows], [True] * 12)
            # A machine without a GPU is told so, not passed over.
            bare = subprocess.run([sys.executable, out / "check.py", "ranks"], capture_output=True, text=True,
                                  env={**os.environ, "LD_LIBRARY_PATH": ""})
            self.assertEqual(bare.returncode, 1)
            self.assertIn("NVIDIA GPU and its driver", bare.stdout)


if __name__ == "__main__":
    unittest.main()
