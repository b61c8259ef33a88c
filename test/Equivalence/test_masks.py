"""Targets that a mask beside the tokens leaves out (x.mask.bin of x.bin): loss and gradients are those of PyTorch with
labels of -100, which it ignores, on one rank and on several; and of Transformers, where it is there."""
import json
import pathlib
import subprocess
import unittest

import numpy as np
import torch

import configs
import models
import oracle
import safetensors
import tools
from kernels import Reference
from test_cuda import APPROXIMATE, GPU, ONE, emulated
from test_document_keys import NO_ENDS, PYTHON
from test_documents import F32, LAYOUTS, MARK, Documents
from test_parallel import RATE
from test_sharded import BATCH, GPT2, LLAMA, SEQUENCE, spec

SEED, LENGTH = 4, 20000  # The windows of the step do not overlap.
# In a batch: no target, one, all, and some. Ranks of data parallelism and microbatches have as many as that.
COUNTS = (0, 1, SEQUENCE, 7)
LABELS = """
import json, sys, torch
from transformers import AutoModelForCausalLM, logging
logging.set_verbosity_error()
work = json.load(open(sys.argv[1]))
model = AutoModelForCausalLM.from_pretrained(work["model"], attn_implementation="eager").double().eval()
loss = model(input_ids=torch.tensor(work["ids"]), labels=torch.tensor(work["labels"])).loss
loss.backward()
torch.save((loss.item(), {n: p.grad for n, p in model.named_parameters()}), work["out"])
"""


class Ignored(Reference):
    def cross_entropy(self, logits, targets):
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


def starts():
    places, _ = oracle.windows(np.arange(LENGTH), BATCH, SEQUENCE, SEED, 0)
    return places[:, 0].tolist()


def masked(counts=COUNTS):
    """A mask of a file of LENGTH tokens, with so many targets in each window of the first step."""
    mask = np.ones(LENGTH, np.uint8)
    for i, (start, count) in enumerate(zip(starts(), counts)):
        chosen = np.random.default_rng(i).permutation(SEQUENCE)[:count]
        mask[start + 1:start + 1 + SEQUENCE] = np.isin(np.arange(SEQUENCE), chosen)
    return mask


class Masks(unittest.TestCase):
    cost_s = 40
    check, random_weights = Documents.check, staticmethod(Documents.random_weights)

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace(**emulated())
        cls.addClassCleanup(cls.space.close)

    def test_windows_do_not_overlap(self):
        ordered = sorted(starts())
        self.assertTrue(all(b - a > SEQUENCE + 1 for a, b in zip(ordered, ordered[1:])))

    def ids(self, config):
        ids = configs.corpus(config["vocab_size"], LENGTH)
        ids = np.where(ids == MARK, 1, ids)
        ids[-1] = MARK  # ends a document, where no window goes on
        return ids

    def data(self, config, mask):
        path = pathlib.Path(self.space.file(".bin"))
        path.write_bytes(self.ids(config).astype("<u2").tobytes())
        if mask is not None:
            path.with_suffix(".mask.bin").write_bytes(bytes(mask))
        return str(path)

    def run_masked(self, config, text, mask, *options, steps=1):
        weights = self.space.save_weights(self.random_weights(config))
        return self.space.train(self.space.compile(config, text), self.data(config, mask), steps, "--document-end", MARK,
                                *options, seed=SEED, lr=RATE, init=weights)

    def labels(self, config, mask):
        """Tokens, and targets of which -100 are ignored."""
        tokens, targets = oracle.windows(self.ids(config), BATCH, SEQUENCE, SEED, 0)
        counts = np.stack([mask[start + 1:start + 1 + SEQUENCE] for start in starts()])
        return tokens, torch.where(torch.from_numpy(counts) == 1, targets, -100)

    def expected_masked(self, config, mask):
        arrays = {n: w.detach().numpy() for n, w in self.random_weights(config).items()}
        return oracle.gradients(config, models.weights_from(config, arrays), *self.labels(config, mask), kernels=Ignored())

    def test_gradients_are_those_of_ignored_labels(self):
        for config in (GPT2, LLAMA):
            expected = self.expected_masked(config, masked())
            for layout in (ONE, *LAYOUTS):
                with self.subTest(config["model_type"], layout=layout):
                    self.check(self.run_masked(config, spec(*layout, documents=NO_ENDS), masked()), expected)
            all_of = self.run_masked(config, spec(*ONE, documents=NO_ENDS), None)
            self.assertGreater(abs(all_of.losses[0] / expected[0] - 1), 100 * F32, "the mask does not matter")

    def test_pipelines_and_sequences_over_ranks(self):
        for axes, micro, sections in ((["pp=2"], 1, {}), (["pp=2", "dp=2"], 1, {"pipeline": {"schedule": "zb-h1"}}),
                                      (["pp=2"], 2, {}), (["dp=2", "cp=2"], 1, {"shard": {"sequence": ["cp"]}})):
            with self.subTest(axes=axes, micro=micro):
                text = tools.spec(BATCH, micro, SEQUENCE, documents=NO_ENDS, mesh={"axes": axes}, **sections)
                self.check(self.run_masked(LLAMA, text, masked()), self.expected_masked(LLAMA, masked()))

    def test_one_target_in_the_batch_and_none(self):
        text = tools.spec(BATCH, 1, SEQUENCE, dp=2, documents=NO_ENDS)
        self.check(self.run_masked(LLAMA, text, masked((0, 0, 1, 0))), self.expected_masked(LLAMA, masked((0, 0, 1, 0))))
        run = self.run_masked(LLAMA, text, masked((0, 0, 0, 0)))
        self.assertEqual(run.losses, [0])
        self.assertIn("step 0: no target of its samples counts", run.said)
        self.assertEqual({np.abs(gradient).max() for gradient in run.gradients.values()}, {0})

    def test_a_mask_of_ones_is_as_none(self):
        runs = [self.run_masked(LLAMA, spec(*ONE, documents=NO_ENDS), mask, steps=3) for mask in (None, np.ones(LENGTH, np.uint8))]
        self.assertEqual(runs[0].losses, runs[1].losses)
        self.assertEqual(runs[0].weight_bytes, runs[1].weight_bytes)

    def test_beside_the_ends_of_documents(self):
        """A target counts where neither leaves it out."""
        ids = np.where(np.random.default_rng(3).random(LENGTH) < 0.2, MARK, self.ids(LLAMA))
        mask = masked((5, 9, SEQUENCE, 3))
        tokens, targets = oracle.windows(ids, BATCH, SEQUENCE, SEED, 0)
        counts = np.stack([mask[start + 1:start + 1 + SEQUENCE] for start in starts()])
        targets = torch.where(torch.from_numpy(counts) == 1, oracle.without_ends(tokens, targets, end=MARK), -1)
        arrays = {n: w.detach().numpy() for n, w in self.random_weights(LLAMA).items()}
        expected = oracle.gradients(LLAMA, models.weights_from(LLAMA, arrays), tokens, torch.where(targets < 0, -100, targets),
                                    kernels=Ignored())
        self.ids = lambda _: ids
        self.check(self.run_masked(LLAMA, spec(*LAYOUTS[0], documents=NO_ENDS), mask), expected)

    def test_documents_need_not_be_told(self):
        """Of a file that has a mask and no index the mask alone decides; of one without a mask nothing does."""
        weights, plan = self.space.save_weights(self.random_weights(LLAMA)), self.space.compile(LLAMA, spec(*ONE, documents=NO_ENDS))
        run = self.space.train(plan, self.data(LLAMA, masked()), 1, seed=SEED, lr=RATE, init=weights)
        self.check(run, self.expected_masked(LLAMA, masked()))
        apart = self.space.compile(LLAMA, spec(*ONE, documents="apart"))
        for chosen, mask in ((plan, None), (apart, masked())):
            done = self.space.call("meshwork-run", chosen, "--data", self.data(LLAMA, mask), "--data-type", "u16", "--steps", 1)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn("does not tell where its documents begin", done.stderr)

    def test_on_a_gpu(self):
        for config in (GPT2, LLAMA):
            with self.subTest(config["model_type"]):
                self.check(self.run_masked(config, spec(*ONE, documents=NO_ENDS, **GPU), masked()),
                           self.expected_masked(config, masked()), APPROXIMATE)

    def test_processes(self):
        """By MPI the bits are those of threads."""
        text, weights = spec(*LAYOUTS[0], documents=NO_ENDS), self.space.save_weights(self.random_weights(LLAMA))
        threads = self.run_masked(LLAMA, text, masked(), steps=2)
        mpi = self.space.train(self.space.compile(LLAMA, text), self.data(LLAMA, masked()), 2, "--document-end", MARK, seed=SEED,
                               lr=RATE, init=weights, launcher=("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"))
        self.assertEqual((mpi.losses, mpi.weight_bytes), (threads.losses, threads.weight_bytes))

    def test_transformers(self):
        if subprocess.run([PYTHON, "-c", "import transformers"], capture_output=True, cwd="/").returncode != 0:
            self.skipTest("no Transformers; TRANSFORMERS_PYTHON may name a Python that has them")
        for name in ("gpt2", "llama"):
            with self.subTest(name):
                config = {**configs.ALL[name], "pad_token_id": None}
                folder, out = self.space.path / name, self.space.file(".pt")
                folder.mkdir()
                (folder / "config.json").write_text(json.dumps(config))
                prefix = "transformer." if name == "gpt2" else ""
                safetensors.write(str(folder / "model.safetensors"), {
                    prefix + n: w.detach().numpy() for n, w in self.random_weights(config).items()})
                tokens, labels = self.labels(config, masked())
                # It predicts each label by the tokens before it.
                work = {"model": str(folder), "out": out, "ids": tokens.tolist(),
                        "labels": torch.cat((torch.full((BATCH, 1), -100), labels[:, :-1]), 1).tolist()}
                mask = masked()
                for start in starts():  # so the last target of a window is not there
                    mask[start + SEQUENCE] = 0
                done = subprocess.run([PYTHON, "-c", LABELS, self.space.write(".json", json.dumps(work))],
                                      capture_output=True, text=True, cwd="/")
                self.assertEqual(done.returncode, 0, done.stderr)
                loss, gradients = torch.load(out)
                self.check(self.run_masked(config, spec(*LAYOUTS[0], documents=NO_ENDS), mask),
                           (loss, {n.removeprefix(prefix): g.numpy() for n, g in gradients.items()}))

    def test_what_is_refused(self):
        plan, plain = (self.space.compile(LLAMA, spec(*ONE, documents=keys)) for keys in (NO_ENDS, {}))
        good = masked()
        bad = np.where(np.arange(LENGTH) == 5, 2, good)
        for code, chosen, mask, said in ((65, plan, good[:-1], f"holds {LENGTH - 1} bytes, expected {LENGTH}, one for each token"),
                                         (65, plan, bad, "byte 5 is 2, expected 1 where the token counts"),
                                         (64, plain, good, "leaves targets out of the loss, but the plan counts all")):
            with self.subTest(said):
                path = self.data(LLAMA, mask)
                marks = ("--document-end", MARK) if chosen is plan else ()
                done = self.space.call("meshwork-run", chosen, "--data", path, "--data-type", "u16", "--steps", 1, *marks)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(path.replace(".bin", ".mask.bin"), done.stderr)
                self.assertIn(said, done.stderr)

    def test_a_mask_is_no_data_and_no_output(self):
        """Of a folder or a pattern, too; the tokens are the only file."""
        path = pathlib.Path(self.data(LLAMA, masked()))
        folder = self.space.path / "masked"
        folder.mkdir()
        for name in (path, path.with_suffix(".mask.bin")):
            name.rename(folder / name.name.replace(path.stem, "a"))
        plan = self.space.compile(LLAMA, spec(*ONE, documents=NO_ENDS))
        run = ("meshwork-run", plan, "--data-type", "u16", "--steps", 1, "--document-end", MARK, "--order", "epochs", "--data")
        for data in (folder, folder / "*.bin"):
            self.assertIn(f"1 file, {LENGTH} tokens", self.space.must(*run, data).stdout)
            done = self.space.call(*run, data, "--save", folder / "a.mask.bin")
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn("would overwrite --data", done.stderr)


del Documents  # Its tests run where they are.

if __name__ == "__main__":
    unittest.main()
