"""What benchmarks reckon with, without running them."""
import argparse
import importlib
import os
import pathlib
import sys
import tempfile
import unittest

import shell

FOLDER = shell.ROOT / "test" / "Benchmarks"
sys.path.insert(0, str(FOLDER))
import cases  # noqa: E402
import floors  # noqa: E402

MACHINE = """[flops]
f32 = 4e12
bf16 = 5e12
[memory]
bandwidth = 3e9
kernels = 6e9
"""


class Benchmarks(unittest.TestCase):
    def test_a_floor_is_of_the_faster_side(self):
        ours, theirs = floors.rates(MACHINE), {"f32": 2500.0, "bf16": 9000.0, "copy": 7.0}
        self.assertEqual(ours, {"f32": 4000.0, "bf16": 5000.0, "copy": 6.0})
        peak = floors.best([theirs, ours])
        self.assertEqual(peak, {"f32": 4000.0, "bf16": 9000.0, "copy": 7.0})
        row = {"name": "h.1.c", "operation": "MatMul", "flops": 4e12, "bytes": 0, "ms_per_step": 1000,
               "calls_per_step": 1}
        self.assertEqual(floors.table([row], peak["f32"], peak["f32"], peak["copy"])[0]["ratio"], 1)

    def test_folders_of_tools_may_be_relative(self):
        """Every script that has --bin takes it from here."""
        before = pathlib.Path.cwd()
        self.addCleanup(os.chdir, before)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            parser = argparse.ArgumentParser()
            cases.add_bin(parser)
            self.assertEqual(parser.parse_args(["--bin", "here"]).bin, pathlib.Path(folder).resolve() / "here")
            os.chdir(before)
        scripts = [path for path in FOLDER.glob("*.py") if "options.bin" in path.read_text()]
        self.assertGreater(len(scripts), 4)
        for path in scripts:
            if path.name != "frameworks.py":
                self.assertIn("cases.add_bin(parser)", path.read_text(), path.name)
                importlib.import_module(path.stem)


if __name__ == "__main__":
    unittest.main()
