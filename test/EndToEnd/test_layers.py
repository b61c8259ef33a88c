"""No include goes against the layers that CONTRIBUTING.md lists."""
import re
import subprocess
import unittest

import shell

SOURCES = re.compile(r"\.(h|cpp|c|cu|td|inc)$")
INCLUDE = re.compile(r'^\s*#?\s*include\s+[<"]([\w./+-]+)[>"]', re.M)
OUTSIDE = ("mlir/", "llvm/", "llvm-c/", "lld/", "clang/")


def rows():
    """Of the table: (name, folders, names of rows), from the bottom up."""
    text = (shell.ROOT / "CONTRIBUTING.md").read_text().split("## Layers")[1].split("\n## ")[0]
    made = []
    for line in re.findall(r"^\| (\w+) \| `([\w/]+/)`: (.*) \| ?(.*?) ?\|$", text, re.M):
        name, root, folders, uses = line
        made.append((name, [root + folder for folder in folders.split(", ")],
                     uses.split(", ") if uses else []))
    return made


def folder_of(path, folders):
    """The longest of `folders` that `path` lies in."""
    return max((f for f in folders if path.startswith(f + "/")), key=len, default=None)


class Layers(unittest.TestCase):
    def setUp(self):
        self.rows = rows()
        self.folders = {folder: row for row in self.rows for folder in row[1]}
        self.roots = {folder.split("/")[0] for folder in self.folders}
        listed = subprocess.run(["git", "ls-files"], cwd=shell.ROOT, capture_output=True, text=True)
        if listed.returncode:  # an export, not a clone
            self.skipTest("git lists no files here")
        self.files = [name for name in listed.stdout.split() if SOURCES.search(name) and
                      name.split("/")[0] in self.roots and (shell.ROOT / name).exists()]

    def test_rows_name_rows_below(self):
        self.assertEqual(len(self.rows), 7)
        below = {"MLIR"}
        for name, _, uses in self.rows:
            self.assertLessEqual(set(uses), below, name)
            below.add(name)

    def may_use(self, folder, path):
        name, siblings, uses = self.folders[folder]
        if path.startswith(OUTSIDE):
            return "MLIR" in uses
        target = folder_of(path, self.folders)
        if target is None:  # right under a root, for all below it; of a test or a tool
            return path.count("/") == 1 and path.split("/")[0] == folder.split("/")[0]
        if target in siblings:
            return siblings.index(target) <= siblings.index(folder)
        return self.folders[target][0] in uses

    def test_includes_go_down(self):
        seen, wrong, used = 0, [], set()
        for name in self.files:
            folder = folder_of(name, self.folders)
            if folder is None:
                # What the build alone reads; what all below a root share.
                self.assertTrue(name.startswith("tools/cmake/") or name.count("/") == 1, name)
                continue
            used.add(folder)
            for path in INCLUDE.findall((shell.ROOT / name).read_text()):
                if path.startswith("meshwork/"):
                    path = "include/" + path
                if path.split("/")[0] not in self.roots | {"test"} and not path.startswith(OUTSIDE):
                    continue
                seen += 1
                if not self.may_use(folder, path):
                    wrong.append(f"{name} includes {path}")
        self.assertEqual(wrong, [], "against CONTRIBUTING.md, Layers")
        self.assertEqual(used, set(self.folders), "the table names a folder without sources")
        self.assertGreater(seen, 1000)

    def test_the_order_is_looked_at(self):
        for folder, path, fine in (("runtime/machine", "runtime/device/cpu/Prepare.h", False),
                                   ("runtime/device/cpu", "runtime/machine/Executor.h", True),
                                   ("runtime/device/cuda", "runtime/run/Allowance.h", False),
                                   ("runtime/rank", "mlir/IR/Value.h", False),
                                   ("runtime/rank", "dialects/schedule/Schedule.h", False),
                                   ("dialects/schedule", "runtime/machine/Executor.h", False),
                                   ("lib/Plan", "runtime/comm/Transport.h", False),
                                   ("lib/Plan", "mlir/IR/Value.h", False),
                                   ("passes/codegen", "passes/codegen/plan/PlanWriter.h", False),
                                   ("passes/codegen", "passes/codegen/machine/CpuTarget.h", True),
                                   ("passes/sharding", "passes/partition/Mask.h", False),
                                   ("lib/Spec", "lib/Import/Json.h", False),
                                   ("passes/pipelines", "tools/meshwork/driver/Compile.h", False),
                                   ("passes/autodiff", "passes/interpreter/Interpreter.h", True),
                                   ("tools/meshwork/driver", "test/Support/Emulator/Emulator.h", False)):
            self.assertEqual(self.may_use(folder, path), fine, f"{folder} {path}")


if __name__ == "__main__":
    unittest.main()
