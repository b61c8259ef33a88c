"""Tokens of several files: a step's loss is that of the windows that the oracle says, on any mesh, resumed with another
batch, under MPI; and what is refused."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import numpy as np

import configs
import models
import oracle
import philox
import tools
import torch

F32 = 1e-5
SEQUENCE, BATCH = 23, 6
SIZES = (700, 150, 60)
MPIRUN = ("mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2")
# Sources, each of files; options beside.
CASES = (([[0], [1], [2]], []), ([[0], [1], [2]], ["--order", "epochs"]),
         ([[0], [1, 2]], ["--order", "epochs", "--data-weights", "1,3"]), ([[0], [2]], ["--data-weights", "0.25,0.75"]))


class Sources(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)
        cls.ids = [configs.corpus(length=size, seed=size) for size in SIZES]
        cls.folder = pathlib.Path(cls.space.file(".data"))
        cls.folder.mkdir()
        cls.files = []
        for name, ids in zip("abc", cls.ids):
            cls.files.append(str(cls.folder / f"{name}.bin"))
            ids.astype(np.uint16).tofile(cls.files[-1])
        cls.weights = models.random_weights(configs.GPT2, 17)
        cls.init = cls.space.save_weights(cls.weights)

    def plan(self, axes=("dp=1",), batch=BATCH, micro=2, **sections):
        return self.space.compile(configs.GPT2, tools.spec(batch, micro, SEQUENCE, mesh={"axes": list(axes)}, **sections))

    def named(self, sources):
        """A pattern where a source has several files."""
        return [self.files[source[0]] if len(source) == 1 else str(self.folder / f"[{''.join('abc'[i] for i in source)}].bin")
                for source in sources]

    def train(self, plan, sources, options, steps, launcher=(), lr=0):
        first, *others = self.named(sources)
        more = [part for path in others for part in ("--data", path)]
        return self.space.train(plan, first, steps, *more, *options, lr=lr, init=self.init, launcher=launcher)

    def expected(self, sources, options, batch, first, samples_before):
        """Losses of steps, of which `first` is the number of the first."""
        given = dict(zip(options[::2], options[1::2]))
        shares = [float(w) for w in given["--data-weights"].split(",")] if "--data-weights" in given else None
        sizes, flat = [[SIZES[i] for i in source] for source in sources], [i for source in sources for i in source]
        exact = models.weights_from(configs.GPT2, {n: w.detach().numpy() for n, w in self.weights.items()})
        for step in range(first, first + 3):
            tokens = []
            for index in range(batch):
                before = samples_before + (step - first) * batch + index
                file, start = philox.window(sizes, SEQUENCE, 0, step, index, before, given.get("--order", "random"), shares)
                tokens.append(self.ids[flat[file]][start:start + SEQUENCE + 1])
            ids = torch.from_numpy(np.stack(tokens))
            yield oracle.gradients(configs.GPT2, exact, ids[:, :-1], ids[:, 1:])[0]

    def test_losses_are_those_of_the_windows(self):
        for axes in (["dp=1"], ["dp=3", "cp=2"], ["pp=2"]):
            plan = self.plan(axes)
            for sources, options in CASES:
                with self.subTest(axes=axes, sources=sources, options=options):
                    run = self.train(plan, sources, options, 3)
                    np.testing.assert_allclose(run.losses, list(self.expected(sources, options, BATCH, 0, 0)), rtol=F32)

    def test_goes_on_with_another_batch(self):
        """At the next sample, on another mesh."""
        for sources, options in CASES[1:3]:
            with self.subTest(options=options):
                folder = self.space.file(".checkpoints")
                self.train(self.plan(), sources, [*options, "--checkpoint", folder], 3)
                run = self.resume(self.plan(["dp=2"], 4, 1), folder, sources, options, 6)
                np.testing.assert_allclose(run.losses, list(self.expected(sources, options, 4, 3, 3 * BATCH)), rtol=F32)

    def resume(self, plan, folder, sources, options, steps):
        first, *others = self.named(sources)
        more = [part for path in others for part in ("--data", path)]
        return self.space.train(plan, first, steps, *more, *options, "--resume", folder, lr=0)

    @unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed")
    def test_processes_read_the_same(self):
        plan = self.plan(["dp=2"], micro=1)
        for sources, options in CASES[1:3]:
            one, many = (self.train(plan, sources, options, 3, launcher) for launcher in ((), MPIRUN))
            self.assertEqual(one.losses, many.losses)

    def test_an_epoch_reads_each_window_once(self):
        windows = sum((size - 1) // SEQUENCE for size in SIZES)
        sizes = [[SIZES[0]], list(SIZES[1:])]
        for epoch in range(3):
            found = {philox.window(sizes, SEQUENCE, 5, 0, 0, epoch * windows + n, "epochs") for n in range(windows)}
            self.assertEqual(len(found), windows)

    def test_a_folder_is_its_files(self):
        plan = self.plan()
        losses = [self.space.train(plan, data, 2, lr=0, init=self.init).losses
                  for data in (str(self.folder), str(self.folder / "*.bin"))]
        losses.append(self.train(plan, [[0], [1], [2]], [], 2).losses)
        self.assertEqual(losses[0], losses[1])
        self.assertEqual(losses[0], losses[2])

    def test_a_missing_shard_is_told(self):
        folder = pathlib.Path(self.space.file(".shards"))
        folder.mkdir()
        for number in (8, 9, 11):
            shutil.copy(self.files[0], folder / f"s_{number:03}.bin")
        done = self.space.must("meshwork-run", self.plan(), "--steps", 1, "--data-type", "u16", "--data", folder)
        self.assertIn('s_010.bin", but not that one', done.stderr)
        (folder / "s_010.bin").symlink_to(folder / "s_009.bin")
        self.assertIn("is the same file as", self.refused("--data", folder))
        (folder / "s_010.bin").unlink()
        shutil.copy(self.files[1], folder / "s_010.bin")
        done = self.space.must("meshwork-run", self.plan(), "--steps", 1, "--data-type", "u16", "--data", folder)
        self.assertNotIn("but not that one", done.stderr)

    def test_many_files_and_a_link_to_nowhere(self):
        folder = pathlib.Path(self.space.file(".many"))
        folder.mkdir()
        for number in range(90):
            shutil.copy(self.files[2], folder / f"{number}.bin")
        few = "ulimit -S -n 64; exec \"$@\""
        command = (tools.BIN / "meshwork-run", self.plan(), "--steps", 1, "--data-type", "u16", "--data", folder)
        done = subprocess.run(["bash", "-c", few, "bash", *map(str, command)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("90 files, 5400 tokens", done.stdout)
        (folder / "link.bin").symlink_to("nowhere")
        self.assertIn("link.bin", self.refused("--data", folder, returncode=66))

    def test_no_output_is_one_of_the_files(self):
        for data in (self.folder, self.folder / "*.bin"):
            said = self.refused("--data", data, "--save", self.files[1])
            self.assertIn("--data", said)
            self.assertIn("--save", said)

    def test_what_is_read_is_told(self):
        run = self.train(self.plan(), [[0], [1, 2]], ["--order", "epochs", "--data-weights", "1,3"], 3)
        largest = [max(int(np.fromfile(file, "<u2").max()) for file in files) for files in (self.files[:1], self.files[1:])]
        self.assertRegex(run.said, rf'data "\S*a.bin": 1 file, 700 tokens, largest id {largest[0]} of a vocabulary of {configs.GPT2["vocab_size"]}, '
                                   '30 windows and 9 tokens behind the last of a file, which are not read; in 3 steps it is '
                                   'read 0.15 times')
        self.assertRegex(run.said, rf'data "\S*\[bc\].bin": 2 files, 210 tokens, largest id {largest[1]} of a vocabulary of '
                                   rf'{configs.GPT2["vocab_size"]}, 8 windows and 24 tokens')
        self.assertEqual(len(re.findall("(?m)^data ", run.said)), 2)

    def test_a_large_file_is_looked_at_in_part(self):
        path = self.space.file(".u16")
        with open(path, "wb") as file:
            file.truncate(1 << 30)
        said = self.space.must("meshwork-run", self.plan(), "--steps", 1, "--data-type", "u16", "--data", path).stdout
        self.assertIn(f'{1 << 29} tokens, largest id 0 (of {64 << 19} tokens that were looked at) of a vocabulary of {configs.GPT2["vocab_size"]}, ',
                      said)

    def refused(self, *options, returncode=64):
        done = self.space.call("meshwork-run", self.plan(), "--steps", 1, "--data-type", "u16", *options)
        self.assertEqual(done.returncode, returncode, done.stderr)
        return done.stderr

    def test_what_is_refused(self):
        a, b, _ = self.files
        both = ("--data", a, "--data", b)
        for weights in ("nan", "0,1", "-1,2", "inf,1", "a,b", "1,", "1e999,1"):
            self.assertIn("expected a number above 0 for each --data", self.refused(*both, f"--data-weights={weights}"))
        for weights in ("1", "1,2,3"):
            self.assertIn("expected 2, one for each --data", self.refused(*both, "--data-weights", weights))
        self.assertIn("which is no sample of 1024", self.refused(*both, "--data-weights", "1e-9,1"))
        self.assertIn("no file has such a name", self.refused("--data", str(self.folder / "*.x"), returncode=66))
        self.assertIn("is a folder without files that end in .bin", self.refused("--data", os.path.dirname(self.init) + "/.",
                                                                                 returncode=66))
        self.assertIn("is the same file as", self.refused("--data", a, "--data", str(self.folder / "." / "a.bin")))
        self.assertIn("random", self.refused("--data", a, "--order", "sorted"))
        short = self.space.write(".bin", "few")
        self.assertIn(pathlib.Path(short).name, self.refused("--data", a, "--data", short, returncode=65))

    def test_epochs_go_on_with_the_same_windows_only(self):
        sources, options = CASES[2]
        folder = self.space.file(".checkpoints")
        self.train(self.plan(), sources, [*options, "--checkpoint", folder], 2)

        def again(plan, sources, *changed):
            first, *others = self.named(sources)
            more = [part for path in others for part in ("--data", path)]
            done = self.space.call("meshwork-run", plan, "--data", first, *more, "--data-type", "u16", "--steps", 3,
                                   "--resume", folder, *changed)
            return done.returncode, done.stderr

        code, said = again(self.plan(), [[0], [1]], *options)
        self.assertEqual(code, 64, said)
        self.assertIn("content of --data was", said)
        code, said = again(self.plan(), sources, *options[:-1], "1,1")
        self.assertEqual(code, 64, said)
        self.assertIn("--data-weights was 1,3, is 1,1: some windows would be read twice", said)
        code, said = again(self.plan(), sources, *options, "--seed", 5)
        self.assertEqual(code, 64, said)
        code, said = again(self.plan(), sources, "--order", "random")
        self.assertEqual(code, 0, said)


if __name__ == "__main__":
    unittest.main()
