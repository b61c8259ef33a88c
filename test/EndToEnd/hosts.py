"""Hosts that are namespaces of a network, joined by switches, on this machine. Each lives as long as
a process of the test, so that nothing is left behind however the test ends."""
import os
import shutil
import subprocess

APART = ["unshare", "--net", "--uts"]


def why_not():
    """What this machine lacks for it; None when nothing is missing."""
    if os.getuid() != 0:
        return "namespaces of networks need root"
    if not shutil.which("ip"):
        return "iproute2 is not installed"
    tried = subprocess.run([*APART, *"ip link add left type veth peer name right".split()],
                           capture_output=True, text=True)
    return None if tried.returncode == 0 else f"no namespaces of networks: {tried.stderr.strip()}"


def knowing(path):
    """Stands before a command that has this file for /etc/hosts."""
    return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(path)]


class Host:
    """A network and a host name of its own."""

    def __init__(self, test, name):
        begin = 'hostname "$0" && ip link set lo up && echo && exec cat'  # which ends when the test does
        self._holder = subprocess.Popen([*APART, "sh", "-c", begin, name],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        test.addCleanup(self._holder.communicate)
        test.assertEqual(self._holder.stdout.readline(), b"\n")
        self.within = ["nsenter", f"--target={self._holder.pid}", "--net", "--uts"]

    def ip(self, command):
        self.run(f"ip {command}")

    def run(self, command):
        subprocess.run([*self.within, *command.split()], check=True)

    def listening(self):
        """The addresses that processes listen at."""
        told = subprocess.run([*self.within, "ss", "-Hltn"], check=True, capture_output=True, text=True).stdout
        addresses = (line.split()[3].rpartition(":")[0] for line in told.splitlines())
        return {one.removeprefix("[::ffff:").removesuffix("]") for one in addresses}

    def plug_into(self, switch, cable, interface, address):
        switch.ip(f"link add {cable} type veth peer name {interface} netns {self._holder.pid}")
        self.ip(f"address add {address} dev {interface}")
        self.ip(f"link set {interface} up")


class Network:
    """`hosts` with a cable each to every one of `count` switches: host i has address(i, n) at its interface
    `eth{n}`."""

    def __init__(self, test, hosts, count=1):
        self._box = Host(test, "switches")
        self.hosts = [Host(test, f"host{i}") for i in range(hosts)]
        for n in range(count):
            self._box.ip(f"link add switch{n} type bridge")
            self._box.ip(f"link set switch{n} up")
            for i, host in enumerate(self.hosts):
                host.plug_into(self._box, f"cable{i}-{n}", f"eth{n}", f"{self.address(i, n)}/24")
                self._box.ip(f"link set cable{i}-{n} up master switch{n}")

    @staticmethod
    def address(host, n=0):
        return f"10.9.{n}.{host + 1}"

    def cut(self, host, n=0):
        self._box.ip(f"link set cable{host}-{n} down")

    def join(self, host, n=0):
        self._box.ip(f"link set cable{host}-{n} up")

    def slow_down(self, host, megabits, n=0):
        """What reaches the host, a second."""
        self._box.run(f"tc qdisc add dev cable{host}-{n} root tbf rate {megabits}mbit burst 256kb latency 100ms")

    def spread(self, ranks):
        """For Launched: as many ranks on each host, one host after the other."""
        each = ranks // len(self.hosts)
        return {rank: self.hosts[rank // each].within for rank in range(ranks)}
