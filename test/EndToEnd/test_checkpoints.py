"""Checkpoints as runs write them: whole at any moment, whatever kills the run or fails on
its disk. Each is read by what the README of runtime/checkpoint says, and hashed."""
import errno
import fcntl
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import unittest

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "Equivalence"))
import checkpoints  # noqa: E402
import safetensors  # noqa: E402
from job import MPIRUN, Job  # noqa: E402
from shell import BIN, CANNOT_CREATE, ENVIRONMENT, ROOT, TIMEOUT_S, USAGE, Shell  # noqa: E402

RUN = str(BIN / "meshwork-run")
DAMAGED, NO_RESOURCES, WRITE, TERMINATED = 65, 71, 74, 143
FAULTS = BIN.parent / "test" / "faultyFiles.so"
DATA = ["--data", "README.md", "--tokenizer", "bytes"]
SAVE = ["--checkpoint", "kept", "--checkpoint-every", "2"]


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shell = Shell()
        # Of the wide one a save writes more than two blocks, 9.9 MB.
        wide = {**json.loads((ROOT / "examples/llama-tiny.json").read_text()), "vocab_size": 6000}
        cls.shell.write("wide.json", json.dumps(wide))
        for name, model, ranks in (("1", "examples/llama-tiny.json", 1), ("2", "examples/llama-tiny.json", 2),
                                   ("wide", "wide.json", 1)):
            cls.shell.must("meshwork", "compile", model, "--spec", "examples/dp2.toml", "--set",
                           f'mesh.axes=["dp={ranks}"]', "--set", "batch.global=8", "-o", f"{name}.mwplan")

    @classmethod
    def tearDownClass(cls):
        cls.shell.close()

    def setUp(self):
        self.shell.run("rm -rf kept log log.replaced w.safetensors")

    @property
    def kept(self):
        return self.shell.path / "kept"

    def start(self, *arguments, ranks=1, mpi=False, plan=None, **faults):
        launcher = [*MPIRUN, "-n", str(ranks)] if mpi else []
        environment = {**ENVIRONMENT, **faults}
        if faults:
            environment = {"FAULT_FOLDER": "kept/step-", **environment, "LD_PRELOAD": str(FAULTS)}
        return subprocess.Popen([*launcher, RUN, f"{plan or ranks}.mwplan", *DATA, *map(str, arguments)],
                                cwd=self.shell.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                errors="replace", stdin=subprocess.DEVNULL, env=environment)

    def run_(self, *arguments, **how):
        """(exit code, stdout, stderr)."""
        process = self.start(*arguments, **how)
        out, err = process.communicate(timeout=TIMEOUT_S)
        return process.returncode, out, err

    def good(self, *arguments, **how):
        code, out, err = self.run_(*arguments, **how)
        self.assertEqual(code, 0, out + err)
        return out, err

    def steps(self):
        return [int(path.name[5:]) for path in checkpoints.complete(self.kept)]

    def newest(self):
        """What the newest checkpoint holds; everything in it is checked."""
        return checkpoints.read(checkpoints.complete(self.kept)[0])

    def expectWeights(self, path="w.safetensors"):
        """The newest has the weights of the file, bit for bit."""
        manifest, states = self.newest()
        weights = safetensors.read(self.shell.path / path)
        for tensor in manifest["tensors"]:
            ours = states[tensor["name"], "weight"].reshape(tensor["file_shape"])
            self.assertEqual(ours.tobytes(), weights[tensor["name"]].tobytes(), tensor["name"])
        self.assertEqual(set(weights), {tensor["name"] for tensor in manifest["tensors"]})
        return manifest, states


class Saving(Case):
    def testBothTransportsAndWaysWriteTheSameStates(self):
        found = {}
        for name, mpi, more in (("threads", False, []), ("mpi", True, []), ("sync", False, ["--checkpoint-sync"]),
                                ("mpi sync", True, ["--checkpoint-sync"])):
            self.setUp()
            out, _ = self.good("--steps", 5, *SAVE, *more, "--save", "w.safetensors", ranks=2, mpi=mpi)
            manifest, found[name] = self.expectWeights()
            self.assertEqual((manifest["step"], manifest["updates"], manifest["samples"]), (5, 5, 40))
            self.assertEqual({state for _, state in found[name]}, {"weight", "first_moment", "second_moment"})
            self.assertIn('in "kept/step-0000000005"', out)
            sizes = [file["bytes"] for file in manifest["files"] if file["name"].startswith("states-")]
            self.assertEqual(len(sizes), 2)
            self.assertLess(abs(sizes[0] - sizes[1]), 0.02 * sum(sizes))
        for states in found.values():
            for key, values in states.items():
                self.assertEqual(values.tobytes(), found["threads"][key].tobytes(), key)

    def testModelIsThere(self):
        self.good("--steps", 1, *SAVE)
        self.assertIn("func.func", (self.kept / "step-0000000001" / "model.mlir").read_text())

    def testSavesThatAreSpreadOverSteps(self):
        """They rest between blocks, which two saves in a row leave no time for; the bits are the same."""
        found = []
        for more in ([], ["--threads", 1], ["--checkpoint-sync"]):
            self.setUp()
            self.good("--steps", 16, "--checkpoint", "kept", "--checkpoint-every", 8, *more, "--save",
                      "w.safetensors", plan="wide")
            found.append({key: values.tobytes() for key, values in self.expectWeights()[1].items()})
            self.assertEqual(self.steps(), [16, 8])
        self.assertEqual(found[1:], found[:1] * 2)

    def testInitialWeights(self):
        self.good("--steps", 0, "--checkpoint", "kept", "--save", "w.safetensors")
        self.assertEqual(self.expectWeights()[0]["step"], 0)

    def testWeightsThatAreDrawnAreSaved(self):
        compile_ = ["meshwork", "compile", "examples/llama-tiny.json", "--spec", "examples/dp2.toml",
                    "--set", 'precision.compute="bf16"']
        for rounding in ("nearest", "stochastic"):
            self.setUp()
            self.shell.must(*compile_, "--set", f'precision.rounding="{rounding}"', "-o", "drawn.mwplan")
            self.shell.must("meshwork-run", "drawn.mwplan", *DATA, "--steps", "2", *SAVE)
            names = {state for _, state in self.newest()[1]}
            self.assertEqual("rounded_weight" in names, rounding == "stochastic", names)

    def testAFolderOfAnotherRunIsRefused(self):
        self.good("--steps", 1, *SAVE)
        self.shell.refuse(USAGE, ["kept/step-0000000001", "--resume"], "meshwork-run", "1.mwplan", *DATA,
                          "--steps", "2", *SAVE)
        self.assertEqual(self.steps(), [1])

    def testAFolderThatCannotBeIsRefusedAtTheStart(self):
        self.shell.write("kept", "a file")
        code, out, err = self.run_("--steps", 1, *SAVE)
        self.assertEqual(code, CANNOT_CREATE, err)
        self.assertIn("kept", err)
        self.assertNotIn("step 0", out)

    def testTheNewestAreKept(self):
        """Saved at once: a save that is late would be of another step."""
        (self.kept / "step-notes").mkdir(parents=True)
        self.shell.write("kept/step-0000000001", "a file of somebody")
        self.good("--steps", 9, *SAVE, "--checkpoint-sync", "--keep", 3)
        self.assertEqual(self.steps(), [9, 8, 6])
        self.assertEqual(sorted(path.name for path in self.kept.iterdir()),
                         ["step-0000000001", "step-0000000006", "step-0000000008", "step-0000000009", "step-notes"])

    def testAStepThatIsALinkIsLeftAlone(self):
        """What it leads to is no save's: nothing is written or removed there."""
        archive = self.shell.path / "archive"
        archive.mkdir()
        for name in ("model.mlir", "states-00000.safetensors"):
            (archive / name).write_text("precious")
        self.kept.mkdir()
        for step in (2, 5):
            (self.kept / f"step-{step:010}").symlink_to(archive)
        _, err = self.good("--steps", 9, *SAVE, "--checkpoint-sync", "--keep", 2)
        self.assertRegex(err, r"warning: no checkpoint after 2 steps: .*step-0000000002.*is a symbolic link")
        self.assertEqual(self.steps(), [9, 8])
        self.assertEqual({path.name: path.read_text() for path in archive.iterdir()},
                         {"model.mlir": "precious", "states-00000.safetensors": "precious"})

    def testNothingIsWrittenThroughALink(self):
        """Whatever in the folder is called as a run would call its own files."""
        victim = self.shell.path / "victim"
        victim.write_text("precious")
        (self.kept / "step-0000000002").mkdir(parents=True)
        for name in (".seen-by-rank-0", ".seen-by-rank-0.abcDEF", ".seen-by-rank-12.012345",
                     "step-0000000002/manifest.json", "step-0000000002/model.mlir",
                     "step-0000000002/states-00000.safetensors"):
            (self.kept / name).symlink_to(victim)
        (self.kept / ".seen-by-me").write_text("somebody's")
        code, _, err = self.run_("--steps", 2, *SAVE, "--resume", "auto")
        self.assertEqual(code, DAMAGED, err)
        (self.kept / "step-0000000002/manifest.json").unlink()
        self.good("--steps", 2, *SAVE)
        self.newest()
        self.assertEqual(victim.read_text(), "precious")
        self.assertEqual(sorted(path.name for path in self.kept.iterdir()), [".seen-by-me", "step-0000000002"])

    def testAResumeRepeatsNoLineOfTheMetrics(self):
        run = [*SAVE, "--checkpoint-sync", "--metrics", "log"]
        self.good("--steps", 6, *run)
        first = self.shell.read("log").splitlines(keepends=True)
        out, _ = self.good("--steps", 7, *run, "--resume", "kept/step-0000000004")
        self.assertIn('metrics: 2 lines from step 4 on are of a past that the run leaves, and now in "log.replaced"', out)
        lines = self.shell.read("log").splitlines(keepends=True)
        self.assertEqual(lines[:4], first[:4])
        self.assertEqual([json.loads(line)["step"] for line in lines], list(range(7)))
        self.assertEqual(self.shell.read("log.replaced"), "".join(first[4:]))

    def testALateSaveIsNamedAndMade(self):
        """Ranks tell each other of the end of a save with a later step: one a step is late, however fast."""
        out, _ = self.good("--steps", 40, "--checkpoint", "kept", "--checkpoint-every", "1")
        self.assertRegex(out, r"checkpoint: late after \d+ steps, that of step \d+ is still being written")
        self.assertEqual(self.steps()[0], 40)
        self.newest()

    def testAFolderThatHostsDoNotShare(self):
        """Each rank looks for it where it was started, in a folder of its own."""
        plan, text = self.shell.path / "2.mwplan", self.shell.path / "README.md"
        for name in ("host0", "host1"):
            (self.shell.path / name).mkdir(exist_ok=True)
        rank = [RUN, plan, "--data", text, "--tokenizer", "bytes", "--steps", 1, *SAVE]
        done = self.shell.run(*map(str, (*MPIRUN, "-n", 1, "-wdir", self.shell.path / "host0", *rank,
                                        ":", "-n", 1, "-wdir", self.shell.path / "host1", *rank)))
        self.assertEqual(done.returncode, CANNOT_CREATE, done.stderr)
        self.assertRegex(done.stderr, r'rank 0 \(host .*\): "kept" lacks the files that ranks 1 have made there')
        for name in ("host0", "host1"):
            self.assertEqual(list((self.shell.path / name / "kept").iterdir()), [])

    def testAReadOnlyFolder(self):
        """A mounted one where that is allowed, else calls that say so."""
        self.kept.mkdir()
        line = f"{RUN} 1.mwplan {' '.join(DATA)} --steps 1 --checkpoint kept"
        mounted = "mount --bind kept kept && mount -o remount,bind,ro kept"
        if self.shell.run(f"unshare --mount sh -c '{mounted}'").returncode == 0:
            done = self.shell.run(f"unshare --mount sh -c '{mounted} && exec {line}'")
            code, out, err = done.returncode, done.stdout, done.stderr
        else:
            code, out, err = self.run_("--steps", 1, "--checkpoint", "kept", FAULT_FOLDER="kept", FAULT_AT="1",
                                       FAULT_DO=f"{errno.EROFS}+")
        self.assertEqual(code, CANNOT_CREATE, err)
        self.assertIn("Read-only file system", err)
        self.assertNotIn("step 0", out)

    def testMemoryForTheCopy(self):
        """442 MiB are planned, 321 more would be for the copy; 575 are there."""
        self.shell.must("meshwork", "compile", "examples/llama-30m.json", "--spec", "examples/dp1.toml",
                        "--set", "batch.global=1", "--set", "batch.micro=1", "-o", "large.mwplan")
        run = f"ulimit -v 640000; {RUN} large.mwplan --steps 0 --threads 1 --checkpoint kept"
        done = self.shell.run(run)
        self.assertEqual(done.returncode, NO_RESOURCES, done.stderr)
        for needle in ("are for copies of the states (--checkpoint)", "add --checkpoint-sync"):
            self.assertIn(needle, done.stderr)
        self.assertEqual(self.steps(), [])
        self.assertEqual(self.shell.run(f"{run} --checkpoint-sync").returncode, 0)
        self.assertEqual(self.steps(), [0])

    def test_a_folder_that_another_run_writes_to(self):
        self.kept.mkdir()
        folder = os.open(self.kept, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            mark = self.kept / ".seen-by-rank-0.aBc123"  # of a run that holds the lock, and looks for it
            mark.touch()
            before = self.kept.stat().st_mtime_ns
            self.shell.refuse(CANNOT_CREATE, ["another run", "kept"], "meshwork-run", "1.mwplan", *DATA,
                              "--steps", "2", *SAVE)
            self.assertEqual(list(self.kept.iterdir()), [mark])
            self.assertEqual(self.kept.stat().st_mtime_ns, before)  # nothing came and went
        finally:
            os.close(folder)
        self.good("--steps", 2, *SAVE)
        self.assertFalse(mark.exists())

    def test_names_that_no_file_can_hold(self):
        model = (self.shell.must("meshwork", "import", "examples/llama-tiny.json", "-o", "-").stdout
                 .replace('"model.norm.weight"', '"model.norm\\FFweight"'))
        self.shell.write("odd.mlir", model)
        self.shell.must("meshwork", "compile", "odd.mlir", "--spec", "examples/dp1.toml", "-o", "odd.mwplan")
        self.shell.refuse(USAGE, ["cannot write a tensor", "model.norm"], "meshwork-run", "odd.mwplan", *DATA,
                          "--steps", "2", *SAVE)
        self.assertEqual(self.steps(), [])


class Signals(Case):
    def forever(self, *more):
        """A run that has taken a step."""
        process = self.start("--steps", 1000000, "--log-every", 1, *more)
        self.addCleanup(process.kill)
        while not process.stdout.readline().startswith("step 1/"):
            self.assertIsNone(process.poll())
        return process

    def finish(self, process):
        out, err = process.communicate(timeout=TIMEOUT_S)
        return process.returncode, out, err

    def testSigtermSaves(self):
        for ranks, mpi in ((1, False), (2, True)):
            self.setUp()
            if mpi:
                job = Job(self, self.shell.path, 2, "2.mwplan", *DATA, "--checkpoint", "kept")
                os.kill(job.pids[1], signal.SIGTERM)  # mpirun itself would end them with its own code
                code, text = job.finish()
            else:
                process = self.forever("--checkpoint", "kept", "--save", "w.safetensors")
                process.send_signal(signal.SIGTERM)
                code, out, text = self.finish(process)
            self.assertEqual(code, TERMINATED, text)
            after = int(re.search(r"stopped by SIGTERM after step (\d+)", text)[1])
            self.assertEqual(self.newest()[0]["step"], after + 1)

    def testASecondSigtermEndsAtOnce(self):
        """Also while a save takes minutes; what was whole before stays so."""
        self.good("--steps", 1, "--checkpoint", "kept")
        process = self.start("--steps", 1000000, "--checkpoint", "kept", "--checkpoint-every", "1", "--resume", "auto",
                             FAULT_DO="slow30000000")
        self.addCleanup(process.kill)
        while "checkpoint: late" not in process.stdout.readline():
            self.assertIsNone(process.poll())
        for signal_ in (signal.SIGSTOP, signal.SIGCONT):
            process.send_signal(signal_)
        while process.poll() is None:  # For a second it is the same request.
            process.send_signal(signal.SIGTERM)
            time.sleep(0.1)
        code, _, text = self.finish(process)
        self.assertEqual(code, TERMINATED)
        self.assertNotIn("stopped by SIGTERM", text)
        self.assertEqual(self.newest()[0]["step"], 1)

    def testOneRequestMayComeSeveralTimes(self):
        """As of `timeout`, which signals its child and then its group."""
        process, begin = self.forever("--checkpoint", "kept"), time.monotonic()
        for _ in range(3):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.01)
        isOne = time.monotonic() - begin < 1  # On a busy machine it may be two.
        code, _, text = self.finish(process)
        self.assertEqual(code, TERMINATED, text)
        if isOne:
            self.newest()

    def testADeadRankSaysWhatToResume(self):
        job = Job(self, self.shell.path, 2, "2.mwplan", *DATA, "--checkpoint", "kept", "--checkpoint-every", "2")
        while not checkpoints.complete(self.kept):
            self.assertIsNone(job.process.poll())
        os.kill(job.pids[1], signal.SIGKILL)
        code, text = job.finish()
        self.assertNotEqual(code, 0)
        self.assertIn("go on from", text)
        step = int(re.search(r"go on from step (\d+) with --resume \"kept/step-", text)[1])
        self.assertIn(step, self.steps()[:2], text)  # One may have become whole since.
        self.newest()

    def testSigusr1SavesAndGoesOn(self):
        process = self.forever("--checkpoint", "kept")
        process.send_signal(signal.SIGUSR1)
        while not (line := process.stdout.readline()).startswith("checkpoint: "):
            self.assertIsNone(process.poll())
        step = int(re.search(r"step-(\d+)", line)[1])
        self.assertEqual(self.steps(), [step])
        self.newest()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process)[0], TERMINATED)
        self.assertGreater(self.steps()[0], step)

    def testSigusr1BeforeAnythingElse(self):
        """It neither ends the run nor is lost: the run's first instruction is to wait for it."""
        out, _ = self.good("--steps", 2, "--checkpoint", "kept", FAULT_SIGNAL=str(int(signal.SIGUSR1)))
        self.assertEqual(self.steps(), [2, 1], out)

    def testSigusr1WithoutAFolderIsANote(self):
        process = self.forever()
        process.send_signal(signal.SIGUSR1)
        lines = iter(process.stdout.readline, "")
        line = next((line for line, _ in zip(lines, range(2000)) if "SIGUSR1" in line), "")
        self.assertIn("--checkpoint", line)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process)[0], TERMINATED)


class Faults(Case):
    """The checkpoint after 2 steps is whole whatever becomes of the next."""

    RUN = ["--steps", 4, *SAVE]
    cost_s = 60

    def calls(self, *more, **how):
        """The calls a run makes on its checkpoints, and how many of them the first save makes."""
        self.setUp()
        self.good(*self.RUN, *more, FAULT_LOG="log", **how)
        lines = (self.shell.path / "log").read_text().splitlines()
        return [line.split()[1] for line in lines], next(
            i for i, line in enumerate(lines) if "step-0000000004" in line)

    def testKilledAtEachCall(self):
        calls, first = self.calls()
        self.assertTrue({"write", "fsync", "rename", "create", "mkdir"} <= set(calls), calls)
        for at in range(first, len(calls) + 1):
            self.setUp()
            code, _, err = self.run_(*self.RUN, FAULT_AT=str(at), FAULT_DO="kill")
            self.assertEqual(code, -signal.SIGKILL, f"{at} {err}")
            self.assertIn(self.newest()[0]["step"], (2, 4), f"killed at call {at}, {calls[at - 1]}")

    def testLargeStatesGoPastThePageCache(self):
        """And through it from where the system does not take them, or stops within a block."""
        calls, _ = self.calls(plan="wide")
        self.assertEqual("write-direct" in calls, self.takesDirect(), calls)
        writes = [call for call in calls if call.startswith("write")]
        for number in range(1, len(writes) // 2 + 1):
            for what in ("short", f"{errno.EINVAL}"):
                self.setUp()
                code, _, err = self.run_(*self.RUN, "--save", "w.safetensors", plan="wide", FAULT_CALLS="write",
                                         FAULT_AT=str(number), FAULT_DO=what)
                self.assertEqual(code, 0, err)
                # The page cache's own refusal is one.
                isMade = what == "short" or writes[number - 1] == "write-direct"
                self.assertEqual("warning: no checkpoint after 2 steps" in err, not isMade, err)
                self.expectWeights()
                self.assertEqual(self.steps(), [4, 2] if isMade else [4])

    def takesDirect(self):
        try:
            os.close(os.open(self.shell.path / "direct", os.O_WRONLY | os.O_CREAT | os.O_DIRECT))
        except OSError:
            return False
        return True

    def testKilledWhileLargeStatesAreWritten(self):
        calls, first = self.calls(plan="wide")
        for at in (i + 1 for i, call in enumerate(calls) if i >= first and call.startswith("write")):
            self.setUp()
            code, _, err = self.run_(*self.RUN, plan="wide", FAULT_AT=str(at), FAULT_DO="kill")
            self.assertEqual(code, -signal.SIGKILL, f"{at} {err}")
            self.assertEqual(self.newest()[0]["step"], 2, f"killed at call {at}, {calls[at - 1]}")

    def testKilledProcessesOfMpi(self):
        how = {"ranks": 2, "mpi": True, "FAULT_CALLS": "write,fsync,rename,create"}  # Either may make the folder.
        calls, first = self.calls(**how, FAULT_RANK="0")
        for rank, at in [("0", at) for at in range(first, len(calls) + 1, 5)] + [("1", 6), ("1", 8)]:
            self.setUp()
            code, _, err = self.run_(*self.RUN, **how, FAULT_AT=str(at), FAULT_DO="kill", FAULT_RANK=rank)
            self.assertNotEqual(code, 0, err)
            if checkpoints.complete(self.kept):
                self.assertIn(self.newest()[0]["step"], (2, 4))

    def testKilledAtRandomMoments(self):
        choose = random.Random(1)
        for _ in range(20):
            self.setUp()
            process = self.start("--steps", 1000000, "--checkpoint", "kept", "--checkpoint-every", "1", ranks=2)
            while ' in "kept/step-' not in process.stdout.readline():
                self.assertIsNone(process.poll())
            time.sleep(choose.random() * 0.3)
            process.kill()
            process.communicate()
            self.newest()

    def temporary(self):
        return [str(path) for path in self.kept.rglob("*") if re.search(r"\.\w{6}$", path.name) and path.is_file()
                and not path.name.endswith(".safetensors")]

    def testACallThatFailsDoesNotEndTraining(self):
        # Of the first save: that of step 4 is left out where this one is late, and one that the run ends with counts.
        _, alone = self.calls(ranks=2)
        _, second = self.calls(ranks=2, mpi=True, FAULT_RANK="1")
        choose = random.Random(2)
        for number, mpi in ((errno.ENOSPC, False), (errno.EIO, False), (errno.EROFS, False), (errno.EIO, True)):
            for at in choose.sample(range(1, second if mpi else alone), 4):
                self.setUp()
                _, err = self.good("--steps", 5, *SAVE, "--save", "w.safetensors", ranks=2, mpi=mpi,
                                   FAULT_CALLS="write,fsync,rename,create,mkdir", FAULT_AT=str(at),
                                   FAULT_DO=str(number), **({"FAULT_RANK": "1"} if mpi else {}))
                self.assertRegex(err, r"warning: no checkpoint after 2 steps: .*kept/step-.*" + os.strerror(number))
                self.expectWeights()
                self.assertEqual(self.temporary(), [])
                self.assertNotIn(2, self.steps())

    def testStepsOfACheckpointAreInTheMetrics(self):
        """Killed as soon as the manifest has its name; the run that goes on repeats none."""
        log = self.shell.path / "metrics.jsonl"
        for more in ([], ["--checkpoint-sync"]):
            self.setUp()
            log.unlink(missing_ok=True)
            run = [*self.RUN, *more, "--metrics", log.name]
            # Renamed are states, the model and then the manifest; after that its folder is synced.
            calls, _ = self.calls(*more)
            last = [i for i, call in enumerate(calls) if call == "rename"][2]
            self.setUp()
            code, _, err = self.run_(*run, FAULT_AT=str(last + 2), FAULT_DO="kill")
            self.assertEqual(code, -signal.SIGKILL, err)
            self.assertEqual(self.newest()[0]["step"], 2)
            self.assertLessEqual({0, 1}, set(self.logged(log)))
            self.good(*run, "--resume", "auto")
            self.assertEqual(self.logged(log), [0, 1, 2, 3])

    def logged(self, log):
        return [json.loads(line)["step"] for line in log.read_text().splitlines()]

    def testAFullDiskAtTheEnd(self):
        calls, first = self.calls()
        self.setUp()
        code, _, err = self.run_("--steps", 3, *SAVE, "--save", "w.safetensors", FAULT_CALLS="write",
                                 FAULT_AT=str(sum(call.startswith("write") for call in calls[:first]) + 1), FAULT_DO=f"{errno.ENOSPC}+")
        self.assertEqual(code, WRITE, err)
        self.assertIn("No space left on device", err)
        self.assertTrue((self.shell.path / "w.safetensors").exists())
        self.assertEqual(self.steps(), [2])
        self.newest()
        self.assertEqual([path.name for path in self.kept.iterdir()], ["step-0000000002"])


if __name__ == "__main__":
    unittest.main()
