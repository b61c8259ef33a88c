"""Event files hold the numbers of the metrics. They are read by field numbers that were copied from TensorFlow's
event.proto and summary.proto, and by a CRC-32C of another library."""
import json
import os
import re
import signal
import struct
import subprocess
import time
import unittest

import crc32c
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from job import MPIRUN
from shell import BIN, CANNOT_CREATE, ENVIRONMENT, ROOT, TIMEOUT_S, USAGE, Shell

DATA = ["--data", "README.md", "--tokenizer", "bytes"]
FULL, START = 74, 1


def event_class():
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="tensorflow", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto

    def message(name, *fields):
        made = file.message_type.add(name=name)
        for label, number, kind, repeated in fields:
            field = made.field.add(name=label, number=number, label=3 if repeated else 1)
            if isinstance(kind, str):
                field.type, field.type_name = kinds.TYPE_MESSAGE, ".tensorflow." + kind
            else:
                field.type = kind

    message("Value", ("tag", 1, kinds.TYPE_STRING, False), ("simple_value", 2, kinds.TYPE_FLOAT, False))
    message("Summary", ("value", 1, "Value", True))
    message("SessionLog", ("status", 1, kinds.TYPE_INT32, False))
    message("Event", ("wall_time", 1, kinds.TYPE_DOUBLE, False), ("step", 2, kinds.TYPE_INT64, False),
            ("file_version", 3, kinds.TYPE_STRING, False), ("summary", 5, "Summary", False),
            ("session_log", 7, "SessionLog", False))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("tensorflow.Event"))


Event = event_class()


def masked(data):
    sum = crc32c.crc32c(data)
    return ((sum >> 15 | sum << 17) + 0xa282ead8) & 0xffffffff


def records(path):
    """Whole ones, and how many bytes are behind the last."""
    data, at, found = path.read_bytes(), 0, []
    while at + 12 <= len(data):
        size, sum = struct.unpack_from("<QI", data, at)
        assert sum == masked(data[at:at + 8])
        if at + 16 + size > len(data):
            break
        record = data[at + 12:at + 12 + size]
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked(record)
        found.append(Event.FromString(record))
        at += 16 + size
    return found, len(data) - at


def f32(value):
    return struct.unpack("<f", struct.pack("<f", float(value)))[0]


def flat(name, value):
    """What a member of a metrics line is as scalars."""
    if isinstance(value, list):
        return {tag: number for i, one in enumerate(value) for tag, number in flat(f"{name}/{i}", one).items()}
    is_number = type(value) in (int, float) or value in ("NaN", "Infinity", "-Infinity")
    return {name: f32(value)} if is_number else {}


class TensorBoard(unittest.TestCase):
    cost_s = 8

    @classmethod
    def setUpClass(cls):
        cls.shell = Shell()
        cls.shell.must("meshwork", "compile", "examples/llama-tiny.json", "--spec", "examples/dp2.toml", "-o", "two.mwplan")

    @classmethod
    def tearDownClass(cls):
        cls.shell.close()

    def setUp(self):
        self.shell.run("rm -rf events log.jsonl kept")

    def train(self, *more, plan="two.mwplan"):
        return self.shell.must("meshwork-run", plan, *DATA, "--metrics", "log.jsonl", "--tensorboard", "events/here", *more)

    def files(self):
        return sorted((self.shell.path / "events/here").iterdir())

    def lines(self):
        return [json.loads(line) for line in self.shell.read("log.jsonl").splitlines()]

    def check(self, events, lines):
        self.assertEqual([event.step for event in events], [line["step"] for line in lines])
        for event, line in zip(events, lines):
            self.assertEqual(event.wall_time, line["time"])
            expected = {}
            for name, value in line.items():
                if name not in ("step", "time"):
                    expected.update(flat(name, value))
            self.assertEqual({one.tag: one.simple_value for one in event.summary.value}, expected)

    def test_numbers_are_those_of_the_metrics(self):
        self.train("--steps", 3, "--peak-tflops", 0.5, "--warmup-steps", 3)
        file, = self.files()
        self.assertRegex(file.name, r"^events\.out\.tfevents\.\d{10}\.")
        (first, *events), behind = records(file)
        self.assertEqual((first.file_version, behind), ("brain.Event:2", 0))
        self.check(events, self.lines())
        self.assertLessEqual({"loss", "lr", "grad_norm", "tokens_per_s", "mfu"},
                             {one.tag for one in events[0].summary.value})

    def test_arrays(self):
        self.shell.must("meshwork", "compile", "examples/mixtral-tiny.json", "--spec", "examples/ep2.toml", "-o", "experts.mwplan")
        self.train("--steps", 2, plan="experts.mwplan")
        (_, *events), _ = records(self.files()[0])
        self.check(events, self.lines())
        self.assertIn("expert_load/0/2", {one.tag for one in events[0].summary.value})

    def test_a_resume_has_a_new_file_that_purges(self):
        self.train("--steps", 4, "--checkpoint", "kept", "--checkpoint-every", 2)
        self.shell.run("rm -r kept/step-0000000004")
        self.train("--steps", 5, "--checkpoint", "kept", "--resume", "auto")
        before, after = self.files()
        (_, *old), _ = records(before)
        (_, purge, *new), _ = records(after)
        self.assertEqual([event.step for event in old], [0, 1, 2, 3])
        self.assertEqual((purge.session_log.status, purge.step), (START, 2))
        self.check(new, self.lines()[2:])
        self.train("--steps", 5, "--checkpoint", "kept", "--resume", "auto")  # has nothing left to do
        (first, *none), _ = records(self.files()[2])
        self.assertEqual(none, [])

    def test_files_of_one_second_are_in_order(self):
        for _ in range(3):
            self.train("--steps", 1)
        began = [records(file)[0][0].wall_time for file in self.files()]
        self.assertEqual(len(began), 3)
        self.assertEqual(began, sorted(began))

    def test_one_of_several_processes_writes(self):
        subprocess.run([*MPIRUN, "-n", "2", str(BIN / "meshwork-run"), "two.mwplan", *DATA, "--steps", "2", "--tensorboard",
                        "events/here"], cwd=self.shell.path, check=True, capture_output=True, env=ENVIRONMENT, timeout=TIMEOUT_S)
        file, = self.files()
        self.assertEqual([event.step for event in records(file)[0][1:]], [0, 1])

    def test_a_kill_leaves_whole_records(self):
        run = subprocess.Popen([str(BIN / "meshwork-run"), "two.mwplan", *DATA, "--steps", "1000000", "--tensorboard", "events/here"],
                               cwd=self.shell.path, stdout=subprocess.DEVNULL)
        self.addCleanup(run.kill)
        deadline = time.monotonic() + TIMEOUT_S
        while not list(self.shell.path.glob("events/here/*")) or self.files()[0].stat().st_size < 1000:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
        run.wait()
        events, _ = records(self.files()[0])
        self.assertEqual([event.step for event in events[1:]], list(range(len(events) - 1)))

    def test_a_full_disk_ends_the_run_with_its_weights(self):
        """A limit for files stands for it; the weights of a model this small are below."""
        small = {**json.loads((ROOT / "examples/llama-tiny.json").read_text()), "hidden_size": 16, "intermediate_size": 16,
                 "num_hidden_layers": 1}
        self.shell.write("small.json", json.dumps(small))
        self.shell.must("meshwork", "compile", "small.json", "--spec", "examples/dp1.toml", "-o", "small.mwplan")
        done = self.shell.run(f"ulimit -f 80; {BIN}/meshwork-run small.mwplan {' '.join(DATA)} --steps 1000000 "
                              "--tensorboard events/here --save w.safetensors")
        self.assertEqual(done.returncode, FULL, done.stderr)
        self.assertRegex(done.stderr, r'"events/here/events\.out\.tfevents\..*": cannot write: File too large')
        self.assertTrue((self.shell.path / "w.safetensors").exists())
        self.assertEqual(records(self.files()[0])[1], 0)

    def test_folders_that_cannot_be(self):
        self.shell.write("file", "")
        for code, folder, needle in ((CANNOT_CREATE, "file", "is no folder"), (CANNOT_CREATE, "file/below", "file"),
                                     (USAGE, "-", "--tensorboard")):
            self.shell.refuse(code, [needle], "meshwork-run", "two.mwplan", *DATA, "--steps", 1, "--tensorboard", folder)
        self.train("--steps", 1, "--checkpoint", "kept")
        inside, = (self.shell.path / "kept").iterdir()
        for folder in (inside, inside / "events"):
            self.shell.refuse(USAGE, ["would write into the checkpoint"], "meshwork-run", "two.mwplan", *DATA, "--steps", 1,
                              "--tensorboard", folder)

    def test_lines_for_weights_and_biases(self):
        """Those of the README, with a stand-in for the package."""
        text = (ROOT / "tools/meshwork-run/README.md").read_text()
        script = re.search(r"```sh\n(meshwork-run .*?wandb.*?)```", text, re.S)[1]
        script = script.replace("meshwork-run model.mwplan --data tokens.bin --steps 1000",
                                f"{BIN}/meshwork-run two.mwplan {' '.join(DATA)} --steps 5").replace("metrics.jsonl", "log.jsonl")
        self.shell.write("wandb.py", """
import json
class Run:
    def __init__(self, **given): self.out = open("sent.jsonl", "w"); self.say(given)
    def say(self, what): self.out.write(json.dumps(what) + "\\n")
    def log(self, numbers, step): self.say([step, numbers])
    def finish(self): self.say("finished"); self.out.close()
def init(**given): return Run(**given)
""")
        done = subprocess.run(["bash", "-ec", script], cwd=self.shell.path, capture_output=True, text=True, timeout=TIMEOUT_S,
                              env={**os.environ, "PYTHONPATH": str(self.shell.path)})
        self.assertEqual(done.returncode, 0, done.stderr)
        first, *sent, last = map(json.loads, self.shell.read("sent.jsonl").splitlines())
        self.assertEqual((first, last), ({"project": "meshwork"}, "finished"))
        expected = [[line["step"], {name: value for name, value in line.items() if type(value) in (int, float)}]
                    for line in self.lines()]
        self.assertEqual(len(expected), 5)
        self.assertEqual(sent, expected)


if __name__ == "__main__":
    unittest.main()
