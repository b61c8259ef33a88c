"""Parameters that files hold in several tensors, one for each expert, against the same model
with those tensors as parameters of their own: initial values, names and shapes in files,
training on ranks that split experts or rows, reading in both forms, checkpoints on other meshes.
"""
import json
import pathlib
import unittest

import numpy as np

import safetensors
import tools

EXPERTS, BATCH, SEQUENCE = 8, 4, 8
MODEL = (pathlib.Path(__file__).parent / "counted_files.mlir.in").read_text()
NAME = "h.0.experts.{}.{}"
GATE_UP = ('files [#transformer.file<"h.0.experts.{}.gate.weight" along 0 at [0, 0, 0] size [8, 6, 16]>, '
           '#transformer.file<"h.0.experts.{}.up.weight" along 0 at [0, 6, 0] size [8, 6, 16]>] '
           'or [[#transformer.file<"h.0.experts.stacked">]]')
BIAS = 'files [#transformer.file<"h.0.experts.{}.gate.bias" along 0>]'
DOWN = ('files [#transformer.file<"h.0.experts.{}.down.weight" along 0>] or [[#transformer.file<"h.0.old.{}.w2" along 0 '
        'from 1>], [#transformer.file<"h.0.experts.down.all" shape [9, 20, 8] offset [1, 4, 2]>]]')
# Of a mesh: its axes, and which dims of the three parameters they split.
MESHES = {"one": (["dp=1"], [[], [], []], [[], []], [[], [], []]),
          "experts": (["dp=1", "tp=2"], [["tp"], [], []], [["tp"], []], [["tp"], [], []]),
          "uneven": (["dp=1", "tp=3"], [["tp"], [], []], [["tp"], []], [[], ["tp"], []]),
          "rows": (["dp=1", "tp=2"], [[], ["tp"], []], [[], ["tp"]], [[], [], ["tp"]]),
          "both": (["dp=2", "tp=2"], [["tp"], ["dp"], []], [["dp"], ["tp"]], [["tp"], [], ["dp"]])}


def pin(name, dims):
    axes = ", ".join("{" + ", ".join(f'"{axis}"' for axis in dim) + "}" for dim in dims)
    return f"[[shard.tensor]]\nname = \"h.0.experts.{name}\"\ndims = '[{axes}]'\n"


def spec(mesh, **sections):
    axes, gate_up, bias, down = MESHES[mesh]
    micro = BATCH // (2 if "dp=2" in axes else 1)
    return (tools.spec(BATCH, micro, SEQUENCE, mesh={"axes": axes}, **sections)
            + pin("gate_up", gate_up) + pin("bias", bias) + pin("down", down))


def text(gate_up=GATE_UP, bias=BIAS, down=DOWN):
    return MODEL.replace("GATE_UP :", gate_up + " :").replace("DOWN :", down + " :").replace("BIAS :", bias + " :")


def apart():
    """The same parameters as tensors of their own, of no other use than to begin somewhere."""
    lines, uses = [], []
    for kind, shape, dims, init in (("gate.weight", "6x16", "expert_ffn, embed", "normal, 0.0, 0.25"),
                                    ("up.weight", "6x16", "expert_ffn, embed", "normal, 0.0, 0.25"),
                                    ("gate.bias", "6", "expert_ffn", "uniform, -1.0, 1.0"),
                                    ("down.weight", "16x6", "embed, expert_ffn", "normal, 0.0, 0.25")):
        kind_type = f"tensor<{shape}xf32, #transformer.dims<{dims}>>"
        for i in range(EXPERTS):
            value = f"%{kind.replace('.', '_')}_{i}"
            lines.append(f'{value} = transformer.parameter "{NAME.format(i, kind)}" init <{init}> : {kind_type}')
            uses.append((kind, value, kind_type))
    x, half = "!x", "tensor<?x?x6xf32, #transformer.dims<batch, sequence, expert_ffn>>"
    last = "%x"
    for i in range(EXPERTS):
        gate, up, bias, down = (next(u for u in uses if u[0] == kind and u[1].endswith(f"_{i}"))
                                for kind in ("gate.weight", "up.weight", "gate.bias", "down.weight"))
        lines += [f'%g{i} = transformer.contract "bse,fe->bsf" %x, {gate[1]} : {x}, {gate[2]} -> {half}',
                  f'%b{i} = transformer.add %g{i}, {bias[1]} : {half}, {bias[2]} -> {half}',
                  f'%u{i} = transformer.contract "bse,fe->bsf" %x, {up[1]} : {x}, {up[2]} -> {half}',
                  f'%o{i} = transformer.activate silu %b{i} : {half}',
                  f'%h{i} = transformer.mul %o{i}, %u{i} : {half}, {half} -> {half}',
                  f'%d{i} = transformer.contract "bsf,ef->bse" %h{i}, {down[1]} : {half}, {down[2]} -> {x}',
                  f'%y{i} = transformer.add {last}, %d{i} : {x}, {x} -> {x}']
        last = f"%y{i}"
    begin = MODEL.index("    %fused = transformer.parameter")
    end = MODEL.index("    %loss =")
    tail = MODEL[end:].replace("%y,", last + ",")
    return MODEL[:begin] + "".join(f"    {line}\n" for line in lines) + tail


class CountedFiles(unittest.TestCase):
    cost_s = 30

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace()
        cls.addClassCleanup(cls.space.close)
        cls.data = cls.space.tokens(np.random.RandomState(7).randint(0, 64, 5000))
        cls.model = cls.space.write(".mlir", text())
        cls.plans = {mesh: cls.space.compile(cls.model, spec(mesh, zero={"stage": 1})) for mesh in MESHES}
        cls.plan = cls.plans["one"]
        cls.initial = safetensors.read(cls.space.initial_weights(cls.plan, seed=5))

    def start(self, weights, plan=None):
        """The weights that a run starts with, given a file of others."""
        path = self.space.file(".safetensors")
        file = weights if isinstance(weights, str) else self.space.save_weights(weights)
        self.space.must("meshwork-run", plan or self.plan, "--steps", 0, "--init", file, "--save", path)
        return safetensors.read(path)

    def refused(self, weights):
        done = self.space.call("meshwork-run", self.plan, "--steps", 0, "--init", self.space.save_weights(weights),
                               "--save", self.space.file(".safetensors"))
        self.assertEqual(done.returncode, 65, done.stderr)
        return done.stderr

    def assert_same(self, one, other):
        self.assertEqual(set(one), set(other))
        for name, values in one.items():
            np.testing.assert_array_equal(values, other[name], name)

    def stacked(self, weights):
        """The same values in the last forms, as the model declares them."""
        parts = {kind: np.stack([weights[NAME.format(i, kind)] for i in range(EXPERTS)])
                 for kind in ("gate.weight", "up.weight", "down.weight")}
        other = {name: value for name, value in weights.items() if ".weight" not in name}
        other["h.0.experts.stacked"] = np.concatenate([parts["gate.weight"], parts["up.weight"]], axis=1)
        whole = np.full((9, 20, 8), np.nan, np.float32)
        whole[1:, 4:, 2:] = parts["down.weight"]
        other["h.0.experts.down.all"] = whole
        return other

    def test_starts_as_tensors_apart(self):
        plan = self.space.compile(self.space.write(".mlir", apart()), tools.spec(BATCH, BATCH, SEQUENCE))
        other = safetensors.read(self.space.initial_weights(plan, seed=5))
        self.assert_same(self.initial, other)
        self.assertEqual(self.initial[NAME.format(7, "gate.weight")].shape, (6, 16))
        self.assertEqual(self.initial[NAME.format(0, "gate.bias")].shape, (6,))
        self.assertEqual(self.initial[NAME.format(3, "down.weight")].shape, (16, 6))
        one = self.space.train(self.plan, self.data, 3, seed=5)
        two = self.space.train(plan, self.data, 3, seed=5)
        np.testing.assert_allclose(one.losses, two.losses, rtol=1e-5)
        for name, values in one.weights.items():
            np.testing.assert_allclose(values, two.weights[name], rtol=1e-3, atol=2e-5, err_msg=name)
        self.assertEqual(self.space.explain(self.plan)["parameters"], self.space.explain(plan)["parameters"])

    def test_starts_alike_on_every_mesh(self):
        first = pathlib.Path(self.space.initial_weights(self.plan, seed=5)).read_bytes()
        for mesh, plan in self.plans.items():
            with self.subTest(mesh):
                self.assertEqual(first, pathlib.Path(self.space.initial_weights(plan, seed=5)).read_bytes())

    def test_trains_on_every_mesh(self):
        one = self.space.train(self.plan, self.data, 2)
        for mesh, plan in self.plans.items():
            with self.subTest(mesh):
                run = self.space.train(plan, self.data, 2)
                np.testing.assert_allclose(run.losses, one.losses, rtol=1e-5)
                self.assertEqual(set(run.weights), set(one.weights))
                for name, values in run.gradients.items():
                    np.testing.assert_allclose(values, one.gradients[name], rtol=1e-4, atol=1e-6, err_msg=name)

    def test_weights_are_read_in_either_form(self):
        drawn = np.random.RandomState(3)
        weights = {name: drawn.normal(size=value.shape).astype(np.float32) for name, value in self.initial.items()}
        for mesh, plan in self.plans.items():
            with self.subTest(mesh):
                self.assert_same(self.start(weights, plan), weights)
                self.assert_same(self.start(self.stacked(weights), plan), weights)
        old = {name: value for name, value in weights.items() if ".down." not in name}
        old |= {f"h.0.old.{i + 1}.w2": weights[NAME.format(i, "down.weight")] for i in range(EXPERTS)}
        self.assert_same(self.start(old), weights)

    def test_files_that_do_not_fit_are_named(self):
        weights = self.initial
        few = {name: value for name, value in weights.items() if ".gate.weight" not in name}
        self.assertIn('missing: "h.0.experts.0.gate.weight to h.0.experts.7.gate.weight"', self.refused(few))
        one = {name: value for name, value in weights.items() if name != NAME.format(5, "up.weight")}
        self.assertIn('missing: "h.0.experts.5.up.weight"', self.refused(one))
        more = {**weights, NAME.format(8, "up.weight"): weights[NAME.format(7, "up.weight")]}
        self.assertIn('not in the plan: "h.0.experts.8.up.weight"', self.refused(more))
        shape = {**weights, NAME.format(2, "up.weight"): np.zeros((16, 6), np.float32)}
        self.assertIn('"h.0.experts.2.up.weight" is [16,6] in the file, the plan has [6,16]', self.refused(shape))
        every = {name: value.T if ".down." in name else value for name, value in weights.items()}
        self.assertIn(" and 3 more", self.refused(every))
        both = {**weights, **self.stacked(weights)}
        self.assertNotIn("not in the plan", self.refused(both))
        self.assertIn('in two forms: "h.0.experts.0.down.weight to h.0.experts.7.down.weight" and '
                      '"h.0.experts.down.all"', self.refused(both))
        mixed = {**weights, "h.0.experts.stacked": np.zeros((8, 12, 16), np.float32)}
        del mixed[NAME.format(1, "gate.weight")]
        self.assertIn('and "h.0.experts.stacked"', self.refused(mixed))

    def test_resumes_on_other_meshes(self):
        whole = self.space.train(self.plan, self.data, 4).losses
        for mesh, other in (("experts", "rows"), ("both", "uneven"), ("one", "both")):
            with self.subTest(mesh=mesh, other=other):
                folder = self.space.file(".checkpoints")
                self.space.train(self.plans[mesh], self.data, 2, "--checkpoint", folder)
                run = self.space.train(self.plans[other], self.data, 4, "--resume", folder)
                np.testing.assert_allclose(run.losses, whole[2:], rtol=1e-5)

    def test_checkpoints_do_not_grow_with_the_tensors(self):
        folder = pathlib.Path(self.space.file(".checkpoints"))
        run = self.space.train(self.plans["both"], self.data, 2, "--checkpoint", folder)
        manifest = json.loads((folder / "step-0000000002" / "manifest.json").read_text())
        self.assertEqual(manifest["version"], 2)
        tensors = {tensor["name"]: tensor for tensor in manifest["tensors"]}
        self.assertEqual(set(tensors), {"wte", "h.0.experts.gate_up", "h.0.experts.bias", "h.0.experts.down"})
        self.assertNotIn("files", tensors["wte"])
        self.assertEqual(tensors["h.0.experts.gate_up"]["files"], [
            {"name": "h.0.experts.{}.gate.weight", "counted": [0, 0], "begin": [0, 0, 0], "extent": [8, 6, 16],
             "shape": [6, 16]},
            {"name": "h.0.experts.{}.up.weight", "counted": [0, 0], "begin": [0, 6, 0], "extent": [8, 6, 16],
             "shape": [6, 16]}])
        self.assert_same(self.start(str(folder)), run.weights)
        shown = self.space.must("meshwork", "checkpoint", "inspect", folder).stdout
        self.assertIn("h.0.experts.0.up.weight to h.0.experts.7.up.weight [6,16]", shown)

    def test_weights_that_files_hold_as_vectors_do_not_decay(self):
        run = self.space.train(self.space.compile(self.model, spec("one", optimizer={"weight_decay": 0.5})), self.data, 1,
                               lr=1e-3, seed=5)
        plain = self.space.train(self.space.compile(self.model, spec("one", optimizer={"weight_decay": 0.0})), self.data, 1,
                                 lr=1e-3, seed=5)
        for name, values in run.weights.items():
            decayed = plain.weights[name] - (self.initial[name] * 5e-4 if "bias" not in name else 0)
            np.testing.assert_allclose(values, decayed, atol=1e-6, err_msg=name)

    def test_explain_knows_the_files(self):
        told = self.space.must("meshwork", "explain", self.plan, NAME.format(6, "up.weight")).stdout
        self.assertIn("h.0.experts.gate_up: a parameter, h.0.experts.0.gate.weight to h.0.experts.7.gate.weight [6,16], "
                      "h.0.experts.0.up.weight to h.0.experts.7.up.weight [6,16] in files, 1536 elements", told)

    def test_plans_do_not_grow_with_the_tensors(self):
        one = text(GATE_UP.split(" or ")[0], BIAS, DOWN.split(" or ")[0])
        many = (one.replace("tensor<8x", "tensor<512x").replace("x8x12x", "x512x12x").replace("x8x6x", "x512x6x")
                .replace("[8, ", "[512, "))
        sizes = [pathlib.Path(self.space.compile(self.space.write(".mlir", model), spec("one"))).stat().st_size
                 for model in (one, many)]
        # Names alone would be 100 KB; code ends at pages.
        self.assertLess(abs(sizes[1] - sizes[0]), 16384)


if __name__ == "__main__":
    unittest.main()
