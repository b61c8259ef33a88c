"""Ranks that any launcher starts as processes, by its variables, without MPI."""
import socket
import subprocess
import time

from shell import BIN, ENVIRONMENT, TIMEOUT_S

RETRY = 75
RUN = str(BIN / "meshwork-run")
COLLECTIVES = BIN.parent / "test" / "mpiCollectivesTest"
DATA = ["--data", "README.md", "--tokenizer", "bytes"]
HALF_A_MINUTE = 30


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def compile_plans(shell):
    """2.mwplan and 4.mwplan, for as many ranks."""
    for ranks in (2, 4):
        shell.must("meshwork", "compile", "examples/llama-tiny.json", "--spec", "examples/dp2.toml",
                   "--set", f'mesh.axes=["dp={ranks}"]', "--set", "batch.global=16", "-o", f"{ranks}.mwplan")


class Launched:
    """Processes with the variables of torchrun; `more` is rank -> variables of it alone, `within` what
    stands before its command."""

    def __init__(self, test, ranks, *command, size=None, port=None, more={}, within={}, **variables):
        self.port, self.runs = port or free_port(), []
        for place, rank in enumerate(ranks):
            told = {"RANK": rank, "WORLD_SIZE": size or len(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": self.port,
                    **variables, **more.get(place, {})}
            environment = {**ENVIRONMENT, **{key: str(value) for key, value in told.items() if value is not None}}
            self.runs.append(subprocess.Popen(
                [*within.get(place, []), *command], cwd=test.shell.path, env=environment, text=True, errors="replace",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
            test.addCleanup(self.runs[-1].kill)

    def finish(self):
        """(exit codes, output of all)."""
        said = [run.communicate(timeout=TIMEOUT_S)[0] for run in self.runs]
        return [run.returncode for run in self.runs], "".join(said)


def wait_for_steps(test, metrics, run, steps=3):
    deadline = time.monotonic() + TIMEOUT_S
    while not metrics.exists() or metrics.read_text().count("\n") < steps:
        test.assertLess(time.monotonic(), deadline, "no steps")
        if run.runs[0].poll() is not None:
            test.fail(f"it ended: {run.finish()}")
        time.sleep(0.05)


def forever(test, ranks, *options, **how):
    """Ranks of test.shell that have taken some steps."""
    metrics = test.shell.path / "forever.jsonl"
    metrics.unlink(missing_ok=True)
    run = Launched(test, range(ranks), RUN, f"{ranks}.mwplan", *DATA, "--steps", "1000000", "--log-every", "1000000",
                   "--metrics", metrics.name, *options, **how)
    wait_for_steps(test, metrics, run)
    return run
