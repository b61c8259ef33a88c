"""Inputs that people give by mistake are named as what they are, with what to do; outputs cost no input and no
other output, and a run that cannot begin leaves none."""
import json
import os
import unittest

import shell

MODEL, SPEC = "examples/llama-tiny.json", "examples/dp1.toml"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 4096\n"


class Mistakes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)
        cls.space.must("meshwork", "compile", MODEL, "--spec", SPEC, "-o", "tiny.mwplan")

    def train(self, *options, plan="tiny.mwplan", data="README.md"):
        return ("meshwork-run", plan, "--data", data, "--tokenizer", "bytes", "--steps", 1, *options)

    def nothing_written(self):
        names = [p.name for p in self.space.path.iterdir() if p.name.startswith(("none", "-"))]
        self.assertEqual(names, [])

    def test_data_that_is_likely_wrong_is_told_before_the_first_step(self):
        config = json.loads((shell.ROOT / MODEL).read_text())
        self.space.write("wide.json", json.dumps({**config, "vocab_size": 32000}))
        self.space.must("meshwork", "compile", "wide.json", "--spec", SPEC, "-o", "wide.mwplan")
        done = self.space.must(*self.train(plan="wide.mwplan"))
        self.assertIn("meshwork-run: warning: --data \"README.md\": --tokenizer bytes makes ids from 0 to 255; the "
                      "model's vocabulary is 32000", done.stderr)
        self.assertEqual(self.space.must(*self.train()).stderr, "")
        self.space.write("ids.npy", b"\x93NUMPY\1\0" + bytes(10000))
        self.space.refuse(shell.DATA, ["is a NumPy array (.npy)", "numpy.load"], "meshwork-run", "tiny.mwplan",
                          "--data", "ids.npy", "--data-type", "u16", "--steps", 1)

    def test_a_run_that_cannot_begin_leaves_nothing(self):
        self.space.write("short.txt", "ab")
        for data, code in (("none.txt", shell.NO_INPUT), ("short.txt", shell.DATA)):
            self.space.refuse(code, [data], *self.train("--metrics", "none.jsonl", data=data))
        for option in ("--metrics", "--save", "--trace", "--checkpoint"):
            self.space.refuse(shell.USAGE, [option, "same file"], *self.train(option, "none.txt", data="none.txt"))
            if option != "--save":
                self.space.refuse(shell.USAGE, ["one file"], *self.train(option, "none", "--save", "none"))
        self.nothing_written()

    def test_no_output_lies_in_a_checkpoint(self):
        self.space.must(*self.train("--checkpoint", "kept"))
        manifest = (self.space.path / "kept/step-0000000001/manifest.json").read_bytes()
        for name in ("manifest.json", "new"):
            for more in ((), ("--checkpoint", "kept", "--resume", "auto")):
                self.space.refuse(shell.USAGE, ["--save", "into the checkpoint"],
                                  *self.train("--save", f"kept/step-0000000001/{name}", *more))
        self.assertEqual((self.space.path / "kept/step-0000000001/manifest.json").read_bytes(), manifest)
        self.space.must(*self.train("--save", "kept/weights.safetensors"))

    def test_a_run_reads_and_writes_files_alone(self):
        for option in ("--metrics", "--save", "--save-gradients", "--trace", "--profile-json", "--checkpoint"):
            self.space.refuse(shell.USAGE, [f'{option} "-"', "stdout"], *self.train(option, "-"))
        self.space.refuse(shell.USAGE, ['--data "-"', "stdin"], *self.train(data="-"))
        self.space.refuse(shell.USAGE, ['--init "-"', "stdin"], *self.train("--init", "-"))
        self.space.refuse(shell.USAGE, ['"-"'], "meshwork-run", "--measure-machine", "-")
        self.nothing_written()

    def test_outputs_of_the_compiler(self):
        base = ("meshwork", "compile", MODEL, "--spec")
        self.space.write("none-machine.toml", (shell.ROOT / "examples/machines/cpu.toml").read_text())
        spec = (shell.ROOT / SPEC).read_text()
        self.space.write("my.toml", f'{spec}\n[target]\nmachine = "none-machine.toml"\n')
        self.space.refuse(shell.USAGE, ["a file of the spec"], *base, "my.toml", "-o", "none-machine.toml")
        self.space.refuse(shell.USAGE, ["the spec"], *base, "my.toml", "-o", "x.mwplan", "--reproducer", "my.mlir")
        for option in ("--reproducer", "--dump-phases"):
            self.space.refuse(shell.USAGE, [option], *base, SPEC, "-o", "x.mwplan", option, "-")
        self.space.refuse(shell.USAGE, ["both", "stdin"], "meshwork", "compile", "-", "--spec", "-", "-o", "x.mwplan")
        self.space.refuse(shell.USAGE, ["standard output"],
                          f"build/bin/meshwork import {MODEL} -o out.mlir > out.mlir")
        os.remove(self.space.path / "none-machine.toml")

    def test_models_that_are_elsewhere(self):
        for name, text, said in (("lfs.json", POINTER, "git lfs pull"), ("page.json", "<!doctype html>\n", "web page")):
            self.space.refuse(shell.DATA, [said], "meshwork", "import", self.space.write(name, text))
        for plan, said in ((MODEL, "not a plan but JSON"), ("page.json", "truncated"), ("README.md", "but text")):
            self.space.refuse(shell.DATA, [said], "meshwork", "verify", plan)
        self.space.refuse(shell.NO_INPUT, ["hf download org/tiny"], "meshwork", "import", "org/tiny")
        repository = self.space.path / "hub" / "models--org--tiny"
        for folder in ("blobs", "snapshots/c0ffee", "refs"):
            (repository / folder).mkdir(parents=True)
        blob = repository / "blobs" / ("0" * 40)
        blob.write_text((shell.ROOT / MODEL).read_text())
        (repository / "snapshots/c0ffee/config.json").symlink_to(f"../../blobs/{blob.name}")
        (repository / "refs/main").write_text("c0ffee")
        taken = self.space.must("meshwork", "import", "hub/models--org--tiny").stdout
        self.assertEqual(taken.splitlines()[1:], self.space.must("meshwork", "import", MODEL).stdout.splitlines()[1:])
        self.space.refuse(shell.DATA, ["models--org--tiny", "name one"], "meshwork", "import", "hub")

    def test_links_out_of_a_folder_are_followed_on_request(self):
        self.space.must("meshwork-run", "tiny.mwplan", "--steps", 0, "--save", "first.safetensors")
        (self.space.path / "linked").mkdir()
        (self.space.path / "linked" / "part").symlink_to("../first.safetensors")
        with open(self.space.path / "first.safetensors", "rb") as file:
            names = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        self.space.write("linked/model.safetensors.index.json",
                         json.dumps({"weight_map": {n: "part" for n in names if n != "__metadata__"}}))
        start = ("meshwork-run", "tiny.mwplan", "--steps", 0, "--save", "second.safetensors", "--init", "linked")
        self.space.refuse(shell.DATA, ["is a symbolic link", "--follow-links"], *start)
        self.space.must(*start, "--follow-links")
        self.assertEqual(*[(self.space.path / f"{n}.safetensors").read_bytes() for n in ("first", "second")])
        self.space.refuse(shell.USAGE, ["first.safetensors", "overwrite"], "meshwork-run", "tiny.mwplan", "--steps", 0,
                          "--save", "first.safetensors", "--init", "linked", "--follow-links")


if __name__ == "__main__":
    unittest.main()
