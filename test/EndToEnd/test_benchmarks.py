"""What benchmarks reckon with, without running them. Their modules are imported by a process of its own:
others of the tests have modules of the same names."""
import subprocess
import sys
import tempfile
import unittest

import shell

FOLDER = shell.ROOT / "test" / "Benchmarks"

FLOORS = """
import floors
MACHINE = "[flops]\\nf32 = 4e12\\nbf16 = 5e12\\n[memory]\\nbandwidth = 3e9\\nkernels = 6e9\\n"
ours, theirs = floors.rates(MACHINE), {"f32": 2500.0, "bf16": 9000.0, "copy": 7.0}
assert ours == {"f32": 4000.0, "bf16": 5000.0, "copy": 6.0}, ours
peak = floors.best([theirs, ours])
assert peak == {"f32": 4000.0, "bf16": 9000.0, "copy": 7.0}, peak
row = {"name": "h.1.c", "operation": "MatMul", "flops": 4e12, "bytes": 0, "ms_per_step": 1000, "calls_per_step": 1}
table = floors.table([row], peak["f32"], peak["f32"], peak["copy"])
assert table[0]["ratio"] == 1, table
"""
RELATIVE = """
import argparse, os, pathlib, sys
import cases
os.chdir(sys.argv[1])
parser = argparse.ArgumentParser()
cases.add_bin(parser)
found = parser.parse_args(["--bin", "here"]).bin
assert found == pathlib.Path(sys.argv[1]).resolve() / "here", found
"""
BUILDS = """
import builds
assert builds.ratio(4, 3) == {"before": 4, "after": 3, "ratio": 0.75}
order = []
found = builds.in_turns(["before", "after"], 3, lambda side: order.append(side) or len(order))
assert order == ["before", "after", "after", "before", "before", "after"], order
assert found == [[1, 4, 5], [2, 3, 6]], found
"""


class Benchmarks(unittest.TestCase):
    def run_there(self, code, *arguments):
        done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=FOLDER, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_floor_is_of_the_faster_side(self):
        self.run_there(FLOORS)

    def test_two_builds_take_turns(self):
        self.run_there(BUILDS)

    def test_folders_of_tools_may_be_relative(self):
        """Every script that has --bin takes it from here."""
        with tempfile.TemporaryDirectory() as folder:
            self.run_there(RELATIVE, folder)
        self.run_there("import sys, cases\nsys.argv[1:] = ['--bin', 'build/bin']\n"
                       "assert cases.arguments('About.').bin.is_absolute()")
        scripts = [path for path in FOLDER.glob("*.py") if "options.bin" in path.read_text()]
        self.assertGreater(len(scripts), 4)
        for path in scripts:
            if path.name != "frameworks.py":
                self.assertRegex(path.read_text(), r"cases\.(add_bin\(parser\)|arguments\(__doc__\))", path.name)
                self.run_there(f"import {path.stem}")


if __name__ == "__main__":
    unittest.main()
