"""SGD and Lion on ranks, in ZeRO's stages, in mixed precision and on GPUs (emulated), each
against PyTorch's formula.

A plan saves the gradient of its last step, so runs of 1 and 2 steps give the gradients of
both: the reference is given these and must come to the plan's weights. What a step makes of a
gradient is then all that is compared, and its tolerance is that of f32: a few roundings of
2^-24 each step. That ranks have the gradients of one rank is test_sharded's.
"""
import unittest

import numpy as np
import torch

import configs
import safetensors
import tools
from adamw import AdamW
from optimizers import Lion, Sgd
from test_cuda import GPU, emulated

STEPS, RATE = 2, 0.02
CONFIG = {**configs.GPT2, "vocab_size": 136, "n_head": 4}
CORPUS = configs.corpus(vocabulary=136)
MOMENTUM = ({"kind": "sgd", "momentum": 0.9, "weight_decay": 0.1, "clip_grad_norm": 0.5},
            lambda weights: Sgd(weights, clip=0.5, momentum=0.9, weight_decay=0.1))
NESTEROV = ({**MOMENTUM[0], "nesterov": True},
            lambda weights: Sgd(weights, clip=0.5, momentum=0.9, weight_decay=0.1, nesterov=True))
PLAIN = ({"kind": "sgd"}, Sgd)
LION = ({"kind": "lion", "beta1": 0.8, "weight_decay": 0.1},
        lambda weights: Lion(weights, beta1=0.8, weight_decay=0.1))
DEFAULTS = ({"kind": "lion"}, Lion)
ONE = {"axes": ["dp=1"]}
LAYOUTS = [({"axes": ["dp=2"]}, {}), ({"axes": ["dp=2"]}, {"zero": {"stage": 1}}),
           ({"axes": ["dp=2"]}, {"zero": {"stage": 2}}), ({"axes": ["dp=2"]}, {"zero": {"stage": 3}}),
           ({"axes": ["tp=2"]}, {}), ({"axes": ["dp=3"]}, {"zero": {"stage": 1}})]  # 3 divides little


# Of the first that matches: all of the second layer rests, but for its biases.
GROUPS = (("*.bias", 3.0, 1.0), ("h.1.*", 0.0, 1.0), ("w?e.weight", 0.5, 0.0), ("*", 1.0, 2.0))


class Grouped(AdamW):
    def __init__(self, weights):
        super().__init__(weights, epsilon=1e-3, groups=GROUPS)

    def step(self, gradients, rate):
        for name, weight in self.weights.items():
            weight.grad = gradients[name]
        return super().step(rate)


class Optimizers(unittest.TestCase):
    cost_s = 40

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace(**emulated())
        cls.addClassCleanup(cls.space.close)
        plan = cls.space.compile(CONFIG, tools.spec(1, 1, 16))
        cls.init = cls.space.initial_weights(plan)

    def spec(self, optimizer, mesh=ONE, compute="f32", **sections):
        batch = 6 if mesh["axes"] == ["dp=3"] else 4
        return tools.spec(batch, 1, 16, compute=compute, mesh=mesh, optimizer=optimizer, **sections)

    def check(self, method, *options, text="", **sections):
        """The run of all steps; each step as the reference makes it."""
        optimizer, reference = method
        plan = self.space.compile(CONFIG, self.spec(optimizer, **sections) + text)
        runs = [self.space.train(plan, CORPUS, n, *options, lr=RATE, init=self.init)
                for n in range(1, STEPS + 1)]
        weights = {n: torch.tensor(w, dtype=torch.float64) for n, w in safetensors.read(self.init).items()}
        steps = reference(weights)
        for run in runs:
            steps.step({n: torch.tensor(g, dtype=torch.float64) for n, g in run.gradients.items()}, RATE)
            for name, found in run.weights.items():
                expected = weights[name].numpy()
                # A sum that rounding takes across zero has another sign: a step of Lion in all.
                far = np.abs(found - expected) > 1e-6 * (1 + np.abs(expected))
                self.assertLessEqual(far.mean(), 1e-3 if optimizer["kind"] == "lion" else 0, name)
        self.assertNotEqual(runs[0].losses[0], runs[-1].losses[-1])
        return runs[-1]

    def test_one_rank(self):
        for method in (MOMENTUM, NESTEROV, PLAIN, LION, DEFAULTS):
            with self.subTest(method[0]):
                self.check(method)

    def test_ranks(self):
        for method in (MOMENTUM, LION):
            base = self.check(method)
            for mesh, sections in LAYOUTS:
                with self.subTest(method[0], mesh=mesh, **sections):
                    run = self.check(method, mesh=mesh, **sections)
                    if mesh["axes"] != ["dp=3"]:  # which has other samples
                        np.testing.assert_allclose(run.losses, base.losses, rtol=1e-3)

    def test_groups(self):
        text = "".join(f'[[optimizer.groups]]\nname = "{name}"\nrate = {rate}\nweight_decay = {decay}\n'
                       for name, rate, decay in GROUPS)
        method = ({"kind": "adamw", "epsilon": 1e-3}, Grouped)
        for mesh, sections in ((ONE, {}), *LAYOUTS[1:5], ({"axes": ["pp=2"]}, {})):
            with self.subTest(mesh=mesh, **sections):
                self.check(method, text=text, mesh=mesh, **sections)
        self.check(method, "--share-gpu", text=text, mesh={"axes": ["dp=2"]}, zero={"stage": 1}, **GPU)
        self.check(method, text=text, mesh={"axes": ["dp=2"]}, compute="bf16", precision={"gradients": "f32"})

    def test_groups_of_experts(self):
        """Names are those in files: a parameter is all of its experts' tensors."""
        config = {**configs.MIXTRAL, "num_local_experts": 8}
        plan, rests = (self.space.compile(config, self.spec({"kind": "adamw"}, mesh={"axes": ["ep=2"]}) + text) for text in (
            "", '[[optimizer.groups]]\nname = "*.experts.*.w[13].weight"\nrate = 0\n'))
        init = self.space.initial_weights(plan)
        moved, run = (self.space.train(one, configs.corpus(), 1, lr=RATE, init=init).weights for one in (plan, rests))
        for name, before in safetensors.read(init).items():
            stays = ".experts." in name and not name.endswith("w2.weight")
            np.testing.assert_array_equal(run[name], before if stays else moved[name], name)

    def test_groups_that_are_wrong(self):
        def refused(group, optimizer=None, config=CONFIG):
            spec = self.space.write(".toml", self.spec(optimizer or {"kind": "adamw"}) + "[[optimizer.groups]]\n" + group)
            done = self.space.call("meshwork", "compile", self.space.model(config), "--spec", spec, "-o",
                                   self.space.file(".mwplan"))
            self.assertEqual(done.returncode, 78, done.stderr)
            return done.stderr

        self.assertRegex(refused('name = "*.biass"\nrate = 0.1\n'), r":\d+:\d+: error: optimizer.groups: '\*.biass' matches no "
                         "parameter that is trained; names are those in files, like '")
        self.assertIn("is no glob", refused('name = "[a"\nrate = 0.1\n'))
        self.assertIn("has a factor of optimizer.weight_decay, which is 0",
                      refused('name = "*"\nweight_decay = 2\n', {"kind": "sgd"}))
        self.assertIn("but not 'model.layers.0.block_sparse_moe.experts.",
                      refused('name = "*.0.block_sparse_moe.experts.1.w1.weight"\nrate = 2\n', config=configs.MIXTRAL))

    def test_mixed_precision(self):
        """Masters are updated in f32 from gradients in f32, whatever becomes of the weights."""
        for method, rounding in ((MOMENTUM, "stochastic"), (PLAIN, "nearest"), (LION, "stochastic")):
            with self.subTest(method[0]):
                self.check(method, mesh={"axes": ["dp=2"]}, compute="bf16", zero={"stage": 1},
                           precision={"gradients": "f32", "rounding": rounding})

    def test_gpu(self):
        for method in (MOMENTUM, LION):
            with self.subTest(method[0]):
                self.check(method, "--share-gpu", mesh={"axes": ["dp=2"]}, zero={"stage": 1}, **GPU)

    def test_what_is_kept_goes_through_files(self):
        """Weights saved after a step and given to another run are those it begins with."""
        plan = self.space.compile(CONFIG, self.spec(LION[0], mesh={"axes": ["dp=2"]}, zero={"stage": 1}))
        run = self.space.train(plan, CORPUS, 1, lr=RATE, init=self.init)
        again = self.space.train(plan, CORPUS, 1, lr=0, init=run.weights_path)
        self.assertEqual(again.weight_bytes, run.weight_bytes)


if __name__ == "__main__":
    unittest.main()
