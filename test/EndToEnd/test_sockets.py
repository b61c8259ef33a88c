"""Ranks as processes that any launcher started, by its variables, without MPI: the same bits as
ranks of one process, and what happens when one is missing, killed, stopped, or when strangers come."""
import os
import signal
import socket
import subprocess
import time
import unittest

from job import children_of
from launched import COLLECTIVES, DATA, HALF_A_MINUTE, RETRY, RUN, Launched, compile_plans, forever, free_port, wait_for_steps
from shell import SPEC, TIMEOUT_S, Shell

TERMINATED, UNAVAILABLE = 143, 69
READY = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"  # of ZeroMQ
WELL, ENDED = [0] * 4, [TERMINATED, 0, 0, 0]  # one tells


def is_here(host):
    """Some machines have no IPv6, or do not know their own name."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as one:
            one.bind(address)
        return True
    except OSError:
        return False


class Sockets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shell = Shell()
        compile_plans(cls.shell)

    @classmethod
    def tearDownClass(cls):
        cls.shell.close()

    def outputs(self, way):
        return ["--save", f"{way}.safetensors", "--save-gradients", f"{way}-gradients.safetensors", "--checkpoint", f"{way}-run"]

    def check_bits(self, way):
        for kind in ("", "-gradients"):
            self.assertEqual((self.shell.path / f"{way}{kind}.safetensors").read_bytes(),
                             (self.shell.path / f"threads{kind}.safetensors").read_bytes())

    def test_same_bits_as_in_one_process(self):
        for ranks in (2, 4):
            command = ["meshwork-run", f"{ranks}.mwplan", *DATA, "--steps", "4", "--seed", "3"]
            self.shell.must(*command, *self.outputs("threads"))
            way = f"sockets-{ranks}"
            for secret in (None, "of this job"):
                run = Launched(self, range(ranks), RUN, *command[1:], *self.outputs(f"{way}-{bool(secret)}"),
                               MESHWORK_SECRET=secret)
                codes, said = run.finish()
                self.assertEqual(codes, WELL[:ranks], said)
                self.assertEqual(said.count("4 steps in"), 1, said)
                self.check_bits(f"{way}-{bool(secret)}")
            subprocess.run(["rm", "-r", "threads-run"], cwd=self.shell.path, check=True)

    def test_collectives_and_transfers(self):
        for secret in (None, "of this job"):
            codes, said = Launched(self, range(4), str(COLLECTIVES), MESHWORK_SECRET=secret).finish()
            self.assertEqual(codes, WELL, said)
            self.assertIn("1000 collectives on 4 ranks", said)

    def test_a_secret_in_a_file(self):
        self.shell.write("own", "of this job")
        os.chmod(self.shell.path / "own", 0o600)
        command = RUN, "2.mwplan", *DATA, "--steps", "1"
        codes, said = Launched(self, range(2), *command, MESHWORK_SECRET_FILE="own",
                               more={1: {"MESHWORK_SECRET_FILE": None, "MESHWORK_SECRET": "of this job"}}).finish()
        self.assertEqual(codes, [0, 0], said)

    def test_variables_of_srun(self):
        slurm = {"MASTER_ADDR": None, "MASTER_PORT": None, "RANK": None, "WORLD_SIZE": None, "SLURM_STEP_NUM_TASKS": 2,
                 "SLURM_NTASKS": 2, "SLURM_STEP_NODELIST": "localhost", "SLURM_JOB_ID": free_port(), "SLURM_STEP_ID": 0}
        codes, said = Launched(self, range(2), RUN, "2.mwplan", *DATA, "--steps", "1", **slurm,
                               more={rank: {"SLURM_PROCID": rank} for rank in range(2)}).finish()
        self.assertEqual(codes, [0, 0], said)

    def test_other_names_of_this_host(self):
        for host in filter(is_here, ("localhost", "127.0.1.1", "::1", socket.gethostname())):
            codes, said = Launched(self, range(2), RUN, "2.mwplan", *DATA, "--steps", "1", MASTER_ADDR=host).finish()
            self.assertEqual(codes, [0, 0], f"{host}: {said}")
            self.assertEqual(said.count("set MESHWORK_SECRET_FILE"), host == socket.gethostname(), said)

    def refuse(self, code, needle, ranks, *options, command=(RUN, "2.mwplan", *DATA, "--steps", "1"), **variables):
        codes, said = Launched(self, ranks, *command, *options, **variables).finish()
        self.assertIn(code, codes, said)
        self.assertIn(needle, said)
        return said

    def test_wrong_starts(self):
        few = ("--timeout", "3")
        self.refuse(RETRY, "rank 1 did not come to rank 0 at 127.0.0.1:", [0], *few, size=2)
        self.refuse(RETRY, "rank 1 has waited 3 s for rank 0 at 127.0.0.1:", [1], *few, size=2)
        self.refuse(RETRY, "has every rank the same secret", [0, 1], *few, more={1: {"MESHWORK_SECRET": "another"}},
                    MESHWORK_SECRET="one")
        self.refuse(SPEC, "two processes say that they are rank 1", [0, 1, 1], "--timeout", "60", size=3)
        self.refuse(SPEC, "the plan is for 2 ranks, torchrun started 3", [0, 1, 2])
        self.refuse(SPEC, 'MASTER_PORT is "99999", expected a port from 1 to 65535', [0], size=2, MASTER_PORT=99999)
        self.refuse(SPEC, "set MASTER_ADDR and MASTER_PORT", [0], size=2, MASTER_ADDR=None)
        self.refuse(SPEC, "leave out --transport mpi", [0], "--transport", "mpi", size=2)
        self.shell.write("secret", "known to all")
        os.chmod(self.shell.path / "secret", 0o644)
        self.refuse(SPEC, "mode 0600", [0], size=2, MESHWORK_SECRET_FILE="secret")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            self.refuse(UNAVAILABLE, "choose another port by MASTER_PORT or MESHWORK_PORT", [0], size=2,
                        port=taken.getsockname()[1])

    def forever(self, *options, **how):
        return forever(self, 4, *options, **how)

    def test_a_killed_rank_is_named(self):
        run = self.forever()
        run.runs[2].kill()
        begin = time.monotonic()
        codes, said = run.finish()
        self.assertEqual(codes[2], -signal.SIGKILL)
        self.assertEqual([codes[i] for i in (0, 1, 3)], [RETRY] * 3, said)
        self.assertIn("the process of rank 2 has ended without a word", said)
        self.assertEqual(said.count("meshwork-run: error:"), 1, said)
        self.assertLess(time.monotonic() - begin, HALF_A_MINUTE)

    def test_a_stopped_rank_is_named_with_its_collective(self):
        run = self.forever("--timeout", "2")
        run.runs[1].send_signal(signal.SIGSTOP)
        for rank in (0, 2, 3):
            run.runs[rank].wait(TIMEOUT_S)
        run.runs[1].kill()
        codes, said = run.finish()
        self.assertEqual([codes[i] for i in (0, 2, 3)], [RETRY] * 3, said)
        self.assertRegex(said, r"rank 1 did not arrive at .* within 2 s and does not answer")
        self.assertEqual(said.count("meshwork-run: error:"), 1, said)

    def test_processes_that_are_started_again_meet_again(self):
        """Each watches over itself (--restarts). One is killed, then the first; the end is that of a quiet run."""
        command = RUN, "4.mwplan", *DATA, "--steps", "120", "--checkpoint-every", "10"
        self.shell.must("meshwork-run", *command[1:], "--checkpoint", "quiet", "--save", "quiet.safetensors")
        run = Launched(self, range(4), *command, "--checkpoint", "again", "--restarts", "3", "--save", "again.safetensors",
                       "--metrics", "again.jsonl")
        for rank, steps in ((2, 15), (0, 60)):
            wait_for_steps(self, self.shell.path / "again.jsonl", run, steps)
            os.kill(children_of(run.runs[rank].pid)[0], signal.SIGKILL)
        codes, said = run.finish()
        self.assertEqual(codes, WELL, said)
        for told in ("rank 2: the run was killed by signal 9", "rank 0: the run was killed by signal 9",
                     "rank 3: the run ended with exit code 75"):
            self.assertIn(told, said)
        self.assertEqual(*((self.shell.path / f"{name}.safetensors").read_bytes() for name in ("quiet", "again")))

    def test_who_does_not_come_back_is_named(self):
        """The last rank is not watched over: the others wait for it in vain, and their restarts are used up."""
        watched = ["sh", "-c", 'exec "$@" --restarts 1', "sh"]
        run = self.forever("--checkpoint", "gone", "--timeout", "4", within={rank: watched for rank in range(3)})
        run.runs[3].kill()
        codes, said = run.finish()
        self.assertEqual(codes[:3], [RETRY] * 3, said)
        self.assertIn("rank 3 did not come to rank 0", said)
        self.assertIn("all 1 restarts are used up", said)

    def test_a_signal_ends_after_the_step_and_saves(self):
        run = self.forever("--save", "stopped.safetensors")
        run.runs[3].send_signal(signal.SIGTERM)
        codes, said = run.finish()
        self.assertEqual(codes, ENDED, said)
        self.assertTrue((self.shell.path / "stopped.safetensors").exists(), said)

    def test_strangers_change_nothing(self):
        """Connections that come before the ranks, some of which say something. Later ones do not come in."""
        command = RUN, "4.mwplan", *DATA, "--steps", "1000000", "--metrics", "strangers.jsonl"
        first = Launched(self, [0], *command, size=4)
        handles = lambda: len(os.listdir(f"/proc/{first.runs[0].pid}/fd"))
        strangers = [self.stranger(first.port, i) for i in range(300)]
        others = Launched(self, [1, 2, 3], *command, size=4, port=first.port)
        wait_for_steps(self, self.shell.path / "strangers.jsonl", first)
        with self.assertRaises(TimeoutError):
            socket.create_connection(("127.0.0.1", first.port), timeout=1)
        # Five seconds for those that say nothing that it knows; a hundred speak ZeroMQ's protocol.
        deadline = time.monotonic() + TIMEOUT_S
        while handles() > 200:
            self.assertLess(time.monotonic(), deadline, "connections of strangers stay open")
            time.sleep(0.2)
        for one in strangers:
            one.close()
        first.runs[0].send_signal(signal.SIGTERM)
        self.assertEqual(first.finish()[0] + others.finish()[0], ENDED)

    def stranger(self, port, number):
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                one = socket.create_connection(("127.0.0.1", port), timeout=5)
                break
            except ConnectionRefusedError:  # not there yet
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
        self.addCleanup(one.close)
        one.sendall((b"", os.urandom(100), b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48) + READY)[number % 3])
        return one


if __name__ == "__main__":
    unittest.main()
