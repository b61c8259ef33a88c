"""A run that is killed, stopped, starved of disk and given bad steps ends with the bits of one
that was left alone, and every checkpoint that it leaves is whole.

MESHWORK_CHAOS is the number of faults, MESHWORK_CHAOS_SEED picks them."""
import json
import os
import pathlib
import random
import resource
import signal
import statistics
import subprocess
import time
import unittest

import numpy as np

import configs
import safetensors
import tools

FAULTS = int(os.environ.get("MESHWORK_CHAOS", "10"))
SEED = int(os.environ.get("MESHWORK_CHAOS_SEED", "1"))
BATCH, SEQUENCE = 4, 12
APART_S = 0.25  # from one fault to the next, at most
CONFIG = {**configs.MISTRAL, "num_hidden_layers": 1}
BAD_TOKEN = 125  # its row of the embedding is infinite: a step that reads it is not finite


def state_of(pid):
    """(state, parent) of a process; None when there is none."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return fields[0], int(fields[1])


def is_gone(pid):
    state = state_of(pid)
    return state is None or state[0] == "Z"


def children(pid):
    """Processes that `pid` has started and that have not ended."""
    found = [int(path.name) for path in pathlib.Path("/proc").iterdir() if path.name.isdigit()]
    states = {one: state_of(one) for one in found}
    return [one for one, state in states.items() if state and state[1] == pid and state[0] != "Z"]


class Chaos(unittest.TestCase):
    cost_s = 30

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)
        cls.plan = cls.space.compile(CONFIG, tools.spec(BATCH, 1, SEQUENCE, dp=2,
                                                        zero={"stage": 2},
                                                        offload={"optimizer": True, "window": "4 KiB"}))
        weights = dict(safetensors.read(cls.space.initial_weights(cls.plan)))
        weights["model.embed_tokens.weight"] = weights["model.embed_tokens.weight"].copy()
        weights["model.embed_tokens.weight"][BAD_TOKEN] = np.inf
        cls.init = cls.space.save_weights(weights)
        ids = configs.corpus(120, 4000)
        ids[::397] = BAD_TOKEN
        cls.data = cls.space.tokens(ids)
        cls.steps = 40
        # So many that a run without a restart is still under way at the last fault.
        cls.steps += FAULTS * max(12, round(APART_S / cls.step_seconds()))

    @classmethod
    def command(cls, save, *more):
        """`more` are options with their values; one that is given again replaces what is here."""
        options = {"--data": cls.data, "--data-type": "u16", "--steps": str(cls.steps),
                   "--init": cls.init, "--save": save, "--skip-bad-steps": str(cls.steps),
                   "--schedule": "cosine", **dict(zip(more[::2], more[1::2]))}
        return [str(tools.BIN / "meshwork-run"), cls.plan,
                *(word for option in options.items() for word in option)]

    @classmethod
    def step_seconds(cls):
        metrics = cls.space.file(".jsonl")
        subprocess.run(cls.command(cls.space.file(".safetensors"), "--metrics", metrics),
                       check=True, capture_output=True, timeout=tools.TIMEOUT_S)
        lines = pathlib.Path(metrics).read_text().splitlines()
        return statistics.median(json.loads(line)["step_ms"] for line in lines) / 1e3

    def test_same_bits_after_faults(self):
        quiet, stormy = self.space.file(".safetensors"), self.space.file(".safetensors")
        folder, metrics = self.space.file(".checkpoints"), self.space.file(".jsonl")
        subprocess.run(self.command(quiet), check=True, capture_output=True, timeout=tools.TIMEOUT_S)
        command = self.command(stormy, "--checkpoint", folder, "--checkpoint-every", "3",
                               "--restarts", str(2 * FAULTS + 10), "--metrics", metrics)
        faults = Faults(random.Random(SEED), command)
        told = faults.run_through(FAULTS)
        self.assertEqual(faults.run.returncode, 0, told)
        self.assertGreaterEqual(faults.landed, FAULTS // 2, faults.log)
        self.assertEqual(pathlib.Path(stormy).read_bytes(), pathlib.Path(quiet).read_bytes(),
                         faults.log)
        lines = pathlib.Path(metrics).read_text()
        self.assertIn('"skipped":true', lines)
        self.space.must("meshwork", "checkpoint", "verify", folder)

    def long(self, restarts):
        """(process, folder of checkpoints) of a run that will not end by itself, under way."""
        folder, endless = self.space.file(".checkpoints"), str(10 ** 6)
        run = subprocess.Popen(
            self.command(self.space.file(".safetensors"), "--checkpoint", folder, "--restarts",
                         str(restarts), "--steps", endless, "--checkpoint-every", "5",
                         "--skip-bad-steps", endless),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(run.stderr.close)
        self.addCleanup(run.kill)
        self.wait_for_step(run, folder, 1)
        return run, pathlib.Path(folder)

    def until(self, holds):
        end = time.monotonic() + tools.TIMEOUT_S
        while not holds():
            self.assertLess(time.monotonic(), end, "waited for too long")
            time.sleep(0.01)

    def wait_for_step(self, run, folder, least):
        self.until(lambda: run.poll() is not None or any(
            int(path.parent.name[5:]) >= least
            for path in pathlib.Path(folder).glob("step-*/manifest.json")))

    def child(self, run):
        self.until(lambda: run.poll() is not None or children(run.pid))
        return children(run.pid)[0]

    def test_a_signal_to_all_is_one_request(self):
        """As a terminal sends it: the run ends after its step, and saves."""
        run, folder = self.long(3)
        os.killpg(run.pid, signal.SIGINT)
        told = run.communicate(timeout=tools.TIMEOUT_S)[1]
        self.assertEqual(run.returncode, 130, told)
        self.assertIn("stopped by SIGINT", told)
        self.assertNotIn("restart", told)
        stopped = int(told.split("after step ")[1].split()[0])
        self.assertTrue((folder / f"step-{stopped + 1:010}" / "manifest.json").exists(), told)

    def test_restarts_are_counted_and_used_up(self):
        run, folder = self.long(1)
        for _ in range(2):
            child = self.child(run)
            os.kill(child, signal.SIGKILL)
            self.until(lambda: is_gone(child))
            newest = max(folder.glob("step-*")).name
            self.wait_for_step(run, folder, int(newest[5:]) + 5)
        told = run.communicate(timeout=tools.TIMEOUT_S)[1]
        self.assertEqual(run.returncode, 128 + signal.SIGKILL, told)
        self.assertRegex(told, r"killed by signal 9 .*restart 1 of 1, from step \d+ in")
        self.assertIn("all 1 restarts are used up", told)

    def test_nobody_is_left_behind(self):
        """Who watches is killed: the run ends as by SIGTERM, with a checkpoint."""
        run, folder = self.long(1)
        child = self.child(run)
        run.kill()
        run.wait()
        self.until(lambda: is_gone(child))
        self.space.must("meshwork", "checkpoint", "verify", folder)

    def test_what_a_restart_cannot_mend(self):
        save, folder = self.space.file(".safetensors"), self.space.file(".checkpoints")
        supervised = ["--checkpoint", folder, "--restarts", "3"]
        for code, needle, arguments in (
                (66, "no-such-file", ["--data", "no-such-file", *supervised]),
                (65, "the loss of step", ["--skip-bad-steps", "0", *supervised]),
                (64, "--checkpoint", ["--restarts", "3"])):
            command = self.command(save, *arguments)
            done = subprocess.run(command, capture_output=True, text=True, timeout=tools.TIMEOUT_S)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(needle, done.stderr)
            self.assertNotIn("restart 1", done.stderr)
        launched = {**os.environ, "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}
        done = subprocess.run(self.command(save, *supervised), capture_output=True, text=True,
                              env=launched, timeout=tools.TIMEOUT_S)
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("--resume auto", done.stderr)


class Faults:
    """Runs a command and harms it; what was asked to stop is started again."""

    def __init__(self, chance, command):
        self.chance, self.command = chance, command
        self.landed, self.log, self.told = 0, [], ""
        self.start([])

    def start(self, more):
        self.run = subprocess.Popen([*self.command, *more], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True)

    def child(self):
        """Of the supervisor; None when the run has ended."""
        while self.run.poll() is None:
            found = children(self.run.pid)
            if found:
                return found[0]
            time.sleep(0.001)
        return None

    def end(self):
        self.told += self.run.communicate(timeout=tools.TIMEOUT_S)[1]

    def harm(self):
        """False when the run is over."""
        child = self.child()
        # The time of a fault is drawn from the start of its run. Drawn from the last fault, it
        # would end each run that follows a pause at its birth, and pauses would double.
        time.sleep(self.chance.uniform(0, APART_S))
        if child is None or self.run.poll() is not None:
            return False
        kind = self.chance.choice(["kill", "kill", "kill", "segv", "stop", "disk"])
        self.log.append(kind)
        try:
            if kind in ("kill", "segv"):
                os.kill(child, signal.SIGKILL if kind == "kill" else signal.SIGSEGV)
            elif kind == "disk":
                resource.prlimit(child, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
            else:
                self.run.send_signal(signal.SIGTERM)
                self.end()
                if self.run.returncode == 0:
                    return False
                self.start(["--resume", "auto"])
        except (ProcessLookupError, PermissionError):
            pass  # it has just ended
        self.landed += 1
        return True

    def run_through(self, count):
        for _ in range(count):
            if not self.harm():
                break
        self.end()
        return f"{self.log}\n{self.told}"


if __name__ == "__main__":
    unittest.main()
