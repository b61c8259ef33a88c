"""Ranks with a GPU each: the collectives of NCCL (emulated, test/Support/Emulator/nccl) between
threads and between processes give the bits of ranks that share one, and a job ends when a
process is killed."""
import json
import os
import re
import signal
import subprocess
import unittest

from job import MPIRUN, Job
from launched import Launched
from shell import BIN, ENVIRONMENT, TIMEOUT_S, Shell

RETRY = 75
EMULATED_MULTIPROCESSORS = 4
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

    def testProcessesThatSeeOneGpuEach(self):
        """Each its own, as `srun --gpus-per-task=1` does it; or all the same one."""
        shared = self.train("shared", RUN, "zero3.mwplan", "--share-gpu")
        command = RUN, "zero3.mwplan", *OPTIONS, "--steps", "2", "--save", "own.safetensors"
        codes, said = Launched(self, range(2), *command, **EMULATED,
                               more={rank: {"CUDA_VISIBLE_DEVICES": rank + 1} for rank in range(2)}).finish()
        self.assertEqual(codes, [0, 0], said)
        self.assertEqual((self.shell.path / "own.safetensors").read_bytes(), shared)
        codes, said = Launched(self, range(2), *command, **EMULATED, CUDA_VISIBLE_DEVICES=1).finish()
        self.assertNotIn(0, codes)
        self.assertIn("2 ranks on this machine need as many GPUs, there is 1", said)

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

    def called(self, plan, *options, **more):
        """What a run says, and the lines of the stand-ins that tell of NCCL and cuBLASLt."""
        done = self.start(RUN, plan, *OPTIONS, "--steps", "2", *options, MESHWORK_EMULATOR_CALLS="calls.txt",
                          **{"NCCL_MAX_CTAS": "", **more})
        output, _ = done.communicate(timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, output)
        lines = self.shell.read("calls.txt").splitlines()
        return output, [line for line in lines if line.startswith(("nccl", "cublasLt"))]

    def testProductsLeaveMultiprocessorsToCollectivesBeside(self):
        """Only communicators of channels are limited, and only products that run beside them know."""
        self.shell.must("meshwork", "compile", "examples/gpt2-tiny.json", "--spec", "examples/zero3.toml",
                        "--set", "target.device=cuda", "--set", "target.arch=sm_80",
                        "--set", "overlap.collectives=always", "-o", "beside.mwplan")
        self.assertEqual(self.called("beside.mwplan")[1], [])
        limit = "ncclCommInitRankConfig maxCTAs 1"
        output, lines = self.called("beside.mwplan", "--nccl-max-ctas", "1", "--save", "limited.safetensors")
        found = re.search(r"overlap: (\d+) products leave multiprocessors to collectives beside, 1 to each", output)
        self.assertIsNotNone(found, output)
        listed = self.shell.must("meshwork", "explain", "beside.mwplan", "--json").stdout
        products = [x for x in json.loads(listed)["rank_classes"][0]["instructions"]
                    if x["operation"].startswith("matmul")]
        self.assertTrue(0 < int(found[1]) < len(products), output)
        self.assertGreaterEqual(lines.count(limit), 2)
        counts = {int(line.split()[-1]) for line in lines if line.startswith("cublasLtMatmul on")}
        self.assertEqual(counts, {EMULATED_MULTIPROCESSORS - 1})
        _, lines = self.called("beside.mwplan", NCCL_MAX_CTAS="2")  # NCCL reads it itself
        self.assertEqual(set(lines), {f"cublasLtMatmul on {EMULATED_MULTIPROCESSORS - 2}"})
        self.assertEqual((self.shell.path / "limited.safetensors").read_bytes(),
                         self.train("shared", RUN, "beside.mwplan", "--share-gpu"))

    def testALimitThatChangesNothingIsTold(self):
        output, lines = self.called("pp2.mwplan", "--nccl-max-ctas", "1")
        self.assertIn("no collective of rank 0 runs beside the computation, so --nccl-max-ctas changes nothing", output)
        self.assertEqual(lines, [])

    def testCommunicatorsKnowAllMemory(self):
        """The plan's memory and what is packed, of collectives and of transfers; the stand-in refuses a call with any
        other."""
        for spec in ("zero3", "pp2"):
            with self.subTest(spec):
                plan = f"{spec}.mwplan"
                _, lines = self.called(plan, "--nccl-register", "--save", "registered.safetensors")
                listed = json.loads(self.shell.must("meshwork", "explain", plan, "--json").stdout)
                arenas = {x["arena_bytes"] for x in listed["rank_classes"]}
                self.assertTrue(arenas <= {int(line.split()[-1]) for line in lines}, lines)
                self.assertEqual((self.shell.path / "registered.safetensors").read_bytes(),
                                 self.train("shared", RUN, plan, "--share-gpu"))

    def testOptionsOfNcclAreRefusedWithoutIt(self):
        self.shell.must("meshwork", "compile", "examples/gpt2-tiny.json", "--spec", "examples/zero3.toml",
                        "-o", "cpu.mwplan")
        for options in (["--nccl-max-ctas", "1"], ["--nccl-register"]):
            for plan, more, version, code, needle in (
                    ("zero3.mwplan", [], "21600", 69, f"{options[0]} needs NCCL 2.1"),
                    ("zero3.mwplan", ["--share-gpu"], "22809", 64, f"{options[0]} is for ranks with a GPU each"),
                    ("cpu.mwplan", [], "22809", 64, options[0])):
                with self.subTest(options=options, plan=plan, version=version):
                    done = self.start(RUN, plan, *OPTIONS, "--steps", "1", *options, *more,
                                      MESHWORK_EMULATOR_NCCL_VERSION=version)
                    output, _ = done.communicate(timeout=TIMEOUT_S)
                    self.assertEqual(done.returncode, code, output)
                    self.assertIn(needle, output)

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
