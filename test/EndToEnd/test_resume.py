"""Runs that stop and go on: on the same mesh the bits of a run that never stopped, on
another one the same states; what is damaged is passed over, another model refused."""
import functools
import json
import pathlib
import random
import shutil
import subprocess
import unittest

import checkpoints
from job import MPIRUN
from shell import BIN, DATA, ENVIRONMENT, NO_INPUT, TIMEOUT_S, USAGE, Shell

TEST = pathlib.Path(__file__).resolve().parents[1]
LLAMA, GPT2 = "examples/llama-tiny.json", "examples/gpt2-tiny.json"
TOKENS = ["--data", "README.md", "--tokenizer", "bytes"]
TOTAL, STOP = 23, 3
SEQUENCE = 64  # of examples/dp2.toml
SCHEDULE = ["--schedule", "cosine", "--warmup-steps", "5", "--decay-steps", str(TOTAL), "--lr", "0.003"]

# Each value of each column is there with some of each other's.
SAME = {
    "adamw": (LLAMA, 'mesh.axes=["dp=2"]', 'precision.compute="f32"', "zero.stage=1"),
    "clipped": (LLAMA, 'mesh.axes=["tp=2"]', "optimizer.clip_grad_norm=0.1", 'precision.compute="bf16"'),
    "momentum": (LLAMA, 'mesh.axes=["dp=2"]', 'optimizer.kind="sgd"', "optimizer.momentum=0.9",
                 'precision.compute="bf16"', "zero.stage=3"),
    "lion": (LLAMA, 'mesh.axes=["dp=2"]', 'optimizer.kind="lion"', 'precision.compute="bf16"',
             'precision.rounding="stochastic"', "zero.stage=2"),
    "dropout": ("dropout.json", 'mesh.axes=["dp=2"]', 'precision.compute="bf16"', 'precision.rounding="stochastic"'),
    "documents": (LLAMA, 'mesh.axes=["dp=1"]', 'precision.compute="f32"', 'batch.documents="separate"',
                  'batch.positions="document"', "batch.document_end_loss=false"),
}
OVER_MPI = ("adamw", "lion", "dropout")


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shell = Shell()

    @classmethod
    def tearDownClass(cls):
        cls.shell.close()

    def compile(self, name, model, *settings):
        options = [word for one in settings for word in ("--set", one)]
        self.shell.must("meshwork", "compile", model, "--spec", "examples/dp2.toml", "--set", "batch.global=8",
                        *options, "-o", f"{name}.mwplan")
        return f"{name}.mwplan"

    def train(self, plan, *arguments, mpi=0):
        if not mpi:
            return self.shell.must("meshwork-run", plan, *TOKENS, *arguments).stdout
        done = subprocess.run([*MPIRUN, "-n", str(mpi), str(BIN / "meshwork-run"), plan, *TOKENS, *map(str, arguments)],
                              cwd=self.shell.path, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S,
                              stdin=subprocess.DEVNULL, env=ENVIRONMENT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def refuse(self, code, needles, plan, *arguments):
        self.shell.refuse(code, needles, "meshwork-run", plan, *TOKENS, *arguments)

    def metrics(self, name):
        lines = [json.loads(line) for line in self.shell.read(name).splitlines()]
        return [[line[key] for key in ("step", "loss", "grad_norm", "lr", "tokens")] for line in lines]

    def bytes(self, name):
        return (self.shell.path / name).read_bytes()

    def folder(self, name):
        return self.shell.path / name

    def states(self, folder):
        """Of its newest checkpoint, all checked."""
        return checkpoints.read(checkpoints.complete(self.folder(folder))[0])

    def assertSame(self, ours, theirs):
        self.assertEqual(set(ours), set(theirs))
        for key, values in ours.items():
            self.assertEqual(values.tobytes(), theirs[key].tobytes(), key)


class SameMesh(Case):
    cost_s = 30

    def testBitsOfARunThatNeverStopped(self):
        config = json.loads((self.folder(GPT2)).read_text())
        self.shell.write("dropout.json", json.dumps({**config, "resid_pdrop": 0.1, "embd_pdrop": 0.1,
                                                     "attn_pdrop": 0.1}))
        for name, (model, *settings) in SAME.items():
            plan = self.compile(name, model, *settings)
            options = [*SCHEDULE, "--seed", "5"]
            if name == "documents":
                options += ["--document-end", "10"]
            self.train(plan, *options, "--steps", TOTAL, "--save", f"{name}.st", "--metrics", f"{name}.jsonl")
            self.train(plan, *options, "--steps", STOP, "--checkpoint", name, "--metrics", f"{name}-parts.jsonl")
            for mpi in (0, 2) if name in OVER_MPI else (0,):
                parts = f"{name}-{mpi}.jsonl"
                shutil.copy(self.folder(f"{name}-parts.jsonl"), self.folder(parts))
                out = self.train(plan, *options, "--steps", TOTAL, "--resume", name, "--save", f"{name}-{mpi}.st",
                                 "--metrics", parts, mpi=mpi)
                self.assertIn(f"resumed from \"{name}/step-000000000{STOP}\": {STOP} steps, {8 * STOP} samples", out)
                self.assertNotIn(" was ", out)
                self.assertEqual(self.metrics(parts), self.metrics(f"{name}.jsonl"), name)
                self.assertEqual(self.bytes(f"{name}-{mpi}.st"), self.bytes(f"{name}.st"), name)

    def testAutoGoesOnInItsFolder(self):
        plan = self.compile("auto", LLAMA)
        whole = ["--checkpoint", "auto", "--checkpoint-every", 2, "--resume", "auto"]
        out = self.train(plan, "--steps", 4, *whole, "--init", self.weights(plan))
        self.assertIn("no checkpoint in 'auto' yet", out)
        out = self.train(plan, "--steps", 7, *whole, "--init", "weights.st", "--save", "auto.st")
        self.assertIn('resumed from "auto/step-0000000004"', out)
        self.train(plan, "--steps", 7, "--init", "weights.st", "--save", "once.st")
        self.assertEqual(self.bytes("auto.st"), self.bytes("once.st"))
        # All steps are behind it: nothing is trained, and what is asked for is written.
        out = self.train(plan, "--steps", 5, *whole, "--save", "again.st", "--metrics", "none.jsonl")
        self.assertEqual(self.bytes("again.st"), self.bytes("once.st"))
        self.assertEqual(self.shell.read("none.jsonl"), "")
        self.assertEqual(self.states("auto")[0]["step"], 7)
        self.refuse(USAGE, ["--save-gradients needs a step", "has 7 of --steps 5 behind it"], plan, "--steps", 5,
                    "--resume", "auto/step-0000000007", "--save-gradients", "g.st")

    def weights(self, plan):
        self.train(plan, "--steps", 1, "--seed", 77, "--save", "weights.st")
        return "weights.st"


class OtherMesh(Case):
    """The states are the same to the bit; losses differ by the order of sums."""
    cost_s = 40
    MESHES = {
        "dp4": ['mesh.axes=["dp=4"]', "batch.global=24", "batch.micro=3", "zero.stage=3"],
        "tp2": ['mesh.axes=["tp=2"]', "batch.global=24", "batch.micro=8", 'shard.heads=["tp"]', 'shard.ffn=["tp"]',
                'shard.kv_heads=["tp"]', 'shard.vocab=["tp"]'],
        "dp3": ['mesh.axes=["dp=3"]', "batch.global=24", "batch.micro=2", "zero.stage=1", 'overlap.collectives="never"'],
        "dp2tp4": ['mesh.axes=["dp=2","tp=4"]', "batch.global=24", "batch.micro=12", "zero.stage=2",
                   'shard.ffn=["tp"]', 'shard.vocab=["tp"]', 'recompute.policy="full"'],
        "one": ['mesh.axes=["dp=1"]', "batch.global=24", "batch.micro=24"],
    }

    def assertClose(self, ours, theirs, plan):
        """Metrics after a resume from the folder `theirs`, against those of `plan`, which trained on from it.

        A sum of n terms in any order is the exact sum of terms that are each changed by n roundings
        at most, and by sqrt(n) of them as a rule. So another mesh does to a step what a change of
        that size in all weights does, and a few such runs tell how far apart losses may be: the
        longest sums are over a batch's tokens, in gradients."""
        ours, known, allowed = self.metrics(f"{ours}.jsonl"), self.metrics(f"{theirs}.jsonl"), 0
        changed = self.changed(theirs, plan, len(known))
        for one, other, *runs in zip(ours, known, *changed, strict=True):
            self.assertEqual((one[0], one[3:]), (other[0], other[3:]))
            allowed = max(allowed, *(abs(run[1] - other[1]) for run in runs), 2.0 ** -22 * other[1])
            self.assertLess(abs(one[1] - other[1]), 4 * allowed)

    @functools.cache
    def changed(self, folder, plan, steps):
        """Metrics of runs from copies of the checkpoint with weights that are a little other."""
        terms, found = self.states(folder)[0]["samples"] / STOP * SEQUENCE, []
        for seed in range(3):
            copy, log = self.folder(f"{folder}-changed{seed}"), f"{folder}-changed{seed}.jsonl"
            checkpoints.change(checkpoints.complete(self.folder(folder))[0], copy, "weight",
                               terms ** 0.5 * 2.0 ** -24, seed)
            self.train(plan, "--steps", STOP + steps, "--resume", copy, "--metrics", log)
            found.append(self.metrics(log))
        return found

    def testStatesMoveFromMeshToMesh(self):
        plans = {name: self.compile(name, LLAMA, 'precision.compute="f32"', *settings)
                 for name, settings in self.MESHES.items()}
        self.train(plans["dp4"], "--steps", STOP, "--checkpoint", "dp4")
        first, before = self.states("dp4"), "dp4"
        self.train(plans["dp4"], "--steps", STOP + 4, "--resume", "dp4", "--metrics", "dp4.jsonl")
        for name in list(plans)[1:]:
            out = self.train(plans[name], "--steps", STOP, "--resume", before, "--checkpoint", name)
            self.assertNotIn(" was ", out)
            manifest, states = self.states(name)
            self.assertSame(states, first[1])
            self.assertEqual([manifest[key] for key in ("step", "updates", "samples")], [STOP, STOP, 24 * STOP])
            self.train(plans[name], "--steps", STOP + 4, "--resume", name, "--metrics", f"{name}.jsonl")
            self.assertClose(name, "dp4", plans["dp4"])
            before = name

    def testPrecisionMayChange(self):
        f32 = self.compile("f32", LLAMA, 'precision.compute="f32"')
        bf16 = self.compile("bf16", LLAMA, 'precision.compute="bf16"', "zero.stage=1")
        drawn = self.compile("drawn", LLAMA, 'precision.compute="bf16"', 'precision.rounding="stochastic"')
        self.train(f32, "--steps", STOP, "--checkpoint", "f32")
        out = self.train(bf16, "--steps", STOP, "--resume", "f32", "--checkpoint", "bf16")
        self.assertIn('precision.compute was "f32", is "bf16"\n', out)
        self.assertSame(self.states("bf16")[1], self.states("f32")[1])
        self.train(drawn, "--steps", STOP + 1, "--resume", "bf16", "--checkpoint", "drawn")
        self.train(f32, "--steps", STOP + 1, "--resume", "drawn", "--checkpoint", "back")
        states = self.states("drawn")[1]
        self.assertSame(self.states("back")[1],
                        {key: values for key, values in states.items() if key[1] != "rounded_weight"})
        # Weights that were drawn are read, not drawn again.
        self.train(drawn, "--steps", STOP + 1, "--resume", "drawn", "--checkpoint", "same")
        self.assertSame(self.states("same")[1], states)

    def testRandomSpecs(self):
        """Models under random specs, each resumed by the next; the last trains on as the first does."""
        dice = random.Random(13)
        for model in (LLAMA, GPT2):
            names = [f"random{number}{pathlib.Path(model).stem}" for number in range(4)]
            plans = [self.compile(name, model, *self.drawn(dice)) for name in names]
            for name, plan, before in zip(names, plans, [None, *names]):
                self.train(plan, "--steps", STOP, *(["--resume", before] if before else []), "--checkpoint", name)
                if before:
                    self.assertSame(self.states(name)[1], self.states(before)[1])
            for name, plan in ((names[0], plans[0]), (names[-1], plans[-1])):
                self.train(plan, "--steps", STOP + 2, "--resume", name, "--metrics", f"{name}.jsonl")
            self.assertClose(names[-1], names[0], plans[0])

    @staticmethod
    def drawn(dice):
        data, tensor = dice.choice((1, 2, 3)), dice.choice((1, 2, 3, 4))
        whole = dice.sample(("ffn", "vocab"), dice.randrange(2)) + (["heads", "kv_heads"] if tensor > 2 else [])
        context = dice.choice(("ring", "gathered", "")) if data * tensor < 4 else ""
        return [f'mesh.axes=["dp={data}","cp={2 if context else 1}","tp={tensor}"]', "batch.global=12",
                *([f'context.method="{context}"', 'context.layout="zigzag"'] if context else []),
                f"batch.micro={dice.choice((1, 2, 4) if data == 3 else (1, 2, 3, 6))}",
                *(f"shard.{dim}=[]" for dim in whole), f"zero.stage={dice.randrange(4)}",
                f'recompute.policy="{dice.choice(("none", "full"))}"', 'precision.compute="f32"',
                f'overlap.collectives="{dice.choice(("auto", "never"))}"']

    def testPartsInTwoPieces(self):
        """A parameter that ranks split like a sequence in zigzag: each holds two ranges of it."""
        text = (TEST / "Equivalence" / "split_sequence.mlir.in").read_text()
        self.shell.write("split.mlir", text.replace("SEQUENCE", "16").replace("VOCABULARY", "256"))
        split = ['shard.sequence=["cp"]', 'context.layout="zigzag"']
        plans = {name: self.compile(name, "split.mlir", "batch.sequence=16", "batch.micro=4",
                                    'precision.compute="f32"', *settings)
                 for name, settings in {"cp2": ['mesh.axes=["cp=2"]', *split], "cp3": ['mesh.axes=["cp=3"]', *split],
                                        "zero": ['mesh.axes=["dp=2","cp=2"]', "zero.stage=2", *split],
                                        "block": ['mesh.axes=["cp=2"]', 'shard.sequence=["cp"]'],
                                        "alone": ['mesh.axes=["dp=1"]']}.items()}
        self.train(plans["cp2"], "--steps", STOP, "--checkpoint", "cp2")
        self.train(plans["cp2"], "--steps", STOP + 2, "--resume", "cp2", "--metrics", "cp2.jsonl", "--save", "on.st")
        self.train(plans["cp2"], "--steps", STOP + 2, "--save", "once.st")
        self.assertEqual(self.bytes("on.st"), self.bytes("once.st"))
        states, before = self.states("cp2")[1], "cp2"
        self.assertIn(("own.weight", "first_moment"), states)
        for name in ("cp3", "alone", "zero", "block", "cp2"):
            self.train(plans[name], "--steps", STOP, "--resume", before, "--checkpoint", f"{name}-too")
            self.assertSame(self.states(f"{name}-too")[1], states)
            before = f"{name}-too"
        self.train(plans["cp3"], "--steps", STOP + 2, "--resume", "cp2", "--metrics", "cp3.jsonl")
        self.assertClose("cp3", "cp2", plans["cp2"])


class Damage(Case):
    def setUp(self):
        self.plan = self.compile("two", LLAMA)
        shutil.rmtree(self.folder("kept"), ignore_errors=True)
        for steps in (2, 4, 6):
            self.train(self.plan, "--steps", steps, "--checkpoint", "kept", "--resume", "auto", "--seed", 3)

    def flip(self, file, at):
        path = self.folder(file)
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    def testTheOneBeforeIsTaken(self):
        if not self.folder("kept/step-0000000004").exists():
            self.skipTest("two are kept")
        self.train(self.plan, "--steps", 8, "--resume", "kept/step-0000000004", "--seed", 3, "--save", "right.st")
        self.flip("kept/step-0000000006/states-00001.safetensors", -1)
        for mpi in (2, 0):
            more = [] if mpi else ["--checkpoint", "kept"]
            out = self.train(self.plan, "--steps", 8, "--resume", "kept", "--seed", 3, "--save", "w.st", *more, mpi=mpi)
            self.assertIn("checkpoint step-0000000006 is damaged and passed over: tensor ", out)
            self.assertIn("step-0000000006/states-00001.safetensors\": bytes 0 to ", out)
            self.assertIn('resumed from "kept/step-0000000004"', out)
            self.assertEqual(self.bytes("w.st"), self.bytes("right.st"))
        # It was newer than where the run went on, and is nobody's now.
        self.assertIn('now called "kept/replaced-step-0000000006"', out)
        self.assertEqual(self.states("kept")[0]["step"], 8)
        self.assertTrue(self.folder("kept/replaced-step-0000000006/manifest.json").exists())

    def testNoneIsGood(self):
        for step in self.folder("kept").glob("step-*"):
            (step / "states-00000.safetensors").unlink()
        self.refuse(DATA, ["no checkpoint is good", "states-00000.safetensors\": cannot open"], self.plan,
                    "--steps", 8, "--resume", "kept", "--seed", 3)
        for step in self.folder("kept").glob("step-*"):
            (step / "manifest.json").unlink()
        self.refuse(NO_INPUT, ["holds no checkpoint", "its save was cut off"], self.plan, "--steps", 8,
                    "--resume", "kept", "--seed", 3)

    def testOlderByName(self):
        out = self.train(self.plan, "--steps", 5, "--resume", "kept/step-0000000004", "--checkpoint", "kept")
        self.assertIn("--seed was 3, is 0", out)
        self.assertIn("is newer, and now called", out)
        self.assertEqual(self.states("kept")[0]["step"], 5)


class Refused(Case):
    def testWhatIsOfAnotherModel(self):
        plan = self.compile("llama", LLAMA)
        self.train(plan, "--steps", 1, "--checkpoint", "kept")
        other = self.compile("gpt2", GPT2)
        self.refuse(DATA, ["of another model", 'missing: "', "and ", " more; not in the plan: \"model."], other,
                    "--steps", 2, "--resume", "kept")
        lion = self.compile("lion", LLAMA, 'optimizer.kind="lion"')
        self.refuse(DATA, ["states of another optimizer", 'not kept by the plan: "first_moment" of "',
                           "give it to --init"], lion, "--steps", 2, "--resume", "kept")
        config = json.loads((pathlib.Path(self.shell.path) / LLAMA).read_text())
        self.shell.write("other.json", json.dumps({**config, "rope_theta": 123.0}))
        changed = self.compile("changed", "other.json")
        self.refuse(DATA, ["of another model, whose parameters are the same: it has "], changed, "--steps", 2,
                    "--resume", "kept")
        self.shell.write("wider.json", json.dumps({**config, "intermediate_size": 192}))
        wider = self.compile("wider", "wider.json")
        self.refuse(DATA, ["of another shape: ", '"model.layers.0.mlp.down_proj.weight" is [64,176] in the checkpoint'],
                    wider, "--steps", 2, "--resume", "kept")

    def testChangedOptionsAreNamed(self):
        plan = self.compile("plain", LLAMA)
        self.train(plan, "--steps", 1, "--checkpoint", "changed", "--lr", "0.001")
        more = self.compile("more", LLAMA, "batch.global=16", "optimizer.beta1=0.8", 'mesh.axes=["dp=4"]')
        out = self.train(more, "--steps", 2, "--resume", "changed", "--lr", "0.0005", "--seed", 4)
        told = [line for line in out.splitlines() if " was " in line]
        self.assertEqual(told, ["--lr was 0.001, is 0.0005", "--seed was 0, is 4", "batch.global was 8, is 16",
                                "optimizer.beta1 was 0.9, is 0.8"])

    def testDataThatWasReplacedIsNamed(self):
        """Under the same path. Checkpoints of releases that did not keep what tells it are taken as they are."""
        plan = self.compile("data", LLAMA)
        text = self.shell.read("README.md")
        self.shell.write("text", text)
        run = ["meshwork-run", plan, "--data", "text", "--tokenizer", "bytes", "--resume", "auto", "--checkpoint", "data"]
        self.shell.must(*run, "--steps", 1)
        self.assertNotIn(" was ", self.shell.must(*run, "--steps", 2).stdout)
        self.shell.write("text", text.replace("the", "tha"))
        count = len(text.encode())
        self.assertRegex(self.shell.must(*run, "--steps", 3).stdout,
                         rf"(?m)^content of --data was {count} tokens, fingerprint \w{{16}}, is {count} tokens, fingerprint ")
        newest = checkpoints.complete(self.folder("data"))[0]
        found = checkpoints.manifest(newest)
        del found["options"]["content of --data"]
        checkpoints.seal(newest, found)
        self.shell.write("text", text)
        self.assertNotIn(" was ", self.shell.must(*run, "--steps", 4).stdout)

    def testWhatIsCalledLikeACheckpointIsNamed(self):
        """And nothing begins anew over it."""
        plan = self.compile("links", LLAMA)
        for newest, told in (("/nowhere", 'is a symbolic link to "/nowhere", which cannot be found'),
                             ("../README.md", "is a file, expected the folder of a checkpoint")):
            shutil.rmtree(self.folder("links"), ignore_errors=True)
            self.folder("links").mkdir()
            (self.folder("links") / "step-0000000003").symlink_to(newest)
            done = self.shell.refuse(DATA, ["no checkpoint is good", told], "meshwork-run", plan, *TOKENS,
                                     "--steps", "4", "--checkpoint", "links", "--resume", "auto")
            self.assertNotIn("yet", done.stderr)
            self.assertEqual([path.name for path in self.folder("links").iterdir()], ["step-0000000003"])
        self.train(plan, "--steps", 2, "--checkpoint", "links")
        out = self.train(plan, "--steps", 4, "--checkpoint", "links", "--resume", "auto")
        self.assertIn("checkpoint step-0000000003 is damaged and passed over: ", out)
        self.assertIn('resumed from "links/step-0000000002"', out)
        self.assertTrue((self.folder("links") / "replaced-step-0000000003").is_symlink())

    def testAnotherReleasesFormatIsNotPassedOver(self):
        """It is good, and the one before it would undo what was trained."""
        plan = self.compile("later", LLAMA)
        self.train(plan, "--steps", 2, "--checkpoint", "later", "--checkpoint-every", 1)
        newest = checkpoints.complete(self.folder("later"))[0]
        checkpoints.seal(newest, {**checkpoints.manifest(newest), "version": 3})
        for place, more in (("later", []), ("auto", ["--checkpoint", "later"])):
            self.refuse(DATA, [newest.name, "has version 3, this release reads 1 to 2"], plan, "--steps", 3,
                        "--resume", place, *more)
        self.assertEqual(sorted(path.name for path in self.folder("later").iterdir()),
                         ["step-0000000001", "step-0000000002"])

    def testWrongUse(self):
        plan = self.compile("use", LLAMA)
        for option in ("--resume", "--checkpoint", "--save"):
            self.refuse(USAGE, [option, "expected a name"], plan, "--steps", 1, option, "")
        self.refuse(NO_INPUT, ["README.md", "expected a folder of checkpoints"], plan, "--steps", 1, "--resume",
                    "README.md")
        self.refuse(USAGE, ["--resume auto", "--checkpoint, which is not given"], plan, "--steps", 1,
                    "--resume", "auto")
        self.refuse(USAGE, ["--resume and --init exclude each other"], plan, "--steps", 1, "--resume", "x", "--init", "y")
        self.refuse(NO_INPUT, ["nowhere"], plan, "--steps", 1, "--resume", "nowhere")

    def testInitTakesWeightsAlone(self):
        plan = self.compile("init", LLAMA)
        self.train(plan, "--steps", 3, "--checkpoint", "from", "--save", "w.st")
        for place in ("from", "from/step-0000000003"):
            self.train(plan, "--steps", 0, "--init", place, "--save", "again.st")
            self.assertEqual(self.bytes("again.st"), self.bytes("w.st"))
        for source in ("w.st", "from"):
            self.train(plan, "--steps", 2, "--init", source, "--metrics", f"{source}.jsonl")
        self.assertEqual(self.metrics("from.jsonl"), self.metrics("w.st.jsonl"))
        self.assertEqual(self.metrics("from.jsonl")[0][0], 0)


if __name__ == "__main__":
    unittest.main()
