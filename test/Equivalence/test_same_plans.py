"""same_plans.py finds nothing between a build and itself, and names what another one changed."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import same_plans
import tools

SCRIPT = pathlib.Path(same_plans.__file__)


class SamePlans(unittest.TestCase):
    def compare(self, after, *options):
        return subprocess.run([sys.executable, str(SCRIPT), str(tools.BIN), str(after), "--only", "dp1.toml/x86",
                               *options], capture_output=True, text=True,
                              timeout=tools.TIMEOUT_S)

    def build_with(self, lines):
        """The tools of this build behind a script."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        script = pathlib.Path(folder.name) / "meshwork"
        script.write_text(f"#!/bin/sh\n{lines}\n")
        script.chmod(0o755)
        return folder.name

    def test_a_build_equals_itself(self):
        done = self.compare(tools.BIN)
        self.assertEqual((done.returncode, done.stdout), (0, "1 compared, 0 differ\n"), done.stderr)

    def test_phases_are_compared_without_code(self):
        done = self.compare(tools.BIN, "--without-code")
        self.assertEqual((done.returncode, done.stdout), (0, "1 compared, 0 differ\n"), done.stderr)
        other = self.build_with(f'[ "$1" = compile ] && set -- "$@" --set batch.micro=1\nexec {tools.BIN}/meshwork "$@"')
        done = self.compare(other, "--without-code")
        self.assertEqual((done.returncode, done.stdout),
                         (1, "dp1.toml/x86-64-v3: --compile-to memory; --estimate --json\n1 compared, 1 differ\n"))

    def test_the_first_table_that_differs_is_named(self):
        other = self.build_with(f'[ "$1" = compile ] && set -- "$@" --set batch.micro=1\nexec {tools.BIN}/meshwork "$@"')
        done = self.compare(other)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"dp1.toml/x86-64-v3: .*programs\[0\]\.\w+.*: .*, not .*; explain")

    def test_other_words_are_told(self):
        done = self.compare(self.build_with(f'{tools.BIN}/meshwork "$@"; echo more'))
        self.assertEqual(done.returncode, 1)
        self.assertIn("words of compile; explain", done.stdout)

    def test_first_difference(self):
        before = {"a": [1, 2], "b": [{"c": 1}, {"c": 2}]}
        for after, place in (({"a": [1, 2], "b": [{"c": 1}, {"c": 3}]}, "b[1].c: 3, not 2"),
                             ({"a": [1], "b": before["b"]}, "a: 1 of them, not 2"),
                             ({"a": [1, 2], "b": [{"c": 1}]}, "b[1]: None, not {'c': 2}"),
                             (before, None)):
            self.assertEqual(same_plans.first_difference(before, after), place)


if __name__ == "__main__":
    unittest.main()
