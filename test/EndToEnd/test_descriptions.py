"""What the description of a pass shows is what the pass does.

A description has an example that runs:

    ```mlir
    // meshwork-opt -fusion-drop-unread
    ...IR that the pass is given...
    // becomes
    ...lines of what it writes...
    ```

Lines behind "becomes" stand in the output one after the other; a line of dots stands for any
number of lines, three dots within a line for anything. Names of values (%x) are free, but where
the example says one twice it means the same one.
"""
import pathlib
import re
import shlex
import unittest

import shell

PASSES = shell.ROOT / "passes"
RUN, BECOMES, DOTS = "// meshwork-opt ", "// becomes", "..."
NAME = r"%[A-Za-z0-9_$.-]+"


def descriptions():
    """(name of the pass, its description)"""
    for path in sorted(PASSES.rglob("Passes.td")):
        for name, body in re.findall(r'def \w+ : Pass<"([a-z0-9-]+)"(.*?)\n}', path.read_text(), re.S):
            yield name, body


def example(body):
    """Options, what goes in, lines that come out; None where a description has no example that runs."""
    for block in re.findall(r"```mlir\n(.*?)```", body, re.S):
        lines = [line.strip() for line in block.strip().splitlines()]
        if lines[0].startswith(RUN) and BECOMES in lines:
            at = lines.index(BECOMES)
            return shlex.split(lines[0].removeprefix(RUN)), "\n".join(lines[1:at]), lines[at + 1:]
    return None


class Lines:
    """Finds an example's lines in an output; names of values are bound as they appear."""

    def __init__(self, output):
        self.output = [" ".join(line.split()) for line in output.splitlines() if line.strip()]

    def pattern(self, line, bound):
        """`line` with the names that are bound; a group for each new one."""
        new, parts = [], []
        for part in re.split(rf"({NAME}|\.\.\.)", " ".join(line.split())):
            if part == DOTS:
                parts.append(".*?")
            elif not part.startswith("%"):
                parts.append(re.escape(part))
            elif part in bound:
                parts.append(re.escape(bound[part]))
            elif part in new:
                parts.append(f"(?P=n{new.index(part)})")
            else:
                parts.append(f"(?P<n{len(new)}>{NAME})")
                new.append(part)
        return re.compile("".join(parts)), new

    def follow(self, lines, at, isNext, bound):
        """Whether the lines stand from `at` on, the first of them there if `isNext`."""
        if not lines:
            return True
        if lines[0] == DOTS:
            return self.follow(lines[1:], at, False, bound)
        pattern, new = self.pattern(lines[0], bound)
        for i in range(at, min(at + 1, len(self.output)) if isNext else len(self.output)):
            found = pattern.fullmatch(self.output[i])
            if found and self.follow(lines[1:], i + 1, True,
                                     {**bound, **{name: found[f"n{k}"] for k, name in enumerate(new)}}):
                return True
        return False

    def have(self, lines):
        return self.follow(lines, 0, False, {})


class Descriptions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)

    def run_on(self, options, text):
        path = self.space.path / "example.mlir"
        path.write_text(text)
        return self.space.run("meshwork-opt", path, *options)

    def test_the_example_of_each_pass(self):
        """Without the pass it must fail: an example that shows nothing proves nothing."""
        for name, body in descriptions():
            with self.subTest(name):
                found = example(body)
                self.assertIsNotNone(found, "no example that runs")
                options, text, lines = found
                done = self.run_on(options, text)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(Lines(done.stdout).have(lines), "\n".join(["expected", *lines, "in", done.stdout]))
                others = [x for x in options if x.split("=")[0] != f"-{name}"]
                self.assertLess(len(others), len(options), options)
                without = self.run_on(others, text)
                self.assertFalse(without.returncode == 0 and Lines(without.stdout).have(lines), without.stdout)

    def test_examples_of_the_dialects_are_read(self):
        for path in sorted((shell.ROOT / "dialects").glob("*/README.md")):
            for text in re.findall(r"```mlir\n(.*?)```", path.read_text(), re.S):
                with self.subTest(path, text=text):
                    done = self.run_on([], text)
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_lines_are_found_as_they_are_written(self):
        lines = Lines("a %0 = f %x\n  b %1 = g %0\nend")
        for good in (["a %p = f %q", "b %r = g %p"], ["a ... %x", DOTS, "end"], ["end"], ["b %r = g %p", "end"]):
            self.assertTrue(lines.have(good), good)
        for wrong in (["a %p = f %q", "b %r = g %r"], ["a %p = f %q", "end"], ["b %r = h %p"], ["f"]):
            self.assertFalse(lines.have(wrong), wrong)


if __name__ == "__main__":
    unittest.main()
