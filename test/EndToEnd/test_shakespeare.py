"""examples/shakespeare: its picture is of the numbers beside it, its report says what differs, and where TRANSFORMERS_PYTHON
has the libraries, both programs take the same first steps."""
import json
import math
import os
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree as xml

import shell

FOLDER = shell.ROOT / "examples" / "shakespeare"
PYTHON = os.environ.get("TRANSFORMERS_PYTHON", "")
STEPS, EVERY = 40, 10


class Shakespeare(unittest.TestCase):
    cost_s = 20

    def setUp(self):
        self.space = shell.Shell()
        self.addCleanup(self.space.close)

    def script(self, name, *arguments, python=sys.executable):
        done = subprocess.run([python, str(FOLDER / name), *map(str, arguments)], cwd=self.space.path, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check_picture(self, text):
        """Five curves; nothing is drawn outside of the page, and legends fit."""
        svg = xml.fromstring(text)
        width, height = float(svg.get("width")), float(svg.get("height"))
        curves = [one for one in svg if one.tag.endswith("polyline")]
        self.assertEqual(len(curves), 5)
        for curve in curves:
            for point in curve.get("points").split():
                x, y = map(float, point.split(","))
                self.assertTrue(0 <= x <= width and 0 <= y <= height, point)
        for words in (one for one in svg if one.tag.endswith("text") and one.get("text-anchor") == "start"):
            self.assertLess(float(words.get("x")) + 7.5 * len(words.text), width, words.text)

    def test_runs_as_the_readme_calls_it(self):
        self.assertTrue(os.access(FOLDER / "run.py", os.X_OK))

    def test_the_picture_is_of_the_kept_losses(self):
        self.script("picture.py", FOLDER / "losses.json", "drawn.svg")
        drawn = self.space.read("drawn.svg")
        self.assertEqual(drawn, (FOLDER / "loss.svg").read_text())
        self.check_picture(drawn)

    def test_a_readme_says_the_kept_numbers(self):
        kept, text = json.loads((FOLDER / "losses.json").read_text()), (FOLDER / "README.md").read_text()
        for name in ("training", "held_out"):
            self.assertIn(f"{kept[name]['largest']:.2f}", text)
        for rate in kept["tokens_per_s"].values():
            self.assertIn(f"{rate:.0f}", text)

    def test_a_report_says_what_differs(self):
        (self.space.path / "run").mkdir()
        losses = [8 - math.log(1 + step) for step in range(STEPS)]
        for name, extra in (("meshwork", {17: 0.5, 33: -0.75}), ("pytorch", {})):
            lines = [{"step": step, "loss": loss + extra.get(step, 0)} for step, loss in enumerate(losses)]
            lines += [{"step": step - 1, "eval_loss": 5 + extra.get(17, 0) / step} for step in range(EVERY, STEPS, EVERY)]
            self.space.write(f"run/{name}.jsonl", "".join(json.dumps(line) + "\n" for line in lines[:-1]))
        self.script("run.py", "text.txt", "-o", "run", "--only", "report", "--report", ".", "--steps", STEPS)
        kept = json.loads(self.space.read("losses.json"))
        self.assertEqual(kept["training"], {"largest": 0.75, "step": 33, "mean": round(-0.25 / STEPS, 6)})
        self.assertEqual(kept["held_out"], {"largest": 0.05, "step": 10, "mean": 0.0375})
        self.assertEqual(kept["difference"], [[0, 0], [10, 0.5], [20, 0], [30, -0.75]])
        self.assertAlmostEqual(kept["pytorch"]["loss"][1][1], sum(losses[10:20]) / 10, delta=1e-5)
        self.check_picture(self.space.read("loss.svg"))

    def test_both_programs_take_the_same_steps(self):
        if not PYTHON or subprocess.run([PYTHON, "-c", "import tokenizers, transformers"], capture_output=True, cwd="/").returncode:
            self.skipTest("no Transformers; TRANSFORMERS_PYTHON may name a Python that has them")
        self.space.write("text.txt", (shell.ROOT / "LICENSE").read_text() * 8)
        options = ["text.txt", "-o", "run", "--python", PYTHON, "--bin", shell.BIN, "--steps", 5, "--every", 2]
        for stage in ("prepare", "meshwork", "pytorch", "report"):
            self.script("run.py", *options, "--only", stage, "--report", ".")
        told = {name: [json.loads(line) for line in self.space.read(f"run/{name}.jsonl").splitlines()] for name in ("meshwork", "pytorch")}
        for name, count in (("loss", 5), ("eval_loss", 3), ("eval_targets", 3)):
            ours, theirs = ([line[name] for line in told[one] if name in line] for one in ("meshwork", "pytorch"))
            self.assertEqual(len(ours), count)
            for one, other in zip(ours, theirs, strict=True):
                self.assertAlmostEqual(one / other, 1, delta=1e-5)
        self.assertRegex(self.script("run.py", *options, "--only", "text"), r"(?s)ROMEO:.{20}")


if __name__ == "__main__":
    unittest.main()
