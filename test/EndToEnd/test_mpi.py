"""Ranks as processes under mpirun: the same bits as ranks of one process, and what
happens when one of them is started wrongly, fails, is killed or is stopped."""
import os
import re
import signal
import subprocess
import unittest

from job import MPIRUN, Job
from shell import BIN, CANNOT_CREATE, DATA, ENVIRONMENT, NO_INPUT, SPEC, TIMEOUT_S, Shell

RETRY, WRITE, TERMINATED = 75, 74, 143
RUN = str(BIN / "meshwork-run")
DATA_OPTIONS = ["--data", "README.md", "--tokenizer", "bytes"]


class Mpi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shell = Shell()
        for ranks in (2, 4):
            cls.shell.must("meshwork", "compile", "examples/llama-tiny.json", "--spec", "examples/dp2.toml",
                           "--set", f'mesh.axes=["dp={ranks}"]', "--set", "batch.global=16", "-o", f"{ranks}.mwplan")

    @classmethod
    def tearDownClass(cls):
        cls.shell.close()

    def mpirun(self, *groups):
        """Groups of (count, plan, options...) as one job."""
        command = list(MPIRUN)
        for i, (count, *arguments) in enumerate(groups):
            command += [":"] if i else []
            command += ["-n", str(count), RUN, *arguments]
        return subprocess.run(command, cwd=self.shell.path, capture_output=True, text=True, errors="replace",
                              timeout=TIMEOUT_S, stdin=subprocess.DEVNULL, env=ENVIRONMENT)

    def expect(self, code, needle, *groups):
        done = self.mpirun(*groups)
        shown = f"{done.stdout}\n{done.stderr}"
        self.assertEqual(done.returncode, code, shown)
        self.assertEqual(done.stderr.count("meshwork-run: error:"), 1, shown)
        self.assertIn(needle, done.stderr, shown)
        self.said = done.stderr

    def losses(self, name):
        return re.findall(r'"loss":([^,]+),"grad_norm":([^,]+)', self.shell.read(name))

    def testSameBitsAsInOneProcess(self):
        for ranks in (2, 4):
            options = [*DATA_OPTIONS, "--steps", "4", "--seed", "3", "--log-every", "1"]
            for way in ("threads", "mpi"):
                (self.shell.path / f"{way}.jsonl").unlink(missing_ok=True)
            outputs = lambda way: ["--metrics", f"{way}.jsonl", "--save", f"{way}.safetensors",
                                   "--save-gradients", f"{way}-gradients.safetensors"]
            self.shell.must("meshwork-run", f"{ranks}.mwplan", *options, *outputs("threads"))
            done = self.mpirun((ranks, f"{ranks}.mwplan", *options, *outputs("mpi")))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("4 steps in"), 1, done.stdout)
            # mpirun gives its ranks a terminal, whatever its own output is.
            self.assertEqual(len(re.findall(r"(?m)^step \d/4  loss .*  norm .*  lr ", done.stdout)), 4, done.stdout)
            self.assertEqual(self.losses("mpi.jsonl"), self.losses("threads.jsonl"))
            self.assertEqual(len(self.losses("mpi.jsonl")), 4)
            for kind in ("", "-gradients"):
                self.assertEqual((self.shell.path / f"mpi{kind}.safetensors").read_bytes(),
                                 (self.shell.path / f"threads{kind}.safetensors").read_bytes())

    def testTraceHasAllRanks(self):
        done = self.mpirun((4, "4.mwplan", *DATA_OPTIONS, "--steps", "2", "--trace", "trace.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(re.findall(r'"ph":"X","pid":(\d)', self.shell.read("trace.json"))), set("0123"))

    def testThreadsOnRequest(self):
        done = subprocess.run([RUN, "2.mwplan", *DATA_OPTIONS, "--steps", "1", "--transport", "threads"],
                              cwd=self.shell.path, capture_output=True, text=True,
                              env={**ENVIRONMENT, "RANK": "0", "WORLD_SIZE": "7"})
        self.assertEqual(done.returncode, 0, done.stderr)

    def testWrongStartsAreRefused(self):
        steps = [*DATA_OPTIONS, "--steps", "3"]
        self.expect(SPEC, "the plan is for 4 ranks, mpirun started 2", (2, "4.mwplan", *steps))
        self.expect(SPEC, "rank 3 has another plan than the other ranks", (3, "4.mwplan", *steps),
                    (1, "2.mwplan", *steps))
        self.expect(SPEC, "rank 2 was started with other options than the other ranks: found --steps 4 --decay-steps 4, expected --steps 3 --decay-steps 3",
                    (2, "4.mwplan", *steps), (1, "4.mwplan", *DATA_OPTIONS, "--steps", "4"), (1, "4.mwplan", *steps))
        self.expect(SPEC, "rank 1 was started with other options than the other ranks: found --document-end 10, expected none",
                    (1, "4.mwplan", *steps), (1, "4.mwplan", *steps, "--document-end", "10"), (2, "4.mwplan", *steps))
        lacks = "rank 2 was started with other options than the other ranks: found none, expected --eval-data"
        rest = [*steps, "--eval-data", "README.md"]
        self.expect(SPEC, lacks, (2, "4.mwplan", *rest), (1, "4.mwplan", *steps), (1, "4.mwplan", *rest))
        rest = [*steps, "--then", "4.mwplan@2", "--checkpoint", "then"]
        self.expect(SPEC, "rank 0 was started with other options than the other ranks: found --then PLAN@1, expected --then PLAN@2",
                    (1, "4.mwplan", *steps, "--then", "4.mwplan@1", "--checkpoint", "then"), (3, "4.mwplan", *rest))
        self.expect(SPEC, "found none, expected --then PLAN@2", (3, "4.mwplan", *rest), (1, "4.mwplan", *steps, "--checkpoint", "then"))
        self.expect(NO_INPUT, "rank 1: plan 'absent': No such file", (1, "2.mwplan", *steps), (1, "absent", *steps))
        self.expect(NO_INPUT, "rank 1: ", (1, "2.mwplan", *steps),
                    (1, "2.mwplan", "--data", "absent", "--tokenizer", "bytes", "--steps", "3"))
        self.shell.write("stale.txt", self.shell.read("README.md").replace("the", "tha"))
        self.shell.write("short.txt", self.shell.read("README.md")[:5000])
        for name, has in (("stale.txt", "tokens, fingerprint "), ("short.txt", "5000 tokens, fingerprint ")):
            self.expect(SPEC, f'rank 2 reads other data than the other ranks: "{name}" on ', (2, "4.mwplan", *steps),
                        (1, "4.mwplan", "--data", name, *steps[2:]), (1, "4.mwplan", *steps))
            self.assertIn(has, self.said)
        self.expect(CANNOT_CREATE, "rank 0: ", (2, "2.mwplan", *steps, "--save", "/absent/file"))

    def testLaunchersMustAgree(self):
        done = subprocess.run([*MPIRUN, "-n", "2", "-x", "RANK=1", "-x", "WORLD_SIZE=4", RUN, "2.mwplan"],
                              cwd=self.shell.path, capture_output=True, text=True, timeout=TIMEOUT_S, env=ENVIRONMENT)
        self.assertEqual(done.returncode, SPEC, done.stderr)
        self.assertIn("mpirun and torchrun disagree", done.stderr)

    def testADivergingLossStopsAllInOneStep(self):
        options = [*DATA_OPTIONS, "--steps", "50", "--lr", "1e30", "--save"]
        self.expect(DATA, "all ranks stopped before the optimizer", (4, "4.mwplan", *options, "mpi.safetensors"))
        self.shell.refuse(DATA, ["all ranks stopped before the optimizer"], "meshwork-run", "4.mwplan", *options,
                          "threads.safetensors")
        self.assertEqual((self.shell.path / "mpi.safetensors").read_bytes(),
                         (self.shell.path / "threads.safetensors").read_bytes())

    def testMetricsThatCannotBeWrittenLeaveWeights(self):
        self.expect(WRITE, "No space left on device", (4, "4.mwplan", *DATA_OPTIONS, "--steps", "50", "--metrics",
                                                       "/dev/full", "--save", "left.safetensors"))
        self.assertTrue((self.shell.path / "left.safetensors").exists())

    def testLaunchersWithoutAManagerAreRefused(self):
        for told, variables in (("srun started this process as one of 2",
                                 {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2"}),
                                ("MPICH's mpiexec (also Intel's and Cray's) started this process as one of 2",
                                 {"PMI_RANK": "0", "PMI_SIZE": "2"}),
                                ("PALS started this process as one of several", {"PALS_RANKID": "0"})):
            done = subprocess.run([RUN, "2.mwplan", *DATA_OPTIONS, "--steps", "1"], cwd=self.shell.path, text=True,
                                  capture_output=True, env={**ENVIRONMENT, **variables})
            self.assertEqual(done.returncode, SPEC, done.stdout)
            self.assertIn(told, done.stderr)
            self.assertIn("start them with the mpirun of Open MPI", done.stderr)

    def job(self, *options):
        return Job(self, self.shell.path, 4, "4.mwplan", *DATA_OPTIONS, *options)

    def testAKilledRankEndsAllAndIsNamed(self):
        job = self.job()
        os.kill(job.pids[2], signal.SIGKILL)
        code, output = job.finish()
        self.assertRegex(output, r"process rank 2 .* exited on signal 9")
        self.assertNotEqual(code, 0)

    def testAStoppedRankIsNamedWithItsCollective(self):
        job = self.job("--timeout", "2")
        os.kill(job.pids[1], signal.SIGSTOP)
        code, output = job.finish()
        self.assertEqual(code, RETRY, output)
        self.assertRegex(output, r"meshwork-run: error: rank 1 did not arrive at (all_reduce \".*\"|the end of a step.*)"
                                 r" within 2 s and does not answer")
        self.assertEqual(output.count("meshwork-run: error:"), 1, output)

    def testASignalEndsAfterTheStepAndSaves(self):
        job = self.job("--save", "stopped.safetensors")
        os.kill(job.pids[3], signal.SIGTERM)
        code, output = job.finish()
        self.assertEqual(code, TERMINATED, output)
        self.assertEqual(output.count("meshwork-run: stopped by SIGTERM after step "), 1, output)
        self.assertTrue((self.shell.path / "stopped.safetensors").exists(), output)


if __name__ == "__main__":
    unittest.main()
