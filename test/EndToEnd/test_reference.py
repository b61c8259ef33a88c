"""The reference pages, and that no op or pass is without an example that is a test."""
import pathlib
import re
import unittest

import shell

TESTS = {kind: "\n".join(p.read_text() for p in sorted((shell.ROOT / "test" / kind).rglob("*.mlir")))
         for kind in ("Dialects", "Passes")}
BUILD = shell.BIN.parent


class Reference(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)
        cls.space.must("ninja", "-C", BUILD, "meshwork-doc")
        cls.pages = {p.stem: p.read_text() for p in (BUILD / "docs").glob("*.md")}

    def test_every_dialect_and_folder_of_passes_has_a_page(self):
        passes = shell.ROOT / "passes"
        folders = {"".join(part.capitalize() for part in p.parent.relative_to(passes).parts) + "Passes" for p in passes.rglob("Passes.td")}
        dialects = {p.parent.name.capitalize() + "Dialect" for p in shell.ROOT.glob("dialects/*/*Ops.td")}
        self.assertEqual(set(self.pages), folders | dialects)

    def test_every_pass_has_a_test(self):
        missing = [name for text in self.pages.values() for name in re.findall(r"^### `-([a-z0-9-]+)`", text, re.M)
                   if not re.search(rf"RUN:.* -{name}\b", TESTS["Passes"])]
        self.assertEqual(missing, [])

    def test_every_op_has_a_test(self):
        everything = TESTS["Dialects"] + TESTS["Passes"]
        missing = [name for text in self.pages.values() for name in re.findall(r"^### `([a-z]+\.[a-z0-9_]+)`", text, re.M)
                   if not re.search(rf"{re.escape(name)}\b", everything)]
        self.assertEqual(missing, [])

    def test_every_pass_says_what_it_turns_into_what(self):
        for path in (shell.ROOT / "passes").rglob("Passes.td"):
            for name, body in re.findall(r"def (\w+) : Pass<(.*?)\n}", path.read_text(), re.S):
                self.assertRegex(body, r"(?s)Before.*After|changes nothing", name)


if __name__ == "__main__":
    unittest.main()
