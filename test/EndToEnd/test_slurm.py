"""Ranks under a real Slurm, without MPI: srun gives the bits of one process, steps of a job do not meet
each other, a killed rank is named, and the example's batch script goes on after a requeue.

The cluster has two nodes: namespaces of Linux, each with its own host name and network. It ends with
this process."""
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import hosts
from job import children_of
from launched import DATA, RETRY, compile_plans
from shell import BIN, ENVIRONMENT, SPEC, TIMEOUT_S, Shell

KILLED = 128 + signal.SIGKILL
START_S = 20  # at most, until both nodes are there
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun")
PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
RUN = ["meshwork-run", *DATA]
TRAIN = [*RUN, "--steps", "4", "--seed", "3"]

CONFIGURATION = """
ClusterName=test
SlurmctldHost=node1
SlurmUser=root
SlurmdUser=root
# A job that is requeued waits until its old credential has expired: 120 s by default, 5 at least.
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
NodeName=node[1-2] CPUs=8
PartitionName=all Nodes=ALL Default=YES
"""

HOSTS = "127.0.0.1 localhost\n10.77.0.1 node1\n10.77.0.2 node2\n"

# The first process of a PID namespace: when it ends, the kernel kills all others there. It reads until the
# test closes the pipe or is gone.
BEGIN = """
mount --bind hosts /etc/hosts
hostname node1
ip link set lo up
munged --socket="$PWD/munge.socket" --key-file="$PWD/munge.key" --pid-file="$PWD/munge.pid" \
  --log-file="$PWD/munge.log" --seed-file="$PWD/munge.seed"
unshare --net --uts bash -euc '
  hostname node2
  ip link set lo up
  ip link add eth0 type veth peer name eth0 netns 1
  ip address add 10.77.0.2/24 dev eth0
  ip link set eth0 up
  nsenter --target=1 --net ip address add 10.77.0.1/24 dev eth0
  nsenter --target=1 --net ip link set eth0 up
  slurmd -D &'
slurmctld -D &
slurmd -D &
cat
exit
"""


class Cluster:
    """Its files are in the folder `slurm` of the shell. Jobs run in the shell's own folder."""

    def __init__(self, shell):
        folder = shell.path / "slurm"
        self.folder, self.log, self.process = shell.path, folder / "log", None
        (folder / "state").mkdir(parents=True)
        (folder / "slurm.conf").write_text(CONFIGURATION.format(folder=folder))
        (folder / "hosts").write_text(HOSTS)
        (folder / "munge.key").write_bytes(os.urandom(128))
        os.chmod(folder / "munge.key", 0o600)
        os.chmod(self.folder, 0o711)  # munged insists that others reach its socket
        ours = {key: value for key, value in ENVIRONMENT.items() if not key.startswith("SLURM")}
        self.environment = {**ours, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": f"{BIN}:{PATH}"}

    def start(self):
        """Why there is no cluster, or nothing."""
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                ["unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc",
                 "bash", "-euc", BEGIN], cwd=self.log.parent, env=self.environment, stdin=subprocess.PIPE,
                stdout=log, stderr=log)
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.process.poll() is None:
            self.first = (children_of(self.process.pid) or [None])[0]
            states = self.run("sinfo", "--noheader", "--Node", "--format=%T") if self.first else None
            if states and states.stdout.split() == ["idle"] * 2:
                return None
            time.sleep(0.1)
        return f"Slurm does not start here: {' '.join(self.log.read_text().splitlines()[-3:])}"

    def stop(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(TIMEOUT_S)

    def popen(self, *command):
        return subprocess.Popen(["nsenter", f"--target={self.first}", "--net", "--mount", "--pid", "--uts", "--ipc",
                                 f"--wd={self.folder}", *map(str, command)], env=self.environment, text=True,
                                errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def run(self, *command):
        process = self.popen(*command)
        output, _ = process.communicate(timeout=TIMEOUT_S)
        return subprocess.CompletedProcess(command, process.returncode, output)

    def kill_rank_3(self, step):
        """The last one is on node2."""
        rows = [line.split() for line in self.run("scontrol", "listpids", step, "node2").stdout.splitlines()]
        (pid,) = (pid for pid, *_, number in rows if number == "3")
        self.run("kill", "-KILL", pid)


class Slurm(unittest.TestCase):
    cost_s = 40

    @classmethod
    def setUpClass(cls):
        missing = [name for name in PROGRAMS if not shutil.which(name, path=PATH)]
        if missing:
            raise unittest.SkipTest(f"not installed: {', '.join(missing)}")
        if why := hosts.why_not():
            raise unittest.SkipTest(why)
        cls.shell = Shell()
        cls.addClassCleanup(cls.shell.close)
        cls.cluster = Cluster(cls.shell)
        cls.addClassCleanup(cls.cluster.stop)
        if why := cls.cluster.start():
            raise unittest.SkipTest(why)
        compile_plans(cls.shell)
        for ranks in (2, 4):
            cls.shell.must(*TRAIN, f"{ranks}.mwplan", "--transport", "threads", "--save", f"{ranks}.safetensors")

    def tearDown(self):
        self.cluster.run("scancel", "--user=root")

    def check(self, code, *command):
        done = self.cluster.run(*command)
        self.assertEqual(done.returncode, code, f"{' '.join(map(str, command))}\n{done.stdout}")
        return done.stdout

    def check_bits(self, name, expected):
        self.assertEqual(*((self.shell.path / f"{one}.safetensors").read_bytes() for one in (name, expected)))

    def wait_for(self, what, condition):
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.1)

    def said(self, name):
        path = self.shell.path / name
        return path.read_text(errors="replace") if path.exists() else ""

    def test_srun_gives_the_bits_of_one_process(self):
        for nodes, ranks in ((1, 2), (2, 2), (2, 4)):
            name = f"srun-{nodes}-{ranks}"
            said = self.check(0, "srun", "-N", nodes, "-n", ranks, "--overcommit", *TRAIN, f"{ranks}.mwplan",
                              "--save", f"{name}.safetensors")
            self.assertEqual(said.count("4 steps in"), 1, said)
            self.assertEqual(said.count("set MESHWORK_SECRET_FILE"), 1, said)
            self.check_bits(name, ranks)

    def test_steps_of_a_job_do_not_meet(self):
        command = " ".join([*RUN, "2.mwplan", "--steps", "40"])
        for seed in (1, 2):
            self.shell.must(f"build/bin/{command} --seed {seed} --transport threads --save seed-{seed}.safetensors")
        step = f"srun --overlap -N 2 -n 2 {command}"
        said = self.check(0, "salloc", "-N", "2", "-n", "2", "bash", "-c",
                          f"{step} --seed 1 --save step-1.safetensors & {step} --seed 2 --save step-2.safetensors && wait $!")
        self.assertEqual(said.count("40 steps in"), 2, said)
        for seed in (1, 2):
            self.check_bits(f"step-{seed}", f"seed-{seed}")

    def test_a_killed_rank_is_named(self):
        run = self.cluster.popen("srun", "-N", "2", "-n", "4", *RUN, "4.mwplan", "--steps", "1000000",
                                 "--metrics", "killed.jsonl")
        self.wait_for("the run does not begin", lambda: self.said("killed.jsonl").count("\n") > 2)
        self.cluster.kill_rank_3(self.cluster.run("squeue", "--noheader", "--steps", "--format=%i").stdout.strip())
        said, _ = run.communicate(timeout=TIMEOUT_S)
        self.assertEqual(run.returncode, KILLED, said)
        self.assertIn("the process of rank 3 has ended without a word", said)
        self.assertEqual(said.count("meshwork-run: error:"), 1, said)
        self.assertIn("task 3: Killed", said)
        self.assertEqual(set(re.findall(r"exit code (\d+)", said)), {str(RETRY)}, said)

    def test_a_batch_script_without_srun_is_one_process(self):
        command = " ".join([*TRAIN, "2.mwplan", "--save", "batch.safetensors"])
        self.check(0, "sbatch", "--wait", "-N", "2", "-n", "4", "-o", "batch.log", "--wrap", command)
        self.assertIn("4 steps in", self.said("batch.log"))
        self.check_bits("batch", 2)

    def test_another_manager_of_slurm(self):
        """Debian's Open MPI does not know PMI-2: MPI_Init would end the process."""
        for ranks in (1, 2):
            self.check(0, "srun", "--mpi=pmi2", "-n", ranks, *TRAIN, "2.mwplan", "--save", f"pmi2-{ranks}.safetensors")
            self.check_bits(f"pmi2-{ranks}", 2)

    def test_rank_0_on_another_host(self):
        command = ["srun", "-m", "arbitrary", "-w", "node2,node1", "-n", "2", *TRAIN, "2.mwplan", "--timeout", "3"]
        self.assertIn("srun put rank 0 on node2", self.check(SPEC, *command))
        self.check(0, "env", "MASTER_ADDR=node2", "MASTER_PORT=29500", *command, "--save", "other.safetensors")
        self.check_bits("other", 2)

    def test_the_example_goes_on(self):
        """First a rank is killed. Then the ranks get the signal that Slurm sends before the time limit."""
        command = ["4.mwplan", *RUN[1:], "--steps", "150", "--seed", "3"]
        self.shell.must(RUN[0], *command, "--transport", "threads", "--save", "whole.safetensors")
        job = self.check(0, "sbatch", "--parsable", "examples/cluster/train.sbatch", *command, "--checkpoint", "run",
                         "--checkpoint-every", "10", "--save", "parts.safetensors").strip()
        log, state = f"meshwork-{job}.log", lambda: self.cluster.run("scontrol", "show", "job", job).stdout
        self.wait_for("no checkpoint", lambda: "checkpoint: " in self.said(log))
        self.cluster.kill_rank_3(f"{job}.0")
        self.wait_for("no second attempt", lambda: "resumed from" in self.said(log))
        self.check(0, "scancel", "--signal=TERM", job)
        self.wait_for("the job does not end", lambda: "JobState=COMPLETED" in state() or "JobState=FAILED" in state())
        said = self.said(log)
        self.assertIn("ExitCode=0:0", state(), said)
        for line in ("restart 0, attempt 2 on node", "stopped by SIGTERM", "restart 1, attempt 1 on node"):
            self.assertIn(line, said)
        self.assertNotIn("restart 1, attempt 2", said)
        self.assertNotIn("set MESHWORK_SECRET_FILE", said)
        self.assertFalse((self.shell.path / f"secret-{job}").exists())
        self.check_bits("parts", "whole")


if __name__ == "__main__":
    unittest.main()
