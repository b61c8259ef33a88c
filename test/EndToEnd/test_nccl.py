"""Ranks with a GPU each: the collectives of NCCL (emulated, test/Support/Emulator/nccl) between
threads and between processes give the bits of ranks that share one, and a job ends when a
process is killed."""
import os
import signal
import subprocess
import unittest

from job import MPIRUN, Job
from shell import BIN, ENVIRONMENT, TIMEOUT_S, Shell

RETRY = 75
RUN = str(BIN / "meshwork-run")
EMULATED = {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, [str(BIN.parent / "emulator"),
                                                            ENVIRONMENT.get("LD_LIBRARY_PATH")])),
            "MESHWORK_EMULATOR_DEVICES": "4"}
OPTIONS = ["--data", "README.md", "--tokenizer", "bytes", "--seed", "3"]
# Tensor and sequence parallelism; shards that are gathered and scattered; both axes; stages of a pipeline.
MESHES = {"tp2-sp": [], "zero3": [], "hsdp": [], "pp2": []}


class Nccl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shell = Shell()
        for spec in MESHES:
            cls.shell.must("meshwork", "compile", "examples/gpt2-tiny.json", "--spec", f"examples/{spec}.toml",
                           "--set", "target.device=cuda", "--set", "target.arch=sm_80", "-o", f"{spec}.mwplan")

    @classmethod
    def tearDownClass(cls):
        cls.shell.close()

    def start(self, *command, **more):
        return subprocess.Popen(command, cwd=self.shell.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, text=True, env={**ENVIRONMENT, **EMULATED, **more})

    def train(self, name, *command, **more):
        """The bytes of the weights that the command leaves."""
        done = self.start(*command, *OPTIONS, "--steps", "2", "--save", f"{name}.safetensors", **more)
        output, _ = done.communicate(timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, output)
        return (self.shell.path / f"{name}.safetensors").read_bytes()

    def testSameBitsAsRanksThatShareAGpu(self):
        for spec in MESHES:
            with self.subTest(spec):
                plan = f"{spec}.mwplan"
                shared = self.train("shared", RUN, plan, "--share-gpu")
                self.assertEqual(self.train("threads", RUN, plan), shared)

    def testSameBitsBetweenProcesses(self):
        shared = self.train("shared", RUN, "zero3.mwplan", "--share-gpu")
        self.assertEqual(self.train("mpi", *MPIRUN, "-n", "2", RUN, "zero3.mwplan"), shared)

    def job(self, *options):
        return Job(self, self.shell.path, 2, "zero3.mwplan", *OPTIONS, *options, env={**ENVIRONMENT, **EMULATED})

    def testJobEndsWithAKilledProcess(self):
        job = self.job()
        os.kill(job.pids[1], signal.SIGKILL)
        code, output = job.finish()
        self.assertNotEqual(code, 0, output)

    def testJobEndsWithAStoppedProcess(self):
        job = self.job("--timeout", "4")
        os.kill(job.pids[1], signal.SIGSTOP)
        code, output = job.finish()
        self.assertEqual(code, RETRY, output)
        self.assertRegex(output, "rank 1 did not arrive at .* and does not answer: it is stopped, or cut off")

    def testFewerGpusThanRanks(self):
        done = self.start(RUN, "zero3.mwplan", *OPTIONS, "--steps", "1", MESHWORK_EMULATOR_DEVICES="1")
        output, _ = done.communicate(timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 69, output)
        self.assertIn("2 ranks on this machine need as many GPUs, there is 1", output)

    def testAPipelineNeedsADriverThatKeepsTheOrder(self):
        done = self.start(RUN, "pp2.mwplan", *OPTIONS, "--steps", "1", MESHWORK_EMULATOR_DRIVER="12020")
        output, _ = done.communicate(timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 69, output)
        self.assertIn("serves CUDA 12.2, expected 12.3 or newer for a pipeline", output)


if __name__ == "__main__":
    unittest.main()
