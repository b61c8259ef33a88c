"""`--samples documents`: each sample begins with a document and holds whole ones, longer ones are cut, padding counts
nowhere. Loss and gradients are those of PyTorch with labels of -100, on one rank and on several."""
import json
import pathlib
import struct
import unittest

import numpy as np
import torch

import models
import oracle
import philox
import tools
from kernels import Apart, Reference
from test_cuda import ONE, emulated
from test_document_keys import NO_ENDS
from test_documents import LAYOUTS, Documents
from test_sharded import BATCH, GPT2, LLAMA, SEQUENCE, spec
from tools import APART

ROOM = SEQUENCE + 1
# One that just fits, ones that are cut, an empty one, and short ones.
LENGTHS = [5, 9, ROOM, 3, 40, 2, 1, 0, 7, 20, 6, ROOM + 1, 4, 4, 4, 4, 11, 16, 8]
VOCABULARY = 136


class Ignored:
    def cross_entropy(self, logits, targets):
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


class IgnoredJoined(Ignored, Reference):
    pass


class IgnoredApart(Ignored, Apart):
    pass


def packed():
    """(tokens of each document) of each sample: as many as fit, in their order."""
    ids, samples, open_ = np.random.default_rng(5).integers(0, VOCABULARY, sum(LENGTHS)), [], False
    for document in np.split(ids, np.cumsum(LENGTHS)[:-1]):
        if len(document) == 0:
            continue
        if open_ and sum(map(len, samples[-1])) + len(document) <= ROOM:
            samples[-1].append(document)
        else:
            samples.append([document[:ROOM]])
        open_ = len(document) <= ROOM
    return ids, samples


def rows(sample, mask=None):
    """Tokens, targets and begins of a sample; `mask` of its tokens."""
    tokens = np.concatenate(sample)
    begins = np.repeat(np.cumsum([0, *map(len, sample[:-1])]), [len(one) for one in sample])
    labels = tokens if mask is None else np.where(mask[:len(tokens)], tokens, -100)
    targets = np.full(SEQUENCE, -100)
    targets[:len(tokens) - 1] = np.where(begins[1:] == begins[:-1], labels[1:], -100)
    pad = np.zeros(ROOM - len(tokens), int)
    return np.append(tokens, pad)[:SEQUENCE], targets, np.append(begins, pad + len(tokens))[:SEQUENCE]


class Packed(unittest.TestCase):
    cost_s = 25
    check, random_weights = Documents.check, staticmethod(Documents.random_weights)

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace(**emulated())
        cls.addClassCleanup(cls.space.close)
        cls.all_ids, cls.samples = packed()

    def data(self, mask=None, ids=None):
        path = pathlib.Path(self.space.file(".bin"))
        path.write_bytes((self.all_ids if ids is None else ids).astype("<u2").tobytes())
        lengths = np.array(LENGTHS)
        path.with_suffix(".idx").write_bytes(
            b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1) + lengths.astype("<i4").tobytes() +
            (2 * (np.cumsum(lengths) - lengths)).astype("<i8").tobytes() + np.arange(len(lengths) + 1).astype("<i8").tobytes())
        if mask is not None:
            path.with_suffix(".mask.bin").write_bytes(bytes(mask))
        return path

    def run_packed(self, config, text, *options, steps=1, data=None):
        plan, weights = self.space.compile(config, text), self.space.save_weights(self.random_weights(config))
        metrics, gradients, out = self.space.file(".jsonl"), self.space.file(".safetensors"), self.space.file(".safetensors")
        done = self.space.must("meshwork-run", plan, "--data", data or self.data(), "--samples", "documents", "--steps", steps,
                               "--lr", 0, "--init", weights, "--metrics", metrics, "--save-gradients", gradients, "--save", out,
                               *options)
        lines = pathlib.Path(metrics).read_text().splitlines()
        return tools.Run(list(map(json.loads, lines)), out, gradients, done.stdout)

    def chosen(self, step, order="random"):
        return [philox.window([[len(self.samples) + 1]], 1, 0, step, i, step * BATCH + i, order)[1] for i in range(BATCH)]

    def expected(self, config, chosen, apart, mask=None):
        made = []
        for i in chosen:
            made.append(rows(self.samples[i], None if mask is None else mask[self.place(i):self.place(i) + ROOM]))
        tokens, targets, begins = (torch.from_numpy(np.stack(part)) for part in zip(*made))
        arrays = {n: w.detach().numpy() for n, w in self.random_weights(config).items()}
        return oracle.gradients(config, models.weights_from(config, arrays), tokens, targets,
                                kernels=IgnoredApart(begins) if apart else IgnoredJoined())

    def place(self, number):
        """The sample's first token in the file."""
        firsts = [int(end) - size for end, size in zip(np.cumsum(LENGTHS), LENGTHS) if size]
        return firsts[sum(map(len, self.samples[:number]))]

    def test_gradients(self):
        for config in (GPT2, LLAMA):
            for keys in (NO_ENDS, APART):
                expected = self.expected(config, self.chosen(0), keys is APART)
                for layout in (ONE, LAYOUTS[0], LAYOUTS[-1]):
                    with self.subTest(config["model_type"], keys=keys, layout=layout):
                        self.check(self.run_packed(config, spec(*layout, documents=keys)), expected)

    def test_masks_and_pipelines(self):
        mask = np.random.default_rng(2).random(sum(LENGTHS)) < 0.4
        expected = self.expected(LLAMA, self.chosen(0), True, mask)
        for axes, micro in ((["pp=2"], 1), (["pp=2", "dp=2"], 1), (["dp=1"], 4)):
            with self.subTest(axes=axes):
                text = tools.spec(BATCH, micro, SEQUENCE, documents="apart", mesh={"axes": axes})
                self.check(self.run_packed(LLAMA, text, data=self.data(mask)), expected)

    def test_an_epoch_reads_each_sample_once(self):
        steps = -(-2 * len(self.samples) // BATCH)
        run = self.run_packed(LLAMA, spec(*ONE, documents=NO_ENDS), "--order", "epochs", steps=steps)
        read = [self.chosen(step, "epochs") for step in range(steps)]
        self.assertEqual(sorted(sum(read, [])[:len(self.samples)]), list(range(len(self.samples))))
        counts = [sum(min(SEQUENCE, sum(map(len, self.samples[i]))) for i in chosen) for chosen in read]
        self.assertEqual([line["tokens"] for line in run.metrics], np.cumsum(counts).tolist(), "padding is no token")
        for line, count in zip(run.metrics, counts):
            self.assertAlmostEqual(line["tokens_per_s"] * line["step_ms"] / 1e3 / count, 1, delta=1e-4)
        for step in range(0, steps, 3):
            self.assertAlmostEqual(run.losses[step] / self.expected(LLAMA, read[step], False)[0], 1, delta=1e-5)
        cut = [length - ROOM for length in LENGTHS if length > ROOM]
        self.assertRegex(run.said, rf'data ".*": 1 file, {sum(LENGTHS)} tokens, largest id \d+ of a vocabulary of {VOCABULARY}, '
                                   rf'{len(LENGTHS)} documents, {len(self.samples)} samples of whole documents; {len(cut)} longer '
                                   rf'ones cut, {sum(cut)} tokens of that not read; in {steps} steps it is read ')

    def test_tokens_go_on_without_padding(self):
        """After a resume, too."""
        folder, options = self.space.file(".run"), ["--order", "epochs", "--checkpoint"]
        whole = self.run_packed(LLAMA, spec(*LAYOUTS[0], documents=NO_ENDS), *options, self.space.file(".run"), steps=4)
        self.run_packed(LLAMA, spec(*LAYOUTS[0], documents=NO_ENDS), *options, folder, steps=2)
        metrics = self.space.file(".jsonl")
        self.space.must("meshwork-run", self.space.compile(LLAMA, spec(*ONE, documents=NO_ENDS)), "--data", self.data(), "--samples",
                        "documents", "--steps", 4, *options, folder, "--resume", "auto", "--metrics", metrics)
        again = [json.loads(line)["tokens"] for line in pathlib.Path(metrics).read_text().splitlines()]
        self.assertEqual(again, [line["tokens"] for line in whole.metrics][2:])

    def test_weights_share_samples_of_two_sources(self):
        """As they share windows: of each 1024 samples so many."""
        count, last = len(self.samples), VOCABULARY - 1
        more = ("--data", self.data(ids=last - self.all_ids), "--data-weights", "1,3", "--order", "epochs")
        run = self.run_packed(LLAMA, spec(*ONE, documents=NO_ENDS), *more, steps=3)
        self.samples = self.samples + [[last - document for document in one] for one in self.samples]
        for step in range(3):
            found = [philox.window([[count + 1]] * 2, 1, 0, step, i, step * BATCH + i, "epochs", [1, 3]) for i in range(BATCH)]
            chosen = [file * count + place for file, place in found]
            self.assertAlmostEqual(run.losses[step] / self.expected(LLAMA, chosen, False)[0], 1, delta=1e-5)

    def test_what_is_refused(self):
        pair, raw = self.data(), self.space.tokens(np.arange(100))
        for code, keys, arguments, said in (
                (64, {}, ("--data", pair), "but the plan counts all targets"),
                (64, NO_ENDS, ("--data", pair, "--document-end", 3), "leave --document-begin and --document-end out"),
                (64, NO_ENDS, ("--data", raw, "--data-type", "u16"), "does not tell where its documents begin")):
            with self.subTest(said):
                plan = self.space.compile(LLAMA, spec(*ONE, documents=keys))
                done = self.space.call("meshwork-run", plan, "--samples", "documents", "--steps", 1, *arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(said, done.stderr)
        experts = json.loads((tools.ROOT / "examples/mixtral-tiny.json").read_text())
        plan = self.space.compile(experts, tools.spec(4, 4, 16, documents=NO_ENDS))
        done = self.space.call("meshwork-run", plan, "--samples", "documents", "--steps", 1, "--data", pair)
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("would send padding to experts", done.stderr)


del Documents  # Its tests run where they are.

if __name__ == "__main__":
    unittest.main()
