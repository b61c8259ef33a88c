"""The guide is true: its commands run, its changes of a model compile and train, its links and keys exist."""
import json
import re
import unittest

import shell
from test_readme import shell_lines

PAGES = sorted((shell.ROOT / "docs").glob("*.md"))
MODEL = "examples/llama-tiny.json"
# What a row of the table of strategies needs that it does not say again.
BESIDE = {"zero.weights": "zero.stage=3", "zero.gradients": "zero.stage=2", "zero.gathered": "zero.stage=3",
          "residual_sequence": 'mesh.axes=["tp=2"]', "zb-h1": 'mesh.axes=["pp=4", "dp=2"]',
          "recompute.policy": 'expect.memory_per_rank="1 GiB"', "zero.stage": 'mesh.axes=["dp=2"]', "zero.axes": "zero.stage=3",
          "zero.gathered = [": 'mesh.axes=["dp=2", "fsdp=2"]'}
OTHER_MODELS = {"experts": "examples/mixtral-tiny.json", "pipeline.": "examples/llama-30m.json"}  # four layers or more
UNPRINTED = 'pipeline.schedule = "1f1b"'  # the effective spec leaves this default out
DATA = ("--data", "README.md", "--tokenizer", "bytes")


def changes(text):
    """Heading -> lines that go, lines that come, of each ```diff block."""
    found = {}
    for section in text.split("\n## ")[1:]:
        for block in re.findall(r"^```diff\n(.*?)^```", section, re.M | re.S):
            lines = block.splitlines()
            found[section.splitlines()[0]] = [[line[1:] for line in lines if line.startswith(sign)] for sign in "-+"]
    return found


class Guide(unittest.TestCase):
    cost_s = 60

    def setUp(self):
        self.space = shell.Shell()
        self.addCleanup(self.space.close)
        for name in ("docs", "CONTRIBUTING.md"):
            (self.space.path / name).symlink_to(shell.ROOT / name)

    def test_commands_run_as_they_stand(self):
        ran = 0
        for page in PAGES:
            for line in shell_lines(page.read_text()):
                if not line.startswith("build/bin/"):
                    continue  # of clusters.md, for other hosts
                with self.subTest(page=page.name, line=line):
                    done = self.space.run(line)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                ran += 1
        self.assertGreater(ran, 30)

    def imported(self):
        self.space.must("meshwork", "import", MODEL, "-o", "mine.mlir")
        return self.space.path / "mine.mlir"

    def changed(self, going, coming):
        path = self.imported()
        text = path.read_text()
        old = "".join(line + "\n" for line in going)
        self.assertEqual(text.count(old), 1, old)
        path.write_text(text.replace(old, "".join(line + "\n" for line in coming)))

    def train(self, name):
        self.space.must("meshwork", "compile", "mine.mlir", "--spec", "examples/dp2.toml", "-o", "mine.mwplan")
        self.space.must("meshwork-run", "mine.mwplan", *DATA, "--steps", "8", "--lr", "3e-3", "--metrics", f"{name}.jsonl")
        return [json.loads(line) for line in (self.space.path / f"{name}.jsonl").read_text().splitlines()]

    def test_changes_of_a_model(self):
        found = changes((shell.ROOT / "docs/models.md").read_text())
        self.assertEqual(len(found), 6, list(found))
        self.imported()
        usual = self.train("usual")
        for i, (heading, (going, coming)) in enumerate(found.items()):
            with self.subTest(heading):
                self.changed(going, coming)
                lines = self.train(i)
                self.assertLess(lines[-1]["loss"], lines[0]["loss"])
                self.assertNotEqual([line["loss"] for line in lines], [line["loss"] for line in usual], "it changes nothing")
                self.space.must("meshwork", "verify", "mine.mlir", "--spec", "examples/tp2-sp.toml", "--by-running")

    def test_the_second_loss_and_the_frozen_part_do_what_they_say(self):
        found = changes((shell.ROOT / "docs/models.md").read_text())
        self.changed(*found["A second loss"])
        values = [line["penalty"] for line in self.train("penalty")]
        self.assertAlmostEqual(values[0] / (256 * 64 * 0.02 ** 2), 1, delta=0.1)
        self.changed(*found["A frozen part"])
        self.train("frozen")
        plan = json.loads(self.space.must("meshwork", "explain", "mine.mwplan", "--json").stdout)
        self.imported()
        self.train("all")
        whole = json.loads(self.space.must("meshwork", "explain", "mine.mwplan", "--json").stdout)
        optimizer = [p["memory_per_rank_bytes"]["optimizer"] for p in (plan, whole)]
        self.assertLess(*optimizer)

    def test_each_strategy_is_in_force(self):
        """What the table says to write compiles, beside what it needs, and the effective spec has it."""
        text = (shell.ROOT / "docs/strategies.md").read_text()
        rows = [row.split(" | ") for row in re.findall(r"^\| (.*) \|$", text.split("## Each strategy")[1], re.M)[2:]]
        self.assertGreater(len(rows), 14)
        for name, keys, *_ in rows:
            settings = re.findall(r"`([a-z_.]+ = [^`]+)`", keys)
            self.assertGreater(len(settings), 0, name)
            model = next((model for word, model in OTHER_MODELS.items() if word in keys), MODEL)
            needed = [more for word, more in BESIDE.items() if word in keys]
            sets = [part for line in [*needed, *settings] for part in ("--set", line.replace(" = ", "="))]
            with self.subTest(name):
                spec = ("--spec", "examples/dp1.toml", "--set", "batch.global=64", "--set", "batch.micro=1", *sets)
                told = self.space.must("meshwork", "compile", model, *spec, "--print-config").stdout
                self.space.must("meshwork", "compile", model, *spec, "--estimate")
                for line in set(settings) - {UNPRINTED}:
                    self.assertIn("\n" + line.split(".", 1)[1] + "  #", told, line)

    def test_the_whole_spec_compiles(self):
        [text] = re.findall(r"^```toml\n(.*?)^```", (shell.ROOT / "docs/strategies.md").read_text(), re.M | re.S)
        (self.space.path / "whole.toml").write_text(text)
        model = ("examples/large/llama-3.1-8b.json", "--spec", "whole.toml")
        self.space.must("meshwork", "compile", *model, "--estimate")
        told = self.space.must("meshwork", "compile", *model, "--print-config").stdout
        for key, value in re.findall(r"^(\w+) = (.*?)(?:  +#.*)?$", text, re.M):
            if f"{key} = {value}" != 'schedule = "1f1b"':  # the effective spec leaves this default out
                self.assertRegex(told, rf"(?m)^{key} = {re.escape(value)}(\s|$)")

    def test_keys_that_it_names_are_there(self):
        spec = (shell.ROOT / "lib/Spec/README.md").read_text()
        names = set()
        for page in PAGES:
            names |= set(re.findall(r"`((?:mesh|batch|zero|shard|pipeline|recompute|context|experts|offload|overlap|target)\.\w+)[ `]",
                                    page.read_text()))
        self.assertGreater(len(names), 15)
        for name in names - {"shard.residual_sequence", "shard.experts"}:
            self.assertIn(name, spec)


if __name__ == "__main__":
    unittest.main()
