"""What `meshwork compile` offers beside a plan."""
import hashlib
import pathlib
import re
import unittest

import shell

PHASES = ("input", "step", "shard", "partition", "recompute", "fuse", "schedule", "memory")
MODEL = "examples/gpt2-tiny.json"
SPEC = "examples/dp2.toml"


def without_causes(text):
    """Causes tell of annotations, which are kept beside the IR and not in its text."""
    return re.sub(r'cause "[^"]*"', "cause", text).strip()


class Compile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)

    def compile(self, *options):
        return self.space.must("meshwork", "compile", MODEL, "--spec", SPEC, *options)

    def test_print_config_is_a_spec_that_means_the_same(self):
        printed = self.compile("--print-config", "--set", "optimizer.beta2=0.99").stdout
        self.assertIn("beta2 = 0.99", printed)
        self.assertIn("--set", printed)  # where it comes from
        self.assertIn(SPEC, printed)
        self.space.write("full.toml", printed)
        self.compile("--set", "optimizer.beta2=0.99", "-o", "a.mwplan")
        self.space.must("meshwork", "compile", MODEL, "--spec", "full.toml", "-o", "b.mwplan")
        # All but where in the user's files a key stands.
        a, b = (self.space.must("meshwork", "explain", n, "--schedule").stdout
                for n in ("a.mwplan", "b.mwplan"))
        self.assertEqual(a, b)

    def test_equal_input_gives_equal_bytes(self):
        digests = set()
        for name in ("first.mwplan", "second.mwplan"):
            self.compile("-o", name)
            digests.add(hashlib.sha256((self.space.path / name).read_bytes()).hexdigest())
        self.assertEqual(len(digests), 1)

    def test_compile_to_each_phase(self):
        marks = {"input": "transformer.", "step": "@update", "shard": "mesh.shardings", "partition": "mesh.all_reduce",
                 "recompute": "transformer.recomputed",
                 "fuse": "transformer.fused", "schedule": "schedule.program",
                 "memory": "arena"}
        for phase, mark in marks.items():
            text = self.compile(f"--compile-to={phase}").stdout
            self.assertIn(mark, text, phase)
        self.space.refuse(shell.USAGE, ["frontend", *PHASES], "meshwork", "compile", MODEL,
                          "--spec", SPEC, "--compile-to=frontend")

    def test_each_phase_reads_back(self):
        for phase in PHASES:
            self.compile(f"--compile-to={phase}", "-o", f"{phase}.mlir")
            self.space.must("meshwork-opt", f"{phase}.mlir")

    def test_dump_phases_writes_one_file_a_phase(self):
        self.compile("--dump-phases=phases", "-o", "dumped.mwplan")
        names = sorted(p.name for p in (self.space.path / "phases").iterdir())
        self.assertEqual(names, [f"{i}-{phase}.mlir" for i, phase in enumerate(PHASES)])
        whole = self.compile("--compile-to=memory").stdout
        self.assertEqual(self.space.read("phases/7-memory.mlir"), whole)

    def test_the_dumped_pipeline_repeats_each_phase(self):
        done = self.compile("--dump-pass-pipeline", "--timing", "-o", "timed.mwplan")
        self.compile("--dump-phases=repeat", "-o", "timed.mwplan")
        for number, phase in enumerate(PHASES):
            self.assertRegex(done.stderr, rf"(?m)^{phase} +[0-9.]+ ms$")
            passes = re.search(rf"(?m)^{phase}: (.*)$", done.stderr)[1]
            if number == 0:
                continue
            again = self.space.must("meshwork-opt", f"--pass-pipeline={passes}",
                                    f"repeat/{number - 1}-{PHASES[number - 1]}.mlir")
            self.assertEqual(without_causes(again.stdout),
                             without_causes(self.space.read(f"repeat/{number}-{phase}.mlir")),
                             phase)

    def test_a_failed_phase_leaves_a_reproducer(self):
        # More tokens than the model has positions.
        self.space.must("meshwork", "import", MODEL, "-o", "good.mlir")
        done = self.space.refuse(
            shell.DATA, ["meshwork-opt --run-reproducer again.mlir"], "meshwork", "compile",
            "good.mlir", "--spec", SPEC, "--set", "batch.sequence=100000", "--reproducer",
            "again.mlir", "-o", "none.mwplan")
        self.assertFalse((self.space.path / "none.mwplan").exists())
        again = self.space.run("meshwork-opt", "--run-reproducer", "again.mlir")
        self.assertNotEqual(again.returncode, 0)
        first = next(line for line in done.stderr.splitlines() if "error:" in line)
        self.assertIn(first.split("error:", 1)[1].strip(), again.stderr)

    def test_models_from_a_pipe(self):
        text = self.space.must("meshwork", "import", MODEL).stdout
        self.space.write("piped.mlir", text)
        self.space.must(f"build/bin/meshwork compile - --spec {SPEC} -o - < piped.mlir > out.mwplan")
        self.space.must("meshwork-run", "out.mwplan", "--validate-only")

    def test_exit_codes(self):
        refuse, space = self.space.refuse, self.space
        out = ("-o", "x.mwplan")
        refuse(shell.USAGE, [], "meshwork", "compile", MODEL, "--spec", SPEC)  # no output
        refuse(shell.USAGE, [], "meshwork", "frobnicate")
        refuse(shell.USAGE, [], "meshwork", "compile", MODEL, "--spec", SPEC, "--fast", *out)
        refuse(shell.NO_INPUT, ["absent.json"], "meshwork", "compile", "absent.json", "--spec",
               SPEC, *out)
        refuse(shell.NO_INPUT, ["absent.toml"], "meshwork", "compile", MODEL, "--spec",
               "absent.toml", *out)
        refuse(shell.SPEC, ["batch.mikro", "micro"], "meshwork", "compile", MODEL, "--spec", SPEC,
               "--set", "batch.mikro=1", *out)
        refuse(shell.CANNOT_CREATE, ["absent/x"], "meshwork", "compile", MODEL, "--spec", SPEC,
               "-o", "absent/x.mwplan")
        space.write("bad.json", "{")
        refuse(shell.DATA, ["bad.json"], "meshwork", "import", "bad.json", "-o", "y.mlir")
        self.assertFalse(pathlib.Path(space.path / "x.mwplan").exists())


if __name__ == "__main__":
    unittest.main()
