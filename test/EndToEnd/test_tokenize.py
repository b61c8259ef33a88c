"""`meshwork tokenize`: what stands in the files, what is refused, and that nothing half-written has their names. A module
`tokenizers` of this test stands in for the library, a token for each byte; where MESHWORK_PYTHON has the library, it is
compared with that, too."""
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import time
import unittest

import numpy as np

import shell

REAL = os.environ.get("MESHWORK_PYTHON", "")
LIBRARY = '''
import json, time
class Encoding:
    def __init__(self, ids):
        self.ids = ids
class Tokenizer:
    @staticmethod
    def from_buffer(data):
        made = Tokenizer()
        made.told = json.loads(data)
        return made
    def no_truncation(self): pass
    def no_padding(self): pass
    def get_vocab(self):
        return {"last": self.told["vocabulary"] - 1, "<end>": 256}
    def token_to_id(self, token):
        return self.get_vocab().get(token)
    def encode_batch_fast(self, texts, add_special_tokens):
        assert not add_special_tokens
        time.sleep(self.told.get("seconds", 0))
        return [Encoding(list(text.encode())) for text in texts]
'''


def read_pair(stem):
    """Ids of each document."""
    index = pathlib.Path(f"{stem}.idx").read_bytes()
    assert index[:9] == b"MMIDIDX\0\0"
    version, kind, sequences, documents = struct.unpack_from("<QBQQ", index, 9)
    assert version == 1
    lengths = np.frombuffer(index, np.int32, sequences, 34)
    offsets = np.frombuffer(index, np.int64, sequences, 34 + 4 * sequences)
    firsts = np.frombuffer(index, np.int64, documents, 34 + 12 * sequences)
    assert len(index) == 34 + 12 * sequences + 8 * documents
    ids = np.fromfile(f"{stem}.bin", {8: np.uint16, 4: np.int32}[kind])
    np.testing.assert_array_equal(offsets, ids.itemsize * (np.cumsum(lengths) - lengths))
    ends = np.append(0, np.cumsum(lengths))
    return [ids[ends[a]:ends[b]] for a, b in zip(firsts, firsts[1:])]


class Tokenize(unittest.TestCase):
    def setUp(self):
        self.space = shell.Shell()
        self.addCleanup(self.space.close)
        self.folder = self.space.path
        (self.folder / "library").mkdir()
        (self.folder / "library/tokenizers.py").write_text(LIBRARY)
        self.environment = {**os.environ, "PYTHONPATH": str(self.folder / "library"), "MESHWORK_PYTHON": "/usr/bin/python3"}
        self.write("tokenizer.json", json.dumps({"vocabulary": 257}))
        self.write("a.jsonl", '{"text": "one\\u00e9"}\n\n{"text": "two", "n": 1}\n{"text": ""}\n')
        self.write("b.txt", "a text\nof two lines\n")

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def call(self, *arguments, before=(), **environment):
        return subprocess.run([*before, str(shell.BIN / "meshwork"), "tokenize", *map(str, arguments)], cwd=self.folder,
                              env={**self.environment, **environment}, capture_output=True, text=True)

    def made(self, *arguments, **environment):
        done = self.call(*arguments, "-o", "out.bin", **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check(self, found, expected):
        self.assertEqual([bytes(one.astype(np.uint8)) for one in found], expected)

    def test_documents_of_lines_and_of_texts(self):
        said = self.made("tokenizer.json", "a.jsonl", "b.txt")
        self.assertIn("28 tokens of 4 documents, 16 bits each, vocabulary 257", said)
        self.check(read_pair(self.folder / "out"), ["oneé".encode(), b"two", b"", b"a text\nof two lines\n"])
        told = json.loads((self.folder / "out.json").read_text())
        self.assertEqual((told["vocabulary"], told["tokens"], told["documents"]), (257, 28, 4))
        self.assertEqual(told["files"], ["a.jsonl", "b.txt"])

    def test_a_token_behind_each_document(self):
        self.made("tokenizer.json", "a.jsonl", "--end-of-document", "<end>")
        self.assertEqual([one[-1] for one in read_pair(self.folder / "out")], [256] * 3)

    def test_another_field_and_wider_ids(self):
        self.write("tokenizer.json", json.dumps({"vocabulary": 70000}))
        self.write("a.jsonl", '{"body": "x"}\n')
        self.assertIn("32 bits", self.made("tokenizer.json", "a.jsonl", "--field", "body"))
        self.assertEqual((self.folder / "out.bin").stat().st_size, 4)

    def test_prompts_and_answers(self):
        self.write("a.jsonl", '{"q": "two?", "a": "yes"}\n{"a": "b", "q": ""}\n{"q": "c", "a": ""}\n')
        for more, ends in (([], []), (["--end-of-document", "<end>"], [1])):
            said = self.made("tokenizer.json", "a.jsonl", "--prompt", "q", "--answer", "a", *more)
            self.assertRegex(said, rf"{9 + 3 * len(ends)} tokens of 3 documents, .*; {4 + 3 * len(ends)} tokens count as targets")
            documents = read_pair(self.folder / "out")
            self.assertEqual([bytes(one[:len(one) - len(ends)].astype(np.uint8)) for one in documents], [b"two?yes", b"b", b"c"])
            self.assertEqual(list((self.folder / "out.mask.bin").read_bytes()),
                             [0] * 4 + [1] * 3 + ends + [1] + ends + [0] + ends)
        self.made("tokenizer.json", "b.txt")  # A mask of other tokens would stay.
        self.assertFalse((self.folder / "out.mask.bin").exists())

    def test_a_run_learns_answers_alone(self):
        """The loss of a model that has learnt answers by heart falls to 0, whatever the prompts are."""
        random = np.random.default_rng(1)
        lines = [json.dumps({"q": "".join(map(chr, random.integers(97, 123, 24))), "a": "!" * 8}) for _ in range(200)]
        self.write("a.jsonl", "\n".join(lines))
        self.made("tokenizer.json", "a.jsonl", "--prompt", "q", "--answer", "a")
        config = {**json.loads((shell.ROOT / "examples/gpt2-tiny.json").read_text()), "vocab_size": 257}
        self.write("config.json", json.dumps(config))
        self.write("s.toml", '[mesh]\naxes = ["dp=2"]\n[batch]\nglobal = 4\nmicro = 2\nsequence = 64\ndocument_end_loss = false\n')
        self.space.must("meshwork", "compile", self.folder / "config.json", "--spec", self.folder / "s.toml", "-o",
                        self.folder / "m.mwplan")
        losses = []
        for _ in range(2):
            self.space.must("meshwork-run", "m.mwplan", "--data", "out", "--steps", 60, "--lr", "1e-2", "--metrics", "log.jsonl")
            losses.append(json.loads(self.space.read("log.jsonl").splitlines()[-1])["loss"])
            (self.folder / "out.mask.bin").unlink(missing_ok=True)
        self.assertLess(losses[0], 0.2)
        self.assertGreater(losses[1], 1)  # without a mask the prompts count, which nobody can foresee

    def test_a_long_text_is_one_document(self):
        """Of lines, and of one line without an end."""
        for text in (b"a line of some length\n" * 150000, b"x" * 3000000):
            self.write("long.txt", text)
            self.made("tokenizer.json", "long.txt")
            self.check(read_pair(self.folder / "out"), [text])

    def test_memory_does_not_grow_with_the_text(self):
        """Two batches of 4 MiB are there at a time, and a list of ids takes 8 bytes for a token. Where the two meet, and
        so the peak, is up to the scheduler: 64 MiB. A text that stayed would add 100 MB, its ids 800 MB."""
        peaks = []
        for size in (20 << 20, 120 << 20):
            # Not at once: a child's peak begins with what its parent has.
            with open(self.folder / "long.txt", "wb") as file:
                for _ in range(size >> 20):
                    file.write(b"a line of some length\n" * ((1 << 20) // 22))
            process = subprocess.Popen([str(shell.BIN / "meshwork"), "tokenize", "tokenizer.json", "long.txt", "-o", "out.bin"],
                                       cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            peaks.append(usage.ru_maxrss)  # KiB
        self.assertLess(peaks[1], peaks[0] + (64 << 10))
        self.assertLess(peaks[1], 1 << 20)

    def test_from_a_text_to_a_model(self):
        """The commands of the launcher's README. The loss of what is held out halves, and the export has it."""
        readme = (shell.ROOT / "tools/meshwork-run/README.md").read_text()
        block = readme.split("## From a text to a model")[1].split("```")[1]
        config = json.loads((shell.ROOT / "examples/llama-tiny.json").read_text())
        (self.folder / "model").mkdir()
        self.write("model/config.json", json.dumps({**config, "vocab_size": 257}))
        self.write("model/tokenizer.json", json.dumps({"vocabulary": 257}))
        self.write("spec.toml", (shell.ROOT / "examples/dp2.toml").read_bytes())
        texts = [path.read_bytes() for path in sorted(shell.ROOT.glob("*/**/README.md")) if "build" not in path.parts]
        self.write("text.txt", b"".join(texts[1:]))
        self.write("other.txt", texts[0])
        said = []
        for line in block.strip().splitlines():
            done = subprocess.run([str(shell.BIN / line.split()[0]), *line.split()[1:]], cwd=self.folder, env=self.environment,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}{done.stderr}")
            said += [float(loss) for loss in re.findall(r"evaluation loss ([\d.]+), p", done.stdout)]
        self.assertEqual(len(said), 4 + 4 + 1)  # each 50 steps, and the end
        self.assertLess(said[7], 5.55 / 2)  # log 257: it knew nothing
        self.assertLess(said[8], 5.55 / 2)

    def test_the_launcher_reads_it(self):
        self.write("long.txt", (shell.ROOT / "README.md").read_bytes()[:4000])
        self.made("tokenizer.json", "long.txt", "long.txt")
        config = {**json.loads((shell.ROOT / "examples/gpt2-tiny.json").read_text()), "vocab_size": 257}
        self.write("config.json", json.dumps(config))
        self.write("s.toml", '[mesh]\naxes = ["dp=1"]\n[batch]\nglobal = 2\nmicro = 2\nsequence = 16\ndocuments = "separate"\n')
        self.space.must("meshwork", "compile", self.folder / "config.json", "--spec", self.folder / "s.toml", "-o",
                        self.folder / "m.mwplan")

        def run():
            return subprocess.run([str(shell.BIN / "meshwork-run"), "m.mwplan", "--data", "out.bin", "--steps", "1"],
                                  cwd=self.folder, capture_output=True, text=True)

        done = run()
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r'(?m)^data "out.bin": 1 file, \d+ tokens, largest id \d+ of a vocabulary of 257, '
                                      r'2 documents, \d+ windows$')
        told = json.loads((self.folder / "out.json").read_text())
        for change, said in (({"vocabulary": 300}, "is of a tokenizer with 300 ids"), ({"tokens": 3}, "tells of 3: they are of two")):
            self.write("out.json", json.dumps({**told, **change}))
            done = run()
            self.assertEqual(done.returncode, 65)
            self.assertIn(said, done.stderr)
        for other in ("{}", "[" * 1000, '{"tokenizer_sha256": 1, "vocabulary": -1, "tokens": 0}'):
            self.write("out.json", other)
            self.assertEqual(run().returncode, 0)

    def test_what_is_refused(self):
        self.write("bad.jsonl", '{"text": "x"}\n{"text": 3}\n')
        self.write("none.jsonl", "no json\n")
        self.write("deep.jsonl", "[" * 100000 + "\n")
        self.write("latin.txt", b"caf\xe9\n")
        self.write("chat.jsonl", '{"messages": [{"role": "user", "content": "x"}]}\n')
        self.write("out.mask.bin", "x")
        (self.folder / "mask.jsonl").symlink_to("out.mask.bin")
        self.write("empty.txt", "")
        (self.folder / "dir.bin").mkdir()
        os.mkfifo(self.folder / "pipe.txt")
        before = sorted(os.listdir(self.folder))
        for code, said, *arguments in (
                (64, "expected a name that ends in .jsonl or .txt", "tokenizer.json", "tokenizer.json", "-o", "x.bin"),
                (64, "expected a name that ends in .bin", "tokenizer.json", "b.txt", "-o", "x"),
                (64, "is no token of the tokenizer", "tokenizer.json", "b.txt", "-o", "x.bin", "--end-of-document", "<eos>"),
                (64, "would be overwritten", "tokenizer.json", "b.txt", "-o", "tokenizer.bin"),
                (64, "--field excludes --prompt", "tokenizer.json", "a.jsonl", "-o", "x.bin", "--prompt", "a", "--answer", "b",
                 "--field", "c"),
                (64, "--prompt requires --answer", "tokenizer.json", "a.jsonl", "-o", "x.bin", "--prompt", "a"),
                (64, "--answer requires --prompt", "tokenizer.json", "a.jsonl", "-o", "x.bin", "--answer", "a"),
                (64, "are fields of .jsonl, found a plain text", "tokenizer.json", "b.txt", "-o", "x.bin", "--prompt", "a",
                 "--answer", "b"),
                (64, "would be overwritten", "tokenizer.json", "mask.jsonl", "-o", "out.bin"),
                (65, 'has no text in "q", found "text"; give --prompt and --answer', "tokenizer.json", "a.jsonl", "-o", "x.bin",
                 "--prompt", "q", "--answer", "text"),
                (65, "chat templates are not applied", "tokenizer.json", "chat.jsonl", "-o", "x.bin"),
                (65, "is no tokenizer.json", "b.txt", "b.txt", "-o", "x.bin"),
                (65, 'bad.jsonl":2: has no text in "text"', "tokenizer.json", "bad.jsonl", "-o", "x.bin"),
                (65, 'has no text in "body", found "text"', "tokenizer.json", "a.jsonl", "-o", "x.bin", "--field", "body"),
                (65, 'none.jsonl":1: is no JSON', "tokenizer.json", "none.jsonl", "-o", "x.bin"),
                (65, 'deep.jsonl":1: is no JSON', "tokenizer.json", "deep.jsonl", "-o", "x.bin"),
                (65, "is no UTF-8: byte 3 of it is 0xe9", "tokenizer.json", "latin.txt", "-o", "x.bin"),
                (65, "the texts have no token", "tokenizer.json", "empty.txt", "-o", "x.bin"),
                (66, "cannot open", "tokenizer.json", "absent.txt", "-o", "x.bin"),
                (66, "is no regular file", "tokenizer.json", "pipe.txt", "-o", "x.bin"),
                (66, "cannot open", "absent.json", "b.txt", "-o", "x.bin"),
                (73, "is a folder", "tokenizer.json", "b.txt", "-o", "dir.bin"),
                (73, "No such file", "tokenizer.json", "b.txt", "-o", "absent/x.bin")):
            with self.subTest(said, arguments=arguments):
                done = self.call(*arguments)
                self.assertIn(said, done.stderr)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_without_the_library(self):
        done = self.call("tokenizer.json", "b.txt", "-o", "x.bin", PYTHONPATH="")
        if "has no module 'tokenizers'" not in done.stderr:
            self.skipTest("Debian's Python has tokenizers here")
        self.assertEqual(done.returncode, 69)
        self.assertIn("pip install tokenizers\n  export MESHWORK_PYTHON=", done.stderr)
        done = self.call("tokenizer.json", "b.txt", "-o", "x.bin", MESHWORK_PYTHON="/absent")
        self.assertEqual((done.returncode, "cannot run" in done.stderr), (69, True))

    def test_a_full_disk_and_a_kill_leave_nothing(self):
        self.write("long.txt", b"a line of some length\n" * 150000)
        before = sorted(os.listdir(self.folder))
        done = self.call("tokenizer.json", "long.txt", "-o", "x.bin", before=("bash", "-c", 'ulimit -f 100; exec "$@"', "bash"))
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        self.write("tokenizer.json", json.dumps({"vocabulary": 257, "seconds": 10}))
        process = subprocess.Popen([str(shell.BIN / "meshwork"), "tokenize", "tokenizer.json", "long.txt", "-o", "x.bin"],
                                   cwd=self.folder, env=self.environment, stderr=subprocess.PIPE,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a job of a script ignores it
        deadline = time.monotonic() + 20
        while not list(self.folder.glob(".x.bin.partial*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), 130)
        process.stderr.close()
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    @unittest.skipUnless(REAL, "MESHWORK_PYTHON names no Python with tokenizers")
    def test_ids_are_the_librarys(self):
        text = (shell.ROOT / "README.md").read_text()
        self.write("t.txt", text)
        self.write("d.jsonl", "".join(json.dumps({"text": part}) + "\n" for part in text.split("\n\n")))
        train = """
import json, sys
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
made = Tokenizer(models.BPE())
made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
alphabet = pre_tokenizers.ByteLevel.alphabet()
made.train(["t.txt"], trainers.BpeTrainer(vocab_size=600, special_tokens=["<end>"], initial_alphabet=alphabet))
made.save("real.json")
texts = [json.loads(line)["text"] for line in open("d.jsonl")] + [open("t.txt").read()]
print(json.dumps([made.encode(one).ids for one in texts]))
"""
        done = subprocess.run([REAL, "-c", train], cwd=self.folder, capture_output=True, text=True, check=True)
        self.made("real.json", "d.jsonl", "t.txt", PYTHONPATH="", MESHWORK_PYTHON=REAL)
        self.assertEqual([one.tolist() for one in read_pair(self.folder / "out")], json.loads(done.stdout))


if __name__ == "__main__":
    unittest.main()
