"""Sequences that ranks share, in blocks and in zigzag: losses, every gradient and every
updated weight against one rank.
"""
import pathlib
import unittest

import numpy as np

import tools

BATCH, STEPS, RATE = 8, 2, 1e-2
DATA = (np.arange(4000) * 7919 % 251).astype(np.uint16)

MODEL = (pathlib.Path(__file__).parent / "split_sequence.mlir.in").read_text()


def model(sequence):
    return MODEL.replace("SEQUENCE", str(sequence)).replace("VOCABULARY", "256")


# Ranks, rules of [shard], ZeRO stage.
MESHES = {
    "cp2": (["cp=2"], {}, 0),
    "cp3": (["cp=3"], {}, 0),
    "zero2-cp2": (["dp=2", "cp=2"], {}, 2),
    "cp2-tp2": (["cp=2", "tp=2"], {"vocab": ["tp"], "residual_sequence": ["tp"]}, 0),
}


class Layouts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()

    @classmethod
    def tearDownClass(cls):
        cls.space.close()

    def run_spec(self, sequence, axes, rules, stage, **sections):
        data = 2 if axes[0] == "dp=2" else 1
        text = tools.spec(BATCH, BATCH // 2 // data, sequence, mesh={"axes": axes}, shard=rules,
                          zero={"stage": stage}, **sections)
        plan = self.space.compile(self.space.write(".mlir", model(sequence)), text)
        return self.space.train(plan, DATA, STEPS, lr=RATE)

    def check(self, sequence, layout):
        base = self.run_spec(sequence, ["dp=1"], {}, 0)
        base_gradients, base_weights = base.gradients, base.weights
        for name, (axes, rules, stage) in MESHES.items():
            with self.subTest(mesh=name, sequence=sequence, layout=layout):
                run = self.run_spec(sequence, axes, {"sequence": ["cp"], **rules}, stage,
                                    context={"layout": layout})
                np.testing.assert_allclose(run.losses, base.losses, rtol=1e-6)
                for kind, found, expected in (("gradient", run.gradients, base_gradients),
                                              ("weight", run.weights, base_weights)):
                    self.assertEqual(set(found), set(expected))
                    for key, value in expected.items():
                        np.testing.assert_allclose(found[key], value, rtol=1e-4, atol=2e-6,
                                                   err_msg=f"{kind} {key}")

    def test_even_parts(self):
        for layout in ("block", "zigzag"):
            self.check(16, layout)

    def test_uneven_parts_and_ranks_without_tokens(self):
        for layout in ("block", "zigzag"):
            self.check(7, layout)
            self.check(1, layout)

    def test_explain_tells_the_layout(self):
        text = tools.spec(BATCH, 4, 16, mesh={"axes": ["cp=2"]}, shard={"sequence": ["cp"]},
                          context={"layout": "zigzag"})
        plan = self.space.compile(self.space.write(".mlir", model(16)), text)
        told = self.space.must("meshwork", "explain", plan, "own.weight").stdout
        self.assertIn("dim 0 over cp in zigzag", told)


if __name__ == "__main__":
    unittest.main()
