"""Ranks on several hosts, which are namespaces of networks on this machine: the bits of threads, also
where a cable is cut for a moment; one that stays cut is named on both sides."""
import json
import re
import time
import unittest

import hosts
from launched import COLLECTIVES, DATA, HALF_A_MINUTE, RETRY, RUN, Launched, compile_plans, forever, wait_for_steps
from shell import SPEC, Shell

WHY_NOT = hosts.why_not()


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shell = Shell()
        cls.addClassCleanup(cls.shell.close)
        compile_plans(cls.shell)

    def setUp(self):
        self.use(hosts.Network(self, 2))

    def use(self, network):
        self.network = network
        self.how = {"within": self.network.spread(4), "MASTER_ADDR": self.network.address(0)}

    def outputs(self, way):
        return ["--save", f"{way}.safetensors", "--save-gradients", f"{way}-gradients.safetensors",
                "--metrics", f"{way}.jsonl"]

    def check_bits(self, during=lambda metrics, run: None, options=(), **more):
        """Of ranks on both hosts, to which something happens, and of ranks that are threads of one process."""
        command, metrics = [RUN, "4.mwplan", *DATA, "--steps", "200", "--seed", "3"], self.shell.path / "hosts.jsonl"
        metrics.unlink(missing_ok=True)
        run = Launched(self, range(4), *command, *self.outputs("hosts"), *options, **self.how, **more)
        during(metrics, run)
        codes, said = run.finish()
        self.assertEqual(codes, [0] * 4, said)
        self.shell.must(*command, *self.outputs("threads"))
        for kind in (".safetensors", "-gradients.safetensors"):
            self.assertEqual(*((self.shell.path / f"{way}{kind}").read_bytes() for way in ("hosts", "threads")))

    def test_same_bits_as_in_one_process(self):
        self.check_bits()

    def test_same_bits_with_a_secret(self):
        self.check_bits(MESHWORK_SECRET="of this job")
        codes, said = Launched(self, range(4), COLLECTIVES, MESHWORK_SECRET="of this job", **self.how).finish()
        self.assertEqual(codes, [0] * 4, said)

    def test_the_self_test_finds_a_slow_cable(self):
        """That of the last of four hosts, so three pairs of six are slow."""
        self.use(hosts.Network(self, 4))
        self.network.slow_down(3, megabits=400)
        codes, said = Launched(self, range(4), RUN, "--self-test", "report.json", **self.how).finish()
        self.assertEqual(codes, [0] * 4, said)
        report = json.loads(self.shell.read("report.json"))
        self.assertEqual(report["host_of_rank"], [0, 1, 2, 3])
        self.assertEqual(report["wrong"], [])
        slow = [re.findall(r"ranks (\d) and 3, on two hosts: [\d.]+ GB/s", one) for one in report["slow"]]
        self.assertEqual(sorted(sum(slow, [])), ["0", "1", "2"], report["slow"])
        self.assertNotIn("10.9.", self.shell.read("report.json"))
        self.assertNotIn("host1", self.shell.read("report.json"))

    def test_a_cable_cut_for_a_second_changes_nothing(self):
        def cut(metrics, run):
            wait_for_steps(self, metrics, run)
            self.network.cut(1)
            time.sleep(1)
            before = metrics.read_text().count("\n")
            time.sleep(0.5)
            self.assertEqual(metrics.read_text().count("\n"), before, "steps went on")
            self.network.join(1)
        self.check_bits(cut)

    def test_a_cut_cable_is_named_on_both_sides(self):
        run = forever(self, 4, "--timeout", "3", **self.how)
        self.network.cut(1)
        begin = time.monotonic()
        codes, said = run.finish()
        self.assertEqual(codes, [RETRY] * 4, said)
        for one in ("rank [01]", "rank [23]"):
            self.assertRegex(said, f"{one} has ended without a word, or its host is not reached any more"
                                   f"|{one} did not arrive at .* and does not answer: it is stopped, or cut off")
        self.assertLess(time.monotonic() - begin, HALF_A_MINUTE)

    def test_a_first_host_out_of_reach_is_named(self):
        """By those who wait there for rank 0; it says who did not come."""
        self.network.cut(0)
        codes, said = Launched(self, range(4), RUN, "4.mwplan", *DATA, "--steps", "1", "--timeout", "3",
                               **self.how).finish()
        self.assertEqual(codes, [RETRY] * 4, said)
        for rank in (2, 3):
            self.assertIn(f"rank {rank} has waited 3 s for rank 0 at {self.network.address(0)}:", said)
        self.assertIn("after 3 s ranks 2, 3 did not come to rank 0", said)

    def test_the_interface_that_is_named(self):
        """Ranks meet by the first network and send by the second: the first may go."""
        def cut(metrics, run):
            wait_for_steps(self, metrics, run)
            self.assertEqual(self.network.hosts[0].listening(), {"10.9.0.1", "10.9.1.1"})
            self.assertEqual(self.network.hosts[1].listening(), {"10.9.1.2"})
            self.network.cut(1)
        self.use(hosts.Network(self, 2, 2))
        self.check_bits(cut, options=["--interface", "eth1", "--timeout", "2"])

    def test_the_variables_that_name_an_interface(self):
        self.use(hosts.Network(self, 2, 2))
        command = RUN, "4.mwplan", *DATA, "--steps", "1"
        for name, value in (("NCCL_SOCKET_IFNAME", "^eth0"), ("GLOO_SOCKET_IFNAME", "none,eth1")):
            codes, said = Launched(self, range(4), *command, **self.how, **{name: value}).finish()
            self.assertEqual(codes, [0] * 4, said)
        codes, said = Launched(self, range(4), *command, "--interface", "ib", **self.how).finish()
        self.assertEqual(codes, [SPEC] * 4, said)
        self.assertIn('--interface "ib" names no interface of this host that is up and has an address, which are: '
                      "lo (127.0.0.1), eth0 (10.9.0.1), eth1 (10.9.1.1)", said)
        for options, needle in (
                (["--transport", "threads"], "--interface is for ranks that are processes"),
                ([], "--interface would do nothing: ranks meet at 127.0.0.1, which is this host alone")):
            codes, said = Launched(self, [0], *command, *options, "--interface", "lo", size=4).finish()
            self.assertNotEqual(codes, [0])
            self.assertIn(needle, said)

    def test_a_name_that_means_the_loopback(self):
        """Debian writes such a line for a host's own name."""
        for name, address in (("own", "127.0.1.1"), ("other", self.network.address(0))):
            self.shell.write(name, f"127.0.0.1 localhost\n{address} first\n")

        def run(files, *options):
            within = {rank: [*self.how["within"][rank], *hosts.knowing(self.shell.path / files[rank // 2])]
                      for rank in range(4)}
            return Launched(self, range(4), RUN, "4.mwplan", *DATA, "--steps", "1", "--timeout", "4", *options,
                            within=within, MASTER_ADDR="first").finish()
        codes, said = run(["own", "own"])
        self.assertEqual(codes, [RETRY] * 4, said)
        advice = 'here MASTER_ADDR "first" means 127.0.1.1, this host itself (see /etc/hosts)'
        for who in ("after 4 s ranks 2, 3 did not come", "rank 2 has waited 4 s", "rank 3 has waited 4 s"):
            self.assertRegex(said, re.escape(who) + ".*" + re.escape(advice))
        codes, said = run(["own", "other"])
        self.assertEqual(codes, [SPEC] * 4, said)
        self.assertIn("rank 1 can be reached from the host of rank 0 alone", said)
        self.assertIn("ranks 2, 3 came from other hosts", said)
        codes, said = run(["own", "other"], "--interface", "eth0")
        self.assertEqual(codes, [0] * 4, said)


if __name__ == "__main__":
    unittest.main()
