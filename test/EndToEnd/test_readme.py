"""The README is true: its commands run, its files and links exist."""
import json
import os
import re
import shutil
import subprocess
import unittest

import shell


def shell_lines(text):
    """Commands of all ```sh blocks, in order, without comments."""
    lines = []
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S):
        lines += [re.sub(r"\s+#.*", "", line) for line in block.splitlines() if line]
    return lines


class Readme(unittest.TestCase):
    def setUp(self):
        self.text = (shell.ROOT / "README.md").read_text()

    def test_commands_run_as_they_stand(self):
        lines = shell_lines(self.text)
        space = shell.Shell()
        self.addCleanup(space.close)
        usage = space.must(str(shell.ROOT / "dev"), "help").stdout
        ran = 0
        for line in lines:
            if line.startswith("./dev "):
                self.assertRegex(usage, rf"(?m)^  {line.split()[1]}\b", line)
                continue
            self.assertTrue(line.startswith(("build/bin/", "mpirun ")), f"who runs this? {line}")
            with self.subTest(line):
                done = space.run(line)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            ran += 1
        self.assertGreaterEqual(ran, 10)
        for name in ("tiny.mwplan", "one.mwplan", "metrics.jsonl", "weights.safetensors",
                     "schedule.mlir", "trace.json"):
            self.assertTrue((space.path / name).stat().st_size > 0, name)
        told = [set(names.split()) for names in re.findall(r"`(step \w*loss [^`]+)`", self.text)]
        lines = [json.loads(line) for line in (space.path / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual({frozenset(line) for line in lines if "loss" in line}, {frozenset(told[0])})
        self.assertEqual(len(told), 2)

    def test_a_program_of_another_package_is_told(self):
        """Of what quickstart neither builds nor installs, how to get it stands before the block."""
        dev, others = (shell.ROOT / "dev").read_text(), 0
        for line in shell_lines(self.text):
            program = line.split()[0]
            if program.startswith(("./dev", "build/bin/")):
                continue
            others += 1
            path = os.path.realpath(shutil.which(program))
            package = subprocess.run(["dpkg", "-S", path], capture_output=True, text=True).stdout.split(":")[0]
            self.assertNotEqual(package, "", path)
            before = self.text[:self.text.index(line)].split("\n\n")[-2]
            self.assertIn(f"apt-get install {package}`", before)
            self.assertIn(package, dev, "the tests need it too")
        self.assertGreater(others, 0)

    def test_every_tool_and_exit_code_is_told(self):
        for tool in shell.BIN.iterdir():
            if tool.name.startswith("meshwork"):
                self.assertIn(tool.name, self.text)
        header = (shell.ROOT / "include/meshwork/Runtime/ExitCode.h").read_text()
        codes = re.findall(r"^  \w+ = (\d+)", header, re.M)
        self.assertGreater(len(codes), 8)
        for code in codes:
            self.assertRegex(self.text, rf"(?m)^\| (\d+, )*{code}[ ,]", code)


if __name__ == "__main__":
    unittest.main()
