"""Sequences that ranks share, in blocks and in zigzag: losses, every gradient and every
updated weight against one rank. The model has all but attention, and a parameter that is
split like the sequence, so that files hold parts of it.
"""
import unittest

import numpy as np

import tools

BATCH, STEPS, RATE = 8, 2, 1e-2
DATA = (np.arange(4000) * 7919 % 251).astype(np.uint16)

MODEL = """
#ve = #transformer.dims<vocab, embed>
#se = #transformer.dims<sequence, embed>
#pe = #transformer.dims<positions, embed>
#ehd = #transformer.dims<embed, heads, head_dim>
#ef = #transformer.dims<embed, ffn>
!tokens = tensor<?xSEQUENCExi32, #transformer.dims<batch, sequence>>
!x = tensor<?xSEQUENCEx8xf32, #transformer.dims<batch, sequence, embed>>
!q = tensor<?xSEQUENCEx2x4xf32, #transformer.dims<batch, sequence, heads, head_dim>>
!f = tensor<?xSEQUENCEx11xf32, #transformer.dims<batch, sequence, ffn>>
!w = tensor<8xf32, #transformer.dims<embed>>
module {
  func.func @loss(%tokens: !tokens, %targets: !tokens) -> tensor<f32> {
    %wte = transformer.parameter "wte.weight" init <normal, 0.0, 0.5> : tensor<256x8xf32, #ve>
    %wpe = transformer.parameter "wpe.weight" init <normal, 0.0, 0.5> : tensor<20x8xf32, #pe>
    %own = transformer.parameter "own.weight" init <normal, 0.0, 0.5> : tensor<SEQUENCEx8xf32, #se>
    %embedded = transformer.embedding %wte, %tokens : tensor<256x8xf32, #ve>, !tokens -> !x
    %position = transformer.slice %wpe dim "positions" offset 0 : tensor<20x8xf32, #pe> -> tensor<SEQUENCEx8xf32, #se>
    %placed = transformer.add %embedded, %position : !x, tensor<SEQUENCEx8xf32, #se> -> !x
    %shifted = transformer.mul %placed, %own : !x, tensor<SEQUENCEx8xf32, #se> -> !x
    %x = transformer.dropout %shifted "drop" rate 0.25 : !x
    %wq = transformer.parameter "q.weight" init <normal, 0.0, 0.5> : tensor<8x2x4xf32, #ehd>
    %q0 = transformer.contract "bse,ehd->bshd" %x, %wq : !x, tensor<8x2x4xf32, #ehd> -> !q
    %q = transformer.rope %q0 inverse_frequencies [1.0, 0.3] scale 1.0 : !q
    %turned = transformer.contract "bshd,ehd->bse" %q, %wq : !q, tensor<8x2x4xf32, #ehd> -> !x
    %n0 = transformer.parameter "norm.weight" init <constant, 1.0> : !w
    %b0 = transformer.parameter "norm.bias" init <constant, 0.0> : !w
    %normed = transformer.layer_norm %turned, %n0, %b0 epsilon 1.0e-5 : !x, !w
    %up = transformer.parameter "up.weight" init <normal, 0.0, 0.5> : tensor<8x11xf32, #ef>
    %h0 = transformer.contract "bse,ef->bsf" %normed, %up : !x, tensor<8x11xf32, #ef> -> !f
    %h1 = transformer.activate gelu %h0 : !f
    %h = transformer.dropout %h1 "drop.ffn" rate 0.1 : !f
    %down = transformer.contract "bsf,ef->bse" %h, %up : !f, tensor<8x11xf32, #ef> -> !x
    %sum = transformer.add %x, %down : !x, !x -> !x
    %n1 = transformer.parameter "last.weight" init <constant, 1.0> : !w
    %last = transformer.rms_norm %sum, %n1 epsilon 1.0e-5 : !x, !w
    %loss = transformer.head_loss %last, %wte, %targets scale 1.0 : !x, tensor<256x8xf32, #ve>, !tokens -> tensor<f32>
    return %loss : tensor<f32>
  }
}
"""

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
        model = self.space.write(".mlir", MODEL.replace("SEQUENCE", str(sequence)))
        return self.space.train(self.space.compile(model, text), DATA, STEPS, lr=RATE)

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
        plan = self.space.compile(self.space.write(".mlir", MODEL.replace("SEQUENCE", "16")), text)
        told = self.space.must("meshwork", "explain", plan, "own.weight").stdout
        self.assertIn("dim 0 over cp in zigzag", told)


if __name__ == "__main__":
    unittest.main()
