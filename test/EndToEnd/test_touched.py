"""CONTRIBUTING.md's table of what a change touches: the files that name a thing of each kind."""
import re
import subprocess
import unittest

import shell

SOURCES = re.compile(r"\.(h|cpp|td|fbs|cu)$")
EXAMPLE = re.compile(r"^\| `(?P<file>[^`]+)` \|", re.M)
ROW = re.compile(r"^\| (?P<what>an? [^|]+) \| `(?P<words>[^`]+)` \| (?P<count>\d+) \| (?P<files>.*) \|$", re.M)


def rows():
    text = (shell.ROOT / "CONTRIBUTING.md").read_text().split("## What a change touches")[1]
    return [row.groupdict() for row in ROW.finditer(text.split("\n## ")[0])]


def sources():
    listed = subprocess.run(["git", "ls-files"], cwd=shell.ROOT, capture_output=True, text=True)
    names = [name for name in listed.stdout.split() if SOURCES.search(name) and not
             name.startswith(("test/", "examples/")) and (shell.ROOT / name).exists()]
    return {name: (shell.ROOT / name).read_text() for name in names}


def short(names):
    """`folder/`: A.cpp, B.h; ..."""
    folders = {}
    for name in sorted(names):
        folder, _, file = name.rpartition("/")
        folders.setdefault(folder, []).append(file)
    return "; ".join(f"`{folder}/`: {', '.join(files)}" for folder, files in folders.items())


def example():
    """The files of the worked example, in its order."""
    text = (shell.ROOT / "CONTRIBUTING.md").read_text().split("### An op with an instruction of its own")[1]
    return EXAMPLE.findall(text.split("\n## ")[0])


class Touched(unittest.TestCase):
    def test_worked_example_has_all_files_of_its_row(self):
        row = next(row for row in rows() if row["what"].startswith("an op with an instruction"))
        self.assertEqual(short(example()), row["files"])
        self.assertLessEqual(len(example()), 10)

    def test_files_are_those_that_name_it(self):
        texts = sources()
        if not texts:
            self.skipTest("git lists no files here")
        self.assertGreaterEqual(len(rows()), 5)
        for row in rows():
            words = row["words"].replace("\\|", "|")
            # A device's own folder is the device: all of it is new.
            found = {name for name, text in texts.items()
                     if re.search(rf"(?<![A-Za-z0-9]){words}(?![A-Za-z0-9])", text)
                     and not name.startswith("runtime/device/cuda/")}
            with self.subTest(row["what"]):
                line = f"| {row['what']} | `{row['words']}` | {len(found)} | {short(found)} |"
                self.assertEqual(f"{row['count']} | {row['files']}", f"{len(found)} | {short(found)}",
                                 f"in CONTRIBUTING.md it should now be:\n{line}")


if __name__ == "__main__":
    unittest.main()
