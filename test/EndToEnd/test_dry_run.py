"""Where ranks land: --dry-run, and the warning of a launch that puts them elsewhere than the plan expects.
Hosts are this one under several names, which only root may give it."""
import subprocess
import unittest

from launched import Launched
from shell import BIN, Shell

RUN = str(BIN / "meshwork-run")
MAY_RENAME = subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode == 0


def on_hosts(*arguments):
    """The command of each rank: rank / PER_HOST is its host's number."""
    return ["unshare", "--uts", "sh", "-c", f'hostname "node$((RANK / PER_HOST % 2))"; exec {RUN} "$@"', "sh", *arguments]


class DryRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shell = Shell()
        for name, *machine in (("plain",), ("named", "--set", "target.machine=xeon-2")):
            cls.shell.must("meshwork", "compile", "examples/llama-tiny.json", "--spec", "examples/tp2.toml",
                           "--set", 'mesh.axes=["dp=2","tp=2"]', "--set", "batch.global=16", *machine, "-o", f"{name}.mwplan")

    @classmethod
    def tearDownClass(cls):
        cls.shell.close()

    def launch(self, plan, per_host):
        codes, said = Launched(self, range(4), *on_hosts(plan, "--dry-run"), PER_HOST=per_host).finish()
        self.assertEqual(codes, [0] * 4, said)
        return said

    def test_in_one_process(self):
        said = self.shell.must("meshwork-run", "plain.mwplan", "--dry-run").stdout
        self.assertRegex(said, r"4 ranks on 1 host\nrank 0 \(dp 0, tp 0\): .*, (1 thread|cores? \d.*)\n")
        self.assertIn("axis dp = 2: within a host\naxis tp = 2: within a host\n", said)

    @unittest.skipUnless(MAY_RENAME, "hosts under other names: unshare --uts is refused here")
    def test_axes_that_cross_hosts(self):
        said = self.launch("plain.mwplan", per_host=2)
        self.assertIn("4 ranks on 2 hosts", said)
        self.assertRegex(said, r"rank 1 \(dp 0, tp 1\): node0, .*\nrank 2 \(dp 1, tp 0\): node1, ")
        self.assertIn("axis dp = 2: between hosts, each of 2 groups on up to 2 hosts\naxis tp = 2: within a host\n", said)
        self.assertNotIn("warning", said)
        said = self.launch("plain.mwplan", per_host=1)
        self.assertIn("axis dp = 2: within a host\naxis tp = 2: between hosts", said)
        self.assertNotIn("warning", said)  # it names no machine

    @unittest.skipUnless(MAY_RENAME, "hosts under other names: unshare --uts is refused here")
    def test_other_hosts_than_the_plan_expects(self):
        self.assertNotIn("warning", self.launch("named.mwplan", per_host=2))
        said = self.launch("named.mwplan", per_host=1)
        self.assertEqual(said.count("warning"), 1, said)
        self.assertRegex(said, r'"xeon-2" has 2 ranks on each node, .* ranks 0 and 1 are on "node0" and "node1"\. By .* take '
                               r"\S+ m?s, where the plan expects \S+ m?s: start the ranks node by node")
        self.assertRegex(self.launch("named.mwplan", per_host=4), 'ranks 1 and 2 are both on "node0"')


if __name__ == "__main__":
    unittest.main()
