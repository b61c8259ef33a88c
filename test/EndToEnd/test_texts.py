"""What all READMEs say of the IR is true: it parses, passes have these names, links lead somewhere."""
import re
import subprocess
import unittest

import shell

PASS = re.compile(r"`-([a-z0-9]+(?:-[a-z0-9]+)+)")  # `-schedule-lower`, `-meshwork-gate=phase=...`


def texts():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=shell.ROOT, capture_output=True, text=True)
    return {name: (shell.ROOT / name).read_text() for name in listed.stdout.split() if (shell.ROOT / name).exists()}


class Texts(unittest.TestCase):
    def setUp(self):
        self.texts = texts()
        if not self.texts:  # an export, not a clone
            self.skipTest("git lists no files here")

    def test_ir_parses(self):
        space = shell.Shell()
        self.addCleanup(space.close)
        parsed = 0
        for name, text in self.texts.items():
            for block in re.findall(r"^```mlir\n(.*?)^```", text, re.M | re.S):
                with self.subTest(name):
                    space.write("block.mlir", block)
                    space.must("meshwork-opt", "block.mlir")
                parsed += 1
        self.assertGreaterEqual(parsed, 5)

    def test_passes_have_these_names(self):
        space = shell.Shell()
        self.addCleanup(space.close)
        known = set(re.findall(r"--([a-z0-9-]+)", space.must("meshwork-opt", "--help").stdout))
        named = {(name, found) for name, text in self.texts.items() for found in PASS.findall(text)}
        self.assertGreater(len(named), 20)
        self.assertEqual(sorted((name, found) for name, found in named if found not in known), [])

    def test_links_lead_somewhere(self):
        links = 0
        for name, text in self.texts.items():
            for target in re.findall(r"\]\(([^)#\s]+)", text):
                if not target.startswith(("http:", "https:")):
                    links += 1
                    self.assertTrue(((shell.ROOT / name).parent / target).exists(), f"{name}: {target}")
        self.assertGreater(links, 40)


if __name__ == "__main__":
    unittest.main()
