"""Texts, files and limits that are out to break the compiler's tools: each ends with its
exit code and a message, in bounded time, and costs no file."""
import os
import pathlib
import signal
import subprocess
import unittest

import shell

MODEL, SPEC = "examples/llama-tiny.json", "examples/dp2.toml"
RESOURCES, IO, INTERNAL = 71, 74, 70

DOUBLING = "".join(f"!a{i} = tuple<!a{i - 1}, !a{i - 1}>\n" for i in range(1, 41))
CHAIN = "".join(f"!a{i} = tuple<!a{i - 1}>\n" for i in range(1, 100000))
TEXTS = {  # and what the message says
    "module { // >>>\n" * 20000: "nests brackets deeper than 256",
    '"x"() : ' + "() -> (" * 200000: "nests brackets deeper than 256",
    "module attributes {a = " + "1" * 100000 + "} {}": "more than 1000 digits",
    "#m = affine_map<(d0) -> (" + "-" * 1000000 + "d0)>\n": "reading it ended by signal 11",
    "#m = affine_map<(d0) -> (" + "d0 + " * 1000000 + "d0)>\n": "reading it",
    f"!a0 = i32\n{DOUBLING}func.func private @f(!a40)\n": "reading it takes more than",
    f"!a0 = i32\n{CHAIN}func.func private @f(!a99999)\n": "reading it ended by signal 11",
    "ML\xefR": "bytecode",
    "module { \x1b[2J\x9b }": "\\x1b[2J",
}


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)

    def refuse(self, code, needles, *command):
        """Besides: a short message that no terminal obeys."""
        done = self.space.refuse(code, needles, *command)
        self.assertLess(len(done.stderr), 4000)
        self.assertNotIn("\x1b", done.stderr)
        return done

    def compile(self, model, spec=SPEC, *options):
        return ("meshwork", "compile", model, "--spec", spec, "-o", "none.mwplan", *options)

    def nothing_written(self):
        names = [p.name for p in self.space.path.iterdir() if p.name.startswith("none")]
        self.assertEqual(names, [])

    def test_models(self):
        for text, said in TEXTS.items():
            with self.subTest(text[:40]):
                self.space.write("bad.mlir", text.encode("latin-1"))
                self.refuse(shell.DATA, [said], *self.compile("bad.mlir"))
        self.nothing_written()

    def test_meshwork_opt_is_guarded_too(self):
        deep, affine, doubling = (list(TEXTS)[i] for i in (0, 3, 5))
        for text in (deep, affine, doubling):
            self.space.write("bad.mlir", text)
            self.space.refuse(shell.DATA, ["bad.mlir"], "meshwork-opt", "bad.mlir")

    def test_what_is_no_file(self):
        os.mkfifo(self.space.path / "fifo")
        for path, kind in (("fifo", "a pipe"), ("/dev/zero", "a device"), (".", "a folder")):
            self.refuse(shell.DATA, [kind], *self.compile(path))
            self.refuse(shell.DATA, [kind], *self.compile(MODEL, path))
            self.refuse(shell.DATA, [kind], "meshwork", "import", path)
            self.refuse(shell.DATA, [kind], "meshwork-opt", path)
            self.refuse(shell.DATA, [], "meshwork", "verify", path)
        self.refuse(shell.DATA, ["at most"], "build/bin/meshwork compile - --spec " + SPEC +
                    " -o none.mwplan < /dev/zero")

    def test_specs(self):
        mesh = '[mesh]\naxes = ["dp=2"]\n[batch]\nglobal = 2\nmicro = 1\nsequence = 8\n'
        for more, said in (("a." * 20000 + "a = 1\n", "16 parts"), ("a = " + "[" * 100000, "16 levels"),
                           ('"\\u001b[2J" = 1\n', "\\x1b[2J")):
            self.space.write("bad.toml", mesh + more)
            self.refuse(shell.SPEC, [said], *self.compile(MODEL, "bad.toml"))
        self.refuse(shell.SPEC, ["\\x1b[2J"], *self.compile(MODEL, SPEC, "--set", "x\x1b[2J=1"))
        pin = 'shard.tensor=[{name="*", dims="' + "[" * 50000 + '"}]'
        self.space.refuse(shell.SPEC, ["50000 bytes, expected at most 1024"], *self.compile(MODEL, SPEC, "--set", pin))
        self.refuse(shell.USAGE, ["\\x1b[2J"], "meshwork", "\x1b[2J")
        self.refuse(shell.USAGE, ["\\x1b[2J"], "meshwork", "verify", "a", "\x1b[2J")
        self.refuse(shell.NO_INPUT, ["\\x1b[2J"], "meshwork", "verify", "\x1b[2J")

    def test_a_sequence_of_any_length_compiles_as_fast(self):
        self.space.write("one.toml", '[mesh]\naxes = ["dp=1"]\n[batch]\nglobal = 1\nmicro = 1\n'
                         "sequence = 2147483647\n")
        done = self.space.run("bash", "-c", f"ulimit -v 4000000; build/bin/meshwork compile {MODEL} "
                              "--spec one.toml --compile-to=schedule -o long.mlir")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_stdout_that_takes_nothing(self):
        space = self.space
        space.must(*self.compile(MODEL)[:-1], "good.mwplan")
        space.must("meshwork", "import", MODEL, "-o", "good.mlir")
        for command in (f"import {MODEL}", f"compile --spec {SPEC} --print-config",
                        f"compile {MODEL} --spec {SPEC} --compile-to=input",
                        f"compile {MODEL} --spec {SPEC} -o -", "explain good.mwplan",
                        "explain good.mwplan --json", "verify good.mwplan", "--version", "compile --help"):
            for where in ("/dev/full", "&-"):
                with self.subTest(command, where=where):
                    self.refuse(IO, ["cannot write to stdout"], f"build/bin/meshwork {command} >{where}")
        self.refuse(IO, ["cannot write to stdout"], "build/bin/meshwork-opt good.mlir >/dev/full")
        # What is written must not land in a file that took the number of stderr.
        space.run(f"build/bin/meshwork compile {MODEL} --spec {SPEC} --timing -o closed.mwplan 2>&- <&-")
        self.assertEqual((space.path / "closed.mwplan").read_bytes(),
                         (space.path / "good.mwplan").read_bytes())

    def test_outputs_that_cannot_be_written(self):
        space = self.space
        space.write("old.mwplan", "old")
        # Its kernels are linked in files that are smaller than the plan.
        limited = f"ulimit -f 56; build/bin/meshwork compile examples/llama-30m.json --spec {SPEC} -o "
        self.refuse(IO, ["old.mwplan"], limited + "old.mwplan")
        self.assertEqual(space.read("old.mwplan"), "old")
        self.refuse(IO, ["0-input"], limited.replace("56", "4") + "old.mwplan --dump-phases=none-dump")
        self.assertEqual(list((space.path / "none-dump").iterdir()), [])
        (space.path / "none-dump").rmdir()
        self.assertEqual([p.name for p in space.path.iterdir() if p.name.startswith("old")], ["old.mwplan"])
        device = os.stat("/dev/full")
        for command in (f"compile {MODEL} --spec {SPEC} -o /dev/full", f"import {MODEL} -o /dev/full",
                        f"compile {MODEL} --spec {SPEC} -o x.mwplan --reproducer /dev/full"):
            self.refuse(shell.CANNOT_CREATE, ["/dev/full", "a device"], f"build/bin/meshwork {command}")
        space.must("meshwork", "import", MODEL, "-o", "good.mlir")
        self.refuse(shell.CANNOT_CREATE, ["/dev/full"], "meshwork-opt", "good.mlir", "-o", "/dev/full")
        self.assertEqual(os.stat("/dev/full"), device)
        space.must("meshwork-opt", "good.mlir", "-o", "/dev/null")

    def test_outputs_that_are_inputs(self):
        space = self.space
        model = (space.path / MODEL).read_text()
        space.write("my.json", model)
        space.write("my.toml", space.read(SPEC))
        os.link(space.path / "my.json", space.path / "hard.json")
        (space.path / "soft.toml").symlink_to("my.toml")
        base = ("meshwork", "compile", "my.json", "--spec", "my.toml", "-o")
        for output in ("my.json", "./hard.json", "soft.toml"):
            self.refuse(shell.USAGE, [output, "overwrite"], *base, output)
        self.refuse(shell.USAGE, ["overwrite"], *base, "x.mwplan", "--reproducer", "hard.json")
        self.refuse(shell.USAGE, ["one file"], *base, "x.mwplan", "--reproducer", "x.mwplan")
        self.refuse(shell.USAGE, ["overwrite"], "meshwork", "import", "my.json", "-o", "hard.json")
        space.must("meshwork", "import", "my.json", "-o", "0-input.mlir")
        self.refuse(shell.USAGE, ["overwrite"], "meshwork", "compile", "0-input.mlir", "--spec", "my.toml",
                    "--dump-phases=.", "-o", "x.mwplan")
        self.assertEqual(space.read("my.json"), model)

    def test_modes_and_links_stay(self):
        space = self.space
        space.write("private.mwplan", "")
        os.chmod(space.path / "private.mwplan", 0o600)
        (space.path / "link.mwplan").symlink_to("private.mwplan")
        space.must(*self.compile(MODEL)[:-1], "link.mwplan")
        self.assertTrue((space.path / "link.mwplan").is_symlink())
        self.assertEqual((space.path / "private.mwplan").stat().st_mode & 0o777, 0o600)
        space.must("meshwork", "verify", "private.mwplan")

    def test_too_little_memory(self):
        codes = []
        for kilobytes in (250000, 300000, 350000, 400000, 500000, 560000, 700000):
            done = self.space.run(f"ulimit -v {kilobytes}; build/bin/meshwork compile {MODEL} --spec {SPEC} "
                                  "-o none.mwplan")
            codes.append(done.returncode)
            if done.returncode == RESOURCES:
                self.assertIn("not enough memory", done.stderr)
            else:
                self.assertIn(done.returncode, (0, 127), done.stderr)  # 127: the loader could not begin
        self.assertIn(RESOURCES, codes)
        pathlib.Path(self.space.path / "none.mwplan").unlink(missing_ok=True)

    def interrupted(self, number, *options):
        """A compilation whose process gets a signal in the middle of its work."""
        command = [shell.BIN / "meshwork", *self.compile(MODEL, SPEC, "--timing", *options)[1:]]
        with subprocess.Popen(command, cwd=self.space.path, stderr=subprocess.PIPE, text=True) as parent:
            while not parent.stderr.readline().startswith("memory"):
                self.assertIsNone(parent.poll())
            children = pathlib.Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text()
            os.kill(int(children), number)
            said = parent.stderr.read()
        self.nothing_but_reproducers()
        return parent.returncode, said

    def nothing_but_reproducers(self):
        for path in self.space.path.iterdir():
            if path.name.startswith("none"):
                self.assertIn(".reproducer.", path.name)

    def test_a_crash_leaves_a_reproducer(self):
        machine = self.space.write("m.toml", (shell.ROOT / "examples" / "machines" / "xeon-2.toml").read_text()
                                   .replace("f32 = 250e9", "f32 = 251e9"))
        self.space.write("victim", "precious")
        for end in ("toml", "json", "machine.toml"):
            (self.space.path / f"none.mwplan.reproducer.{end}").symlink_to("victim")
        code, said = self.interrupted(signal.SIGSEGV, "--set", f"target.machine={machine}")
        self.assertEqual(self.space.read("victim"), "precious")
        self.assertEqual(code, INTERNAL, said)
        (self.space.path / "m.toml").unlink()
        line = said.rsplit("repeat it with: ", 1)[1].strip()
        self.space.must(f"build/bin/{line}")  # It was our signal, and no fault.
        self.space.must("meshwork", "verify", line.split()[-1])
        self.assertIn("f32 = 2.51e+11", self.space.must("meshwork", "explain", line.split()[-1], "--json").stdout)
        for path in self.space.path.glob("none*"):
            path.unlink()

    def test_a_reproducer_has_the_table_of_a_pipeline(self):
        self.space.must("meshwork", "schedule", "gpipe", "--stages", 2, "--microbatches", 2, "--csv", "t.csv")
        _, said = self.interrupted(signal.SIGSEGV, "--set", "mesh.axes=[\"pp=2\"]", "--set", "batch.global=2", "--set",
                                   "batch.micro=1", "--set", f"pipeline.schedule={self.space.path / 't.csv'}")
        (self.space.path / "t.csv").unlink()
        line = said.rsplit("repeat it with: ", 1)[1].strip()
        self.assertIn("reproducer.schedule.csv", line)
        self.assertNotIn("machine.toml", line)
        self.space.must(f"build/bin/{line}")
        for path in self.space.path.glob("none*"):
            path.unlink()

    def test_a_kill_is_told(self):
        code, said = self.interrupted(signal.SIGKILL)
        self.assertEqual(code, RESOURCES, said)
        self.assertIn("memory", said)


if __name__ == "__main__":
    unittest.main()
