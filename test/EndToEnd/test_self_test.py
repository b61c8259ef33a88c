"""--self-test: under launchers and in one process it finds all right here, and its report tells nothing private."""
import getpass
import json
import shutil
import signal
import socket
import subprocess
import unittest

from job import MPIRUN
from launched import Launched
from shell import BIN, CANNOT_CREATE, TIMEOUT_S, USAGE, Shell

RUN = str(BIN / "meshwork-run")
EMULATOR = BIN.parent / "emulator"
PLANS = ["zero-3", "tensor and sequence parallel", "pipeline", "context parallel ring", "experts"]


class SelfTest(unittest.TestCase):
    def setUp(self):
        self.shell = Shell()
        self.addCleanup(self.shell.close)

    def check_report(self, name, ranks):
        text = self.shell.read(name)
        report = json.loads(text)
        self.assertEqual(report["ranks"], ranks)
        self.assertEqual(report["host_of_rank"], [0] * ranks)
        self.assertEqual(report["wrong"], [])
        self.assertEqual(len(report["links"]), ranks * (ranks - 1) // 2)
        self.assertGreaterEqual(len(report["collectives"]), 17)
        self.assertEqual([one["name"] for one in report["plans"]], PLANS)
        for plan in report["plans"]:
            self.assertEqual(plan["not_tried"], "")
            self.assertLess(plan["difference"], 1e-4)
            self.assertNotEqual(plan["tensor"], "")
        for private in {socket.gethostname(), str(self.shell.path), "/tmp", "127.0.0.1", getpass.getuser() + "/"}:
            self.assertNotIn(f'"{private}', text)
        self.assertNotIn("/", text.replace("/s", ""))
        return report

    def test_in_one_process(self):
        said = self.shell.must("meshwork-run", "--self-test", "report.json", "-n", "3").stdout
        self.assertIn("3 ranks on 1 host, as threads of one process", said)
        self.assertIn("17 collectives over the groups of a mesh of 3: all right", said)
        self.assertEqual(said.count("as on one rank, largest difference"), 5)
        report = self.check_report("report.json", 3)
        self.shell.write("machine.toml", report["machine"])
        self.shell.must("meshwork", "compile", "examples/llama-tiny.json", "--spec", "examples/dp2.toml", "--set",
                        'target.machine="machine.toml"', "--estimate")

    def test_ranks_of_any_launcher(self):
        codes, said = Launched(self, range(4), RUN, "--self-test", "report.json").finish()
        self.assertEqual(codes, [0] * 4, said)
        report = self.check_report("report.json", 4)
        self.assertTrue(report["processes"])
        self.assertEqual(len(report["work"]), 4)
        self.assertEqual(len(report["collectives"]), 51)  # three lists of axes

    def test_under_mpirun(self):
        done = self.shell.run(*MPIRUN, "-n", "2", RUN, "--self-test", "report.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_report("report.json", 2)

    @unittest.skipUnless((EMULATOR / "libcuda.so.1").exists(), "the emulated GPU is not built")
    def test_on_emulated_gpus(self):
        self.shell.must(f"LD_LIBRARY_PATH={EMULATOR} MESHWORK_EMULATOR_DEVICES=2 {RUN} --self-test report.json")
        gpus = self.check_report("report.json", 2)["gpus"]
        self.assertIn("compute capability", gpus["name"])
        self.assertEqual((gpus["not_tried"], len(gpus["work"]), len(gpus["links"]), len(gpus["collectives"])), ("", 2, 1, 17))
        for check in gpus["collectives"]:
            self.assertEqual(check["wrong"], "")

    def test_what_cannot_be_written_is_told_first(self):
        done = self.shell.run("meshwork-run", "--self-test", "none/report.json")
        self.assertEqual((done.returncode, done.stdout), (CANNOT_CREATE, ""), done.stderr)
        self.assertIn("cannot create a file", done.stderr)
        self.shell.refuse(USAGE, ["--ranks is 100000", "at most 256"], "meshwork-run", "--self-test", "r.json", "-n", "100000")
        self.shell.refuse(USAGE, ["--self-test excludes --steps"], "meshwork-run", "--self-test", "report.json", "--steps", "3")

    def test_a_signal_ends_it(self):
        """After the part that is under way."""
        run = subprocess.Popen([RUN, "--self-test", "report.json"], cwd=self.shell.path, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        self.addCleanup(run.kill)
        self.assertIn("2 ranks on 1 host", run.stdout.readline())
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=TIMEOUT_S)
        self.assertEqual(run.returncode, 128 + signal.SIGINT, said)
        self.assertIn("stopped by SIGINT before the end of the self-test: nothing is written", said)
        self.assertFalse((self.shell.path / "report.json").exists())

    def test_without_the_compiler_the_rest_is_tried(self):
        shutil.copy(RUN, self.shell.path / "meshwork-run")
        done = self.shell.run("./meshwork-run", "--self-test", "report.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("was not tried: meshwork is not in the folder of meshwork-run"), 5)
        self.assertEqual(len(json.loads(self.shell.read("report.json"))["collectives"]), 17)


if __name__ == "__main__":
    unittest.main()
