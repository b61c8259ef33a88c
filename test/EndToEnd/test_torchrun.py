"""PyTorch's own launcher starts ranks, which meet without MPI: the bits of threads, with a fixed host and with c10d,
and again after one is killed. TORCH_PYTHON (else TRANSFORMERS_PYTHON, else python3) names a Python with PyTorch;
that of Debian 12 has a launcher that does not start under its Python."""
import os
import signal
import subprocess
import time
import unittest

from job import children_of
from launched import DATA, RUN, compile_plans, free_port
from shell import ENVIRONMENT, TIMEOUT_S, Shell

PYTHON = os.environ.get("TORCH_PYTHON") or os.environ.get("TRANSFORMERS_PYTHON") or "/usr/bin/python3"
LAUNCHER = [PYTHON, "-m", "torch.distributed.run", "--no-python", "--nproc-per-node", "4"]
STARTS = subprocess.run([*LAUNCHER, "true"], capture_output=True, timeout=TIMEOUT_S).returncode == 0


@unittest.skipUnless(STARTS, "torch.distributed.run does not start here; TORCH_PYTHON may name a Python where it does")
class Torchrun(unittest.TestCase):
    command = [RUN, "4.mwplan", *DATA, "--steps", "100", "--checkpoint-every", "10", "--resume", "auto"]

    @classmethod
    def setUpClass(cls):
        cls.shell = Shell()
        cls.addClassCleanup(cls.shell.close)
        compile_plans(cls.shell)
        cls.shell.must("meshwork-run", *cls.command[1:], *cls.outputs("threads"))

    @staticmethod
    def outputs(way):
        return ["--checkpoint", f"{way}-run", "--save", f"{way}.safetensors", "--metrics", f"{way}.jsonl"]

    def launch(self, way, *options, during=lambda run: None):
        run = subprocess.Popen([*LAUNCHER, *options, *self.command, *self.outputs(way)], cwd=self.shell.path, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENVIRONMENT)
        self.addCleanup(run.kill)
        during(run)
        said, _ = run.communicate(timeout=TIMEOUT_S)
        self.assertEqual(run.returncode, 0, said)
        self.assertEqual(*((self.shell.path / f"{name}.safetensors").read_bytes() for name in ("threads", way)))

    def test_a_fixed_host(self):
        self.launch("static", "--master-addr", "127.0.0.1", "--master-port", str(free_port()))

    def c10d(self):
        return ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}"]

    def test_c10d(self):
        self.launch("c10d", *self.c10d())

    def test_restarts(self):
        def kill_one(run):
            metrics, deadline = self.shell.path / "again.jsonl", time.monotonic() + TIMEOUT_S
            while not metrics.exists() or metrics.read_text().count("\n") < 30:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            os.kill(children_of(run.pid)[2], signal.SIGKILL)
        self.launch("again", *self.c10d(), "--max-restarts", "2", during=kill_one)


if __name__ == "__main__":
    unittest.main()
