"""What `meshwork compile` offers beside a plan."""
import hashlib
import json
import pathlib
import re
import unittest

import shell

PHASES = ("input", "step", "shard", "partition", "pipeline", "recompute", "fuse", "schedule", "memory")
MODEL = "examples/gpt2-tiny.json"
SPEC = "examples/dp2.toml"


def without_causes(text):
    """Causes tell of annotations, which are kept beside the IR and not in its text."""
    return re.sub(r'cause "[^"]*"( layer \d+| for "[^"]*"| why "[^"]*"| by \[[^\]]*\])*', "cause", text).strip()


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

    def test_a_folder_stands_for_its_config(self):
        """A repository's, and a snapshot of the Hub's cache, whose files are links to blobs."""
        config = (shell.ROOT / MODEL).read_text()
        blob = "0123456789abcdef" * 2 + "01234567"
        (self.space.path / "repository").mkdir()
        self.space.write("repository/config.json", config)
        for part in ("blobs", "snapshots/c0ffee"):
            (self.space.path / "hub" / part).mkdir(parents=True)
        self.space.write(f"hub/blobs/{blob}", config)
        snapshot = self.space.path / "hub/snapshots/c0ffee"
        (snapshot / "config.json").symlink_to(f"../../blobs/{blob}")
        models = set()
        for folder in ("repository", "repository/", "hub/snapshots/c0ffee"):
            text = self.space.must("meshwork", "import", folder).stdout
            models.add(text.split("\n", 1)[1])  # the first line names the file
            self.space.must("meshwork", "compile", folder, "--spec", SPEC, "-o", "f.mwplan")
        self.assertEqual(len(models), 1)
        (snapshot / "config.json").unlink()
        (snapshot / "config.json").symlink_to(shell.ROOT / MODEL)
        self.space.refuse(shell.DATA, ["is a symbolic link", "config.json"], "meshwork", "compile",
                          "hub/snapshots/c0ffee", "--spec", SPEC, "-o", "f.mwplan")
        self.space.refuse(shell.DATA, ["hub/blobs", "without a config.json"], "meshwork", "import",
                          "hub/blobs")

    def test_equal_input_gives_equal_bytes(self):
        digests = set()
        for name in ("first.mwplan", "second.mwplan"):
            self.compile("-o", name)
            digests.add(hashlib.sha256((self.space.path / name).read_bytes()).hexdigest())
        self.assertEqual(len(digests), 1)

    def test_compile_to_each_phase(self):
        marks = {"input": "transformer.", "step": "@update", "shard": "mesh.shardings", "partition": "mesh.all_reduce",
                 "pipeline": "@microbatch", "recompute": "#transformer.pass<recomputed>",
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
        folder = self.space.path / "phases"
        folder.mkdir()
        self.space.write("victim", "precious")
        (folder / f"3-{PHASES[3]}.mlir").symlink_to("../victim")  # a name that nobody gave
        self.compile("--dump-phases=phases", "-o", "dumped.mwplan")
        self.assertEqual(self.space.read("victim"), "precious")
        names = sorted(p.name for p in (self.space.path / "phases").iterdir())
        self.assertEqual(names, [f"{i}-{phase}.mlir" for i, phase in enumerate(PHASES)])
        whole = self.compile("--compile-to=memory").stdout
        self.assertEqual(self.space.read("phases/8-memory.mlir"), whole)

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
        # Two parameters of one name.
        text = self.space.must("meshwork", "import", MODEL).stdout
        self.space.write("bad.mlir", text.replace('"wpe.weight"', '"wte.weight"'))
        done = self.space.refuse(
            shell.DATA, ["meshwork-opt --run-reproducer again.mlir"], "meshwork", "compile",
            "bad.mlir", "--spec", SPEC, "--reproducer", "again.mlir", "-o", "none.mwplan")
        self.assertFalse((self.space.path / "none.mwplan").exists())
        again = self.space.run("meshwork-opt", "--run-reproducer", "again.mlir")
        self.assertNotEqual(again.returncode, 0)
        first = next(line for line in done.stderr.splitlines() if "error:" in line)
        self.assertEqual(done.stderr.count(first), 1)  # The run that makes the reproducer says nothing.
        self.assertIn(first.split("error:", 1)[1].strip(), again.stderr)

    def test_what_the_model_shows_is_told_at_the_line_of_the_spec(self):
        self.space.write("bad.toml", """[mesh]
axes = ["dp=2", "tp=3"]
[batch]
global = 4
micro = 2
sequence = 16
[[shard.tensor]]
name = "h.0.mlp.c_fc.wieght"
dims = '[{}, {}]'
[[shard.tensor]]
name = "wpe.weight"
dims = '[{"pt"}, {}]'
""")
        done = self.space.refuse(shell.SPEC, [
            "bad.toml:2:8: error: shard.heads: parameter 'h.0.attn.c_attn.weight': dim 'heads' of size 4 cannot be "
            "split over axis 'tp' of size 3",
            "bad.toml:7:1: error: shard.tensor: no parameter is named 'h.0.mlp.c_fc.wieght'; did you mean "
            '"h.0.mlp.c_fc.weight"?',
            "bad.toml:10:1: error: shard.tensor: pin 'wpe.weight' of parameter 'wpe.weight': names axis \"pt\"",
        ], "meshwork", "compile", MODEL, "--spec", "bad.toml", "-o", "x.mwplan")
        self.assertEqual(done.stderr.count("error:"), 3, done.stderr)
        self.space.refuse(shell.SPEC, [
            f"--set batch.sequence=100000: error: batch.sequence: found 100000, but the model has"],
            "meshwork", "compile", MODEL, "--spec", SPEC, "--set", "batch.sequence=100000", "-o", "x.mwplan")
        self.assertFalse((self.space.path / "x.mwplan").exists())
        self.assertFalse((self.space.path / "x.mwplan.reproducer.mlir").exists())

    def losses(self, model, spec, name):
        self.space.must("meshwork", "compile", model, "--spec", self.space.write(name + ".toml", spec), "-o",
                        name + ".mwplan")
        (self.space.path / f"{name}.jsonl").unlink(missing_ok=True)  # metrics append
        self.space.must("meshwork-run", name + ".mwplan", "--data", "README.md", "--tokenizer", "bytes", "--steps", "3",
                        "--lr", "1e-2", "--threads", "1", "--metrics", name + ".jsonl")
        return [json.loads(line)["loss"] for line in self.space.read(name + ".jsonl").splitlines()]

    def test_blocks_of_sequences_and_other_losses_train_as_on_one_rank(self):
        """Between the tokens of two samples in a block lie those of other ranks."""
        batch = "[batch]\nglobal = 8\nmicro = 4\nsequence = 16\n[precision]\ncompute = \"f32\"\n"
        one = '[mesh]\naxes = []\n' + batch
        text = self.space.must("meshwork", "import", MODEL).stdout
        self.assertIn("return %loss", text)
        squared = self.space.write("squared.mlir", text.replace(
            "return %loss", "%square = transformer.mul %loss, %loss : tensor<f32>, tensor<f32> -> tensor<f32>\n"
            "return %square"))
        wholes = {model: self.losses(model, one, "one") for model in (MODEL, squared)}
        # The mean of the squares of two microbatches, which are much alike.
        self.assertAlmostEqual(wholes[squared][0] / wholes[MODEL][0] ** 2, 1, delta=1e-2)
        for model, mesh in ((MODEL, '["x=2"]\n[shard]\nresidual_sequence = ["x"]'),
                            (MODEL, '["tp=2"]\n[shard]\nvocab = []\nresidual_sequence = ["tp"]'),
                            (squared, '["tp=2"]\n[shard]\nresidual_sequence = ["tp"]')):
            with self.subTest(mesh):
                found = self.losses(model, batch.replace("[batch]", f"[mesh]\naxes = {mesh}\n[batch]"), "many")
                for a, b in zip(found, wholes[model], strict=True):
                    self.assertAlmostEqual(a / b, 1, delta=1e-5)

    def test_a_pipeline_can_be_scaled_down_to_one_rank(self):
        """Whatever order and number of stages more ranks would have: the plan is that of one rank."""
        def compiled(name, *settings):
            options = [part for setting in settings for part in ("--set", setting)]
            self.space.must("meshwork", "compile", MODEL, "--spec", "examples/pp2.toml", "--set", "mesh.axes=[\"pp=1\"]",
                            *options, "-o", name)
            return json.loads(self.space.must("meshwork", "explain", name, "--json").stdout)
        layers = json.loads((shell.ROOT / MODEL).read_text())["n_layer"]
        plain = compiled("plain.mwplan", "pipeline.schedule=1f1b")
        for settings in (("pipeline.schedule=zb-h1", "pipeline.virtual_stages=1"),
                         ("pipeline.schedule=interleaved-1f1b", f"pipeline.layers=[1, {layers - 1}]"),
                         ("pipeline.schedule=zb-v",), ("pipeline.schedule=auto",)):
            with self.subTest(settings):
                other = compiled("other.mwplan", *settings)
                for key in ("memory_per_rank_bytes", "schedule", "collectives", "estimate"):
                    self.assertEqual(other[key], plain[key])
        for words, setting in (("expected the model's", f"pipeline.layers=[1, {layers}]"),
                               ("found 3 virtual stages a rank, expected 2", "pipeline.virtual_stages=3")):
            self.space.refuse(shell.SPEC, [words], "meshwork", "compile", MODEL, "--spec", "examples/pp2.toml", "--set",
                              "mesh.axes=[\"pp=1\"]", "--set", "pipeline.schedule=zb-v", "--set", setting,
                              "-o", "x.mwplan")

    def test_stages_that_a_schedule_makes_need_layers(self):
        self.space.refuse(shell.SPEC, ["pipeline.schedule: the pipeline has 4 stages (2 on each of 2 ranks), and the "
                                       "model 2 layers", "at most 2 stages"], "meshwork", "compile",
                          "examples/llama-tiny.json", "--spec", "examples/pp2.toml", "--set",
                          "pipeline.schedule=interleaved-1f1b", "-o", "x.mwplan")

    def test_key_heads_that_ranks_do_not_divide_can_be_whole(self):
        config = json.loads((shell.ROOT / "examples/llama-tiny.json").read_text())
        config |= {"num_attention_heads": 6, "num_key_value_heads": 3, "hidden_size": 96}
        config.pop("head_dim", None)
        self.space.write("six.json", json.dumps(config))
        command = ("meshwork", "compile", "six.json", "--spec", SPEC, "--set", 'mesh.axes=["tp=2"]', "-o", "six.mwplan")
        done = self.space.refuse(shell.SPEC, ["an axis of 1 or 3 ranks would divide it; or write shard.kv_heads = []"],
                                 *command)
        advice = done.stderr.split("or write ")[1].split(",")[0].replace(" = ", "=")
        self.space.must(*command, "--set", advice)
        self.space.must("meshwork-run", "six.mwplan", "--validate-only")

    def test_a_plan_has_names_and_no_paths(self):
        """Equal files elsewhere give equal bytes."""
        plans = []
        for folder in ("here", "there/deeper"):
            (self.space.path / folder).mkdir(parents=True)
            for name, source in (("m.json", MODEL), ("s.toml", SPEC)):
                text = (shell.ROOT / source).read_text()
                pin = '[[shard.tensor]]\nname = "wpe.weight"\ndims = "[{}, {}]"\n' if name == "s.toml" else ""
                self.space.write(f"{folder}/{name}", text + pin)
            self.space.must("meshwork", "compile", f"{folder}/m.json", "--spec", f"{folder}/s.toml", "-o", "p.mwplan")
            plans.append((self.space.path / "p.mwplan").read_bytes())
        self.assertEqual(*plans)
        self.assertNotIn(b"there/deeper", plans[1])

    def test_no_axes_are_one_rank(self):
        self.compile("--set", "mesh.axes=[]", "-o", "one.mwplan")
        self.space.must("meshwork-run", "one.mwplan", "--validate-only")

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
