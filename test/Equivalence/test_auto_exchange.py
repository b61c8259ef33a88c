"""`experts.exchange = "auto"` where layers differ: each form of layers gets what takes less time, and the model is the
same."""
import json
import re
import unittest

import numpy as np

import configs
import oracle
import tools

F32 = 1e-5
BATCH, SEQUENCE = 8, 512
# Experts, choices of a token, width of an expert; none: a layer without experts.
LAYERS = ((16, 1, 32), (8, 8, 32), None, (16, 1, 32))


def layered(layers, width=128, vocabulary=256):
    """A model of these layers, which no family has: each has its own numbers of experts and choices."""
    def type_of(shape, *dims):
        return f"tensor<{'x'.join(map(str, shape))}, #transformer.dims<{', '.join(dims)}>>"

    def parameter(layer, name, shape, *dims):
        return (f"%{name}{layer} = transformer.parameter \"layers.{layer}.{name}\" layer {layer} init <normal, 0.0, 0.1> : "
                + type_of([*shape, "f32"], *dims))

    ids, x = type_of("??i", "batch", "sequence").replace("xi", "xi32"), type_of(["?", "?", width, "f32"], "batch", "sequence", "embed")
    table = type_of([vocabulary, width, "f32"], "vocab", "embed")
    lines = [f"%table = transformer.parameter \"table\" init <normal, 0.0, 1.0> : {table}",
             f"%x0 = transformer.embedding %table, %tokens : {table}, {ids} -> {x}"]
    for n, layer in enumerate(layers):
        if layer is None:
            f, g = (type_of(["?", "?", 32, "f32"], "batch", "sequence", "ffn"), type_of([32, width, "f32"], "ffn", "embed"))
            lines += [parameter(n, "dense", (32, width), "ffn", "embed"),
                      f"%h{n} = transformer.contract \"bse,fe->bsf\" %x{n}, %dense{n} : {x}, {g} -> {f}",
                      f"%y{n} = transformer.contract \"bsf,fe->bse\" %h{n}, %dense{n} : {f}, {g} -> {x}",
                      f"%x{n + 1} = transformer.add %x{n}, %y{n} : {x}, {x} -> {x}"]
            continue
        experts, k, inner = layer
        token = ["?", "?"]
        of = {"r": type_of([*token, experts, "f32"], "batch", "sequence", "routed"),
              "c": type_of([*token, k, "i32"], "batch", "sequence", "choices"),
              "p": type_of([*token, k, "f32"], "batch", "sequence", "choices"),
              "g": type_of([experts, width, "f32"], "routed", "embed"),
              "w": type_of([experts, inner, width, "f32"], "experts", "expert_ffn", "embed"),
              "v": type_of([experts, width, inner, "f32"], "experts", "embed", "expert_ffn")}
        lines += [parameter(n, "router", (experts, width), "routed", "embed"),
                  parameter(n, "gate", (experts, inner, width), "experts", "expert_ffn", "embed"),
                  parameter(n, "up", (experts, inner, width), "experts", "expert_ffn", "embed"),
                  parameter(n, "down", (experts, width, inner), "experts", "embed", "expert_ffn"),
                  f"%l{n} = transformer.contract \"bse,re->bsr\" %x{n}, %router{n} : {x}, {of['g']} -> {of['r']}",
                  f"%c{n} = transformer.top_k %l{n} : {of['r']} -> {of['c']}",
                  f"%p{n} = transformer.pick %l{n} at %c{n} : {of['r']}, {of['c']} -> {of['p']}",
                  f"%s{n} = transformer.softmax %p{n} : {of['p']}",
                  f"%y{n} = transformer.experts silu %x{n}, %c{n}, %s{n} gate %gate{n} up %up{n} down %down{n} : "
                  f"{x}, {of['c']}, {of['p']}, {of['w']}, {of['v']}",
                  f"%x{n + 1} = transformer.add %x{n}, %y{n} : {x}, {x} -> {x}"]
    lines += [f"%loss = transformer.head_loss %x{len(layers)}, %table, %targets scale 1.0 : {x}, {table}, {ids} -> tensor<f32>",
              "return %loss : tensor<f32>"]
    return (f"func.func @loss(%tokens: {ids}, %targets: {ids}) -> tensor<f32> {{\n  " + "\n  ".join(lines) + "\n}\n")


class AutoExchange(unittest.TestCase):
    """One choice of many experts goes to few ranks, and all choices go to all. Layers of equal sizes have one choice."""
    cost_s = 20

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)
        cls.model = cls.space.write(".mlir", layered(LAYERS))
        cls.auto = cls.plan(["ep=4"], 1, experts={"exchange": "auto"})

    @classmethod
    def plan(cls, axes, micro, **sections):
        return cls.space.compile(cls.model, tools.spec(BATCH, micro, SEQUENCE, mesh={"axes": axes}, **sections))

    def test_takes_what_is_faster_for_each(self):
        choices = self.space.explain(self.auto)["choices"]
        self.assertEqual([(c["key"], c["value"], c["why"].partition(":")[0]) for c in choices],
                         [("experts.exchange", "all_to_all", "layers 0, 3"), ("experts.exchange", "gathered", "layers 1")])
        for choice in choices:
            found = re.search(r": a step should take (\S+) ms with gathered, (\S+) ms with all_to_all$", choice["why"])
            gathered, exchanged = map(float, found.groups())
            self.assertEqual(choice["value"], "all_to_all" if exchanged < gathered else "gathered")
            for way, told in (("gathered", gathered), ("all_to_all", exchanged)):
                self.assertAlmostEqual(choice["step_ms"][way] / told, 1, delta=0.006)  # The text has three digits.
        self.assertIn("\n  chosen  experts.exchange: all_to_all; layers 0, 3: a step should take ",
                      self.space.must("meshwork", "explain", self.auto).stdout)

    def test_tells_times_as_numbers(self):
        """Those of plans made for each way, to the last digit; so does --estimate. The first choice starts from all gathered."""
        choices = self.space.explain(self.auto)["choices"]
        gathered = self.space.explain(self.plan(["ep=4"], 1, experts={"exchange": "gathered"}))["estimate"]["step_ms"]
        self.assertEqual([set(choice["step_ms"]) for choice in choices], [{"gathered", "all_to_all"}] * 2)
        self.assertEqual(choices[0]["step_ms"]["gathered"], gathered)
        self.assertEqual(min(choices[-1]["step_ms"].values()), self.space.explain(self.auto)["estimate"]["step_ms"])
        spec = tools.spec(BATCH, 1, SEQUENCE, mesh={"axes": ["ep=4"]}, experts={"exchange": "auto"})
        told = self.space.must("meshwork", "compile", self.model, "--spec", self.space.write(".toml", spec), "--estimate", "--json")
        self.assertEqual(json.loads(told.stdout)["choices"], choices)

    def test_is_faster_than_one_way_for_all(self):
        told = [self.space.explain(self.plan(["ep=4"], 1, experts={"exchange": way})) for way in ("gathered", "all_to_all")]
        auto = self.space.explain(self.auto)
        self.assertLess(auto["estimate"]["step_ms"], min(one["estimate"]["step_ms"] for one in told))
        self.assertEqual([one["choices"] for one in told], [[], []])
        sent = [sum(c["count"] for c in one["collectives"] if c["kind"] == "all_to_all") for one in (*told, auto)]
        self.assertEqual(sent[0], 0)
        self.assertEqual(3 * sent[2], 2 * sent[1])  # of two layers, and of three

    def test_ranks_compute_what_one_computes(self):
        one, data = self.plan(["dp=1"], 4), self.space.tokens(configs.corpus(256, BATCH * (SEQUENCE + 1)))
        init = self.space.initial_weights(one)
        found, expected = (self.space.train(plan, data, 1, lr=0, init=init) for plan in (self.auto, one))
        self.assertAlmostEqual(found.losses[0] / expected.losses[0], 1, delta=F32)
        for name, gradient in expected.gradients.items():
            self.assertLess(oracle.relative_error(found.gradients[name], gradient.astype(np.float64)), F32, name)


if __name__ == "__main__":
    unittest.main()
