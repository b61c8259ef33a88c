"""Positions that begin anew with each document (`batch.positions`) and targets at the ends of
documents left out of the loss (`batch.document_end_loss`): against PyTorch, against each document
run alone, on one rank and on several, on the CPU and on an emulated GPU."""
import json
import os
import subprocess
import sys
import unittest

import numpy as np

import configs
import models
import oracle
import safetensors
import tools
from kernels import Apart, Reference, Restarted, Separate
from test_cuda import APPROXIMATE, GPU, ONE, emulated
from test_documents import F32, LAYOUTS, MARK, Documents, corpus
from test_parallel import RATE
from test_sharded import BATCH, GPT2, LLAMA, SEQUENCE, spec
from tools import APART

PYTHON = os.environ.get("TRANSFORMERS_PYTHON", sys.executable)
SEPARATE, RESTARTED, NO_ENDS = ({key: value} for key, value in APART.items())
# Keys, how documents are told apart, and the model; each key alone, two, and all.
CASES = [("gpt2", "begin", RESTARTED), ("llama", "end", RESTARTED), ("gpt2", "end", NO_ENDS),
         ("llama", "begin", NO_ENDS), ("mistral", "begin", {**SEPARATE, **RESTARTED}),
         ("qwen2", "end", {**RESTARTED, **NO_ENDS}), ("qwen3", "begin", APART), ("gpt2", "end", APART)]
# Each sample's documents alone: no mask, no positions. The loss of a step is the mean over all
# targets but that of each document's last token.
ALONE = """
import json, sys, torch
from transformers import AutoModelForCausalLM, logging
logging.set_verbosity_error()
work = json.load(open(sys.argv[1]))
model = AutoModelForCausalLM.from_pretrained(work["model"], attn_implementation="eager").double().train()
counted = sum(len(targets) for _, targets in work["documents"])
total = 0
for tokens, targets in work["documents"]:
    if targets:
        logits = model(input_ids=torch.tensor([tokens])).logits[0, :len(targets)]
        total = total + torch.nn.functional.cross_entropy(logits, torch.tensor(targets), reduction="sum") / counted
total.backward()
torch.save((total.item(), {n: p.grad for n, p in model.named_parameters()}), work["out"])
"""


def kernels_of(keys, begins):
    """What PyTorch computes otherwise with these keys."""
    kinds = {(False, False): lambda _: Reference(), (True, False): Separate, (False, True): Restarted,
             (True, True): Apart}
    return kinds["documents" in keys, "positions" in keys](begins)


def split(tokens, targets, begins):
    """(tokens, targets) of each document of each sample; the last one may go on behind its sample."""
    found = []
    for ids, following, row in zip(tokens.tolist(), targets.tolist(), begins.tolist()):
        cuts = [*sorted(set(row)), len(ids)]
        for begin, end in zip(cuts, cuts[1:]):
            goes_on = ids[end - 1] != MARK
            found.append((ids[begin:end], following[begin:end if goes_on else end - 1]))
    return found


class DocumentKeys(Documents):
    test_by_cudnn = None  # Attention is that of separate documents, which is tested there.

    def run_with(self, keys, config, layout=ONE, how="begin", steps=1, options=(), ids=None, **sections):
        plan = self.space.compile(config, spec(*layout, documents=keys, **sections))
        weights = self.space.save_weights(self.random_weights(config))
        ids = corpus(config["vocab_size"]) if ids is None else ids
        told = (f"--document-{how}", MARK) if keys else ()
        return self.space.train(plan, ids, steps, *told, *options, lr=RATE, init=weights)

    def expected_with(self, keys, config, how="begin"):
        tokens, targets = oracle.windows(corpus(config["vocab_size"]), BATCH, SEQUENCE, 0, 0)
        if "document_end_loss" in keys:
            targets = oracle.without_ends(tokens, targets, **{how: MARK})
        arrays = {n: w.detach().numpy() for n, w in self.random_weights(config).items()}
        return oracle.gradients(config, models.weights_from(config, arrays), tokens, targets,
                                kernels=kernels_of(keys, oracle.documents(tokens, **{how: MARK})))

    def test_gradients_are_those_of_pytorch(self):
        for name, how, keys in CASES:
            with self.subTest(name, how=how, keys=keys):
                config = configs.ALL[name]
                run = self.run_with(keys, config, how=how)
                self.check(run, self.expected_with(keys, config, how))
                without = self.expected_with({key: keys[key] for key in list(keys)[:-1]}, config, how)
                if name != "gpt2" and list(keys) == ["documents", "positions"]:
                    self.check(run, without)  # rotary positions: only distances within a document matter
                    continue
                far = max(oracle.relative_error(gradient, without[1][n]) for n, gradient in run.gradients.items())
                self.assertGreater(far, 100 * F32, "the last key does not matter")

    def test_ranks(self):
        """With a sequence over ranks, stages, and microbatches of several numbers of targets."""
        more = [({"cp": 2}, {"shard": {"sequence": ["cp"]}, "context": {"layout": "zigzag"}}),
                ({"dp": 2, "cp": 2}, {"shard": {"sequence": ["cp"]}, "recompute": {"policy": "full"}}),
                ({"pp": 2, "dp": 2}, {}), ({"pp": 2, "tp": 2}, {"pipeline": {"schedule": "zb-h1"}})]
        for config in (GPT2, LLAMA):
            expected = self.expected_with(APART, config)
            for layout in LAYOUTS:
                with self.subTest(config["model_type"], layout=layout):
                    self.check(self.run_with(APART, config, layout), expected)
            for axes, sections in more:
                with self.subTest(config["model_type"], axes=axes):
                    text = tools.spec(BATCH, 1, SEQUENCE, documents="apart", **sections,
                                      mesh={"axes": [f"{name}={size}" for name, size in axes.items()]})
                    weights = self.space.save_weights(self.random_weights(config))
                    self.check(self.space.train(self.space.compile(config, text), corpus(136), 1, "--document-begin",
                                                MARK, init=weights), expected)

    def test_processes(self):
        """By MPI the bits are those of threads."""
        layout = ({"dp": 2, "fsdp": 1, "tp": 1}, False, 1)
        threads = self.run_with(APART, LLAMA, layout, steps=2)
        plan = self.space.compile(LLAMA, spec(*layout, documents=APART))
        weights = self.space.save_weights(self.random_weights(LLAMA))
        run = self.space.train(plan, corpus(136), 2, "--document-begin", MARK, lr=RATE, init=weights,
                               launcher=("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"))
        self.assertEqual(run.losses, threads.losses)
        self.assertEqual(run.weight_bytes, threads.weight_bytes)

    def test_dropout(self):
        """Masks are those of the element's place in the sequence."""
        config = {**configs.LLAMA, "attention_dropout": 0.25}
        tokens, targets = oracle.windows(corpus(config["vocab_size"]), BATCH, SEQUENCE, 0, 0)
        arrays = {n: w.detach().numpy() for n, w in self.random_weights(config).items()}
        expected = oracle.gradients(config, models.weights_from(config, arrays), tokens, targets,
                                    drop=oracle.dropout(0, 0),
                                    kernels=Restarted(oracle.documents(tokens, begin=MARK)))
        self.check(self.run_with(RESTARTED, config), expected)

    def test_on_a_gpu(self):
        for config in (GPT2, LLAMA):
            with self.subTest(config["model_type"]):
                self.check(self.run_with(APART, config, **GPU), self.expected_with(APART, config), APPROXIMATE)
        run = self.run_with(APART, LLAMA, LAYOUTS[-1], options=("--share-gpu",), **GPU)
        self.check(run, self.expected_with(APART, LLAMA), APPROXIMATE)

    def test_each_instruction_in_bf16(self):
        """A GPU's against the CPU's, and they learn."""
        for config in (GPT2, LLAMA):
            with self.subTest(config["model_type"]):
                plan = self.space.compile(config, spec(*ONE, precision={"compute": "bf16"}, documents=APART, **GPU),
                                          "--with-cpu-code", "native")
                ids, options = corpus(136), ("--document-begin", MARK)
                self.space.must("meshwork-run", plan, "--data", self.space.tokens(ids), "--data-type", "u16",
                                "--steps", 2, "--compare-cpu", *options)
                losses = self.space.train(plan, ids, 10, *options, lr=1e-2).losses
                self.assertLess(losses[-1], losses[0] - 0.1)

    def test_one_document_is_as_without(self):
        """The mark stands at the file's end alone: it ends a document, and no sample has the next one."""
        ids = np.where(configs.corpus(131) == MARK, 1, configs.corpus(131))
        ids[-1] = MARK
        for name in ("llama", "gpt2"):
            with self.subTest(name):
                config = configs.ALL[name]
                plain = self.run_with({}, config, ids=ids, steps=2)
                for keys in (NO_ENDS, APART):
                    run = self.run_with(keys, config, how="end", ids=ids, steps=2)
                    self.assertEqual(run.losses[0], plain.losses[0])
                    if name == "llama" or keys is NO_ENDS:  # rows of learned positions are summed in another order
                        self.assertEqual(run.losses, plain.losses)
                        self.assertEqual(run.weight_bytes, plain.weight_bytes)

    def test_all_targets_left_out(self):
        """The loss is 0 and so are gradients, and the run says why."""
        for layout in (ONE, LAYOUTS[0]):
            run = self.run_with(APART, LLAMA, layout, ids=np.full(200, MARK))
            self.assertEqual(run.losses, [0])
            for name, gradient in run.gradients.items():
                self.assertEqual(np.abs(gradient).max(), 0, name)
            self.assertIn("step 0: no target of its samples counts", run.said)
        self.assertNotIn("no target", self.run_with(APART, LLAMA).said)

    def test_each_document_alone(self):
        """As Transformers has them, with nothing beside them; where it is there."""
        if subprocess.run([PYTHON, "-c", "import transformers"], capture_output=True, cwd="/").returncode != 0:
            self.skipTest("no Transformers; TRANSFORMERS_PYTHON may name a Python that has them")
        import torch
        for name in ("gpt2", "llama"):
            with self.subTest(name):
                config = {**configs.ALL[name], "pad_token_id": None}
                run = self.run_with(APART, config, how="end")
                tokens, targets = oracle.windows(corpus(config["vocab_size"]), BATCH, SEQUENCE, 0, 0)
                folder, out = self.space.path / name, self.space.file(".pt")
                folder.mkdir()
                (folder / "config.json").write_text(json.dumps(config))
                prefix = "transformer." if name == "gpt2" else ""
                safetensors.write(str(folder / "model.safetensors"), {
                    prefix + n: w.detach().numpy() for n, w in self.random_weights(config).items()})
                work = {"model": str(folder), "out": out,
                        "documents": split(tokens, targets, oracle.documents(tokens, end=MARK))}
                done = subprocess.run([PYTHON, "-c", ALONE, self.space.write(".json", json.dumps(work))],
                                      capture_output=True, text=True, cwd="/")
                self.assertEqual(done.returncode, 0, done.stderr)
                loss, gradients = torch.load(out)
                self.check(run, (loss, {n.removeprefix(prefix): g.numpy() for n, g in gradients.items()}))


del Documents  # Its tests run where they are.

if __name__ == "__main__":
    unittest.main()
