"""Tokens that choose rows by their scores: the loss and the gradient of the rows against
PyTorch's topk, on one rank, on ranks that share experts, samples and an odd sequence, and on
an emulated GPU.
"""
import pathlib
import unittest

import numpy as np
import torch

import tools
from test_cuda import emulated

BATCH, VOCABULARY, EXPERTS = 4, 64, 8
MODEL = (pathlib.Path(__file__).parent / "top_k.mlir.in").read_text()
# What stands in the model; groups, kept groups, elements that a group's score adds up.
KINDS = {"": (1, 1, 1), "groups 4 kept 2 by maximum": (4, 2, 1), "groups 2 kept 1 by two_best": (2, 1, 2)}
PIN = "[[shard.tensor]]\nname = '{}'\ndims = '[{{\"tp\"}}, {{}}]'\n"
# Axes, rules of [shard], pinned tensors. The sequence is 7: odd parts have padding.
MESHES = [(["dp=2"], {}, ""), (["tp=2"], {}, PIN.format("router") + PIN.format("table")),
          (["dp=2", "tp=3"], {"residual_sequence": ["tp"]}, PIN.format("table")), (["cp=2"], {"sequence": ["cp"]}, "")]


def choices(scores, groups, kept, added):
    """[tokens, 2], by PyTorch: no two scores are equal here."""
    parts = scores.view(len(scores), groups, -1)
    best = parts.topk(added, dim=-1).values.sum(-1).topk(kept, dim=-1).indices
    mask = torch.zeros(len(scores), groups, dtype=torch.bool).scatter_(1, best, True)
    return parts.masked_fill(~mask[..., None], -torch.inf).flatten(1).topk(2, dim=-1).indices


def expected(weights, ids, kind):
    """The loss and the gradient of the table, in f64."""
    wte, router, table = (torch.tensor(weights[n]).double() for n in ("wte", "router", "table"))
    table.requires_grad_()
    x = wte[ids[:, :-1].flatten()]
    y = x + table[choices(x @ router.T, *KINDS[kind])].sum(1)
    loss = torch.nn.functional.cross_entropy(y @ wte.T, ids[:, 1:].flatten())
    loss.backward()
    return loss.item(), table.grad.numpy()


class TopK(unittest.TestCase):
    sequence = 7

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace(**emulated())
        cls.addClassCleanup(cls.space.close)

    def run_spec(self, kind, axes, rules, pins, *options, compiling=(), **sections):
        plan = self.space.compile(self.model(kind), self.spec(axes, rules, **sections) + pins, *compiling)
        return self.space.train(plan, self.data(), 1, *options)

    def model(self, kind):
        return self.space.write(".mlir", MODEL.replace("BODY", kind))

    def spec(self, axes, rules, **sections):
        ranks = 2 if "dp=2" in axes else 1
        return tools.spec(BATCH, BATCH // ranks, self.sequence, mesh={"axes": axes}, shard=rules, **sections)

    def data(self):
        # The file has one sample, so each of the batch is this one.
        return np.random.default_rng(3).integers(0, VOCABULARY, self.sequence + 1)

    def check(self, kind, run):
        """Initial weights are the same on every mesh."""
        plan = self.space.compile(self.model(kind), self.spec(["dp=1"], {}))
        weights = tools.safetensors.read(self.space.initial_weights(plan))
        loss, gradient = expected(weights, torch.tensor(self.data())[None], kind)
        self.assertAlmostEqual(run.losses[0] / loss, 1, delta=1e-6)
        np.testing.assert_allclose(run.gradients["table"], gradient, rtol=1e-4, atol=1e-6)

    def test_ranks(self):
        for kind in KINDS:
            for axes, rules, pins in [(["dp=1"], {}, ""), *MESHES]:
                with self.subTest(kind=kind, axes=axes):
                    self.check(kind, self.run_spec(kind, axes, rules, pins))

    def test_verify_by_running(self):
        """The small model has all experts: their groups are counted."""
        for kind, (axes, rules, pins) in zip(KINDS, MESHES):
            with self.subTest(kind=kind, axes=axes):
                spec = self.space.write(".toml", self.spec(axes, rules) + pins)
                done = self.space.must("meshwork", "verify", self.model(kind), "--spec", spec, "--by-running")
                self.assertIn("compute what one rank computes", done.stdout)
                self.assertNotIn("dim experts", done.stdout)

    def test_emulated_gpu(self):
        cuda = {"target": {"device": "cuda", "arch": "sm_80"}}
        for kind, (axes, rules, pins) in zip(KINDS, [(["dp=1"], {}, ""), MESHES[1], MESHES[3]]):
            with self.subTest(kind=kind, axes=axes):
                run = self.run_spec(kind, axes, rules, pins, "--share-gpu", "--compare-cpu",
                                    compiling=("--with-cpu-code", "native"), **cuda)
                self.check(kind, run)
                self.assertIn("TopK", run.said)


if __name__ == "__main__":
    unittest.main()
