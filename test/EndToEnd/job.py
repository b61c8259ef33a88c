"""A run under mpirun that goes on until something happens to it. Its limits are for what hangs:
a busy machine may take its time."""
import os
import subprocess
import time
import unittest

from shell import BIN, ENVIRONMENT, TIMEOUT_S

MPIRUN = ["mpirun", "--oversubscribe"]  # there may be fewer cores than ranks


class Job:
    """`ranks` of the launcher; `self.pids` are theirs once each has taken some steps."""

    def __init__(self, test: unittest.TestCase, folder, ranks, *arguments, env=ENVIRONMENT):
        metrics = folder / "forever.jsonl"
        metrics.unlink(missing_ok=True)
        command = [*MPIRUN, "-n", str(ranks), str(BIN / "meshwork-run"), *arguments, "--steps", "1000000",
                   "--log-every", "1000000", "--metrics", metrics.name]
        self.test = test
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, errors="replace", stdin=subprocess.DEVNULL, env=env)
        test.addCleanup(self.process.kill)
        self._wait(lambda: metrics.exists() and metrics.read_text().count("\n") >= 3)
        self.pids = {int(environment(pid)["OMPI_COMM_WORLD_RANK"]): pid for pid in children_of(self.process.pid)}
        test.assertEqual(sorted(self.pids), list(range(ranks)))

    def _wait(self, begun):
        """Until the job has, which it does not end before."""
        deadline = time.monotonic() + TIMEOUT_S
        while not begun():
            if self.process.poll() is not None:
                self.test.fail(f"the job ended: {self.process.communicate()[0]}")
            self.test.assertLess(time.monotonic(), deadline, "the job does not start")
            time.sleep(0.1)

    def finish(self):
        """Exit code and output of the job; it ends and leaves nobody behind."""
        output, _ = self.process.communicate(timeout=TIMEOUT_S)
        deadline = time.monotonic() + TIMEOUT_S
        while any(is_alive(pid) for pid in self.pids.values()):
            self.test.assertLess(time.monotonic(), deadline, "ranks are left behind")
            time.sleep(0.05)
        return self.process.returncode, output


def children_of(parent):
    """Of all threads of the launcher."""
    found = []
    for task in os.listdir(f"/proc/{parent}/task"):
        with open(f"/proc/{parent}/task/{task}/children") as file:
            found += file.read().split()
    return [int(pid) for pid in found]


def environment(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        entries = [entry.partition(b"=") for entry in file.read().split(b"\0")]
    return {key.decode(): value.decode(errors="replace") for key, _, value in entries}


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
