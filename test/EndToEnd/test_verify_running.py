"""`meshwork verify MODEL --spec SPEC --by-running`: examples, large models, and what strangers type."""
import itertools
import json
import unittest

import shell

MODELS = ("gpt2-tiny", "llama-tiny", "mistral-tiny", "qwen2-tiny", "qwen3-tiny")
SPECS = ("dp2", "tp2-sp", "zero3", "hsdp", "pp2-zero-bubble", "cp2", "cp4-ring", "documents", "lion")
LARGE = """[mesh]
axes = ["pp=16", "dp=8", "cp=16", "tp=8"]
[shard]
residual_sequence = ["tp"]
[zero]
stage = 3
[batch]
global = 128
micro = 1
sequence = 131072
[pipeline]
schedule = "interleaved-1f1b"
virtual_stages = 4
[context]
method = "{method}"
"""
# Two streams through each layer.
UNCHAINED = """
#e = #transformer.dims<embed>
#ee = #transformer.dims<wide, embed>
!tokens = tensor<?x?xi32, #transformer.dims<batch, sequence>>
!x = tensor<?x?x16xf32, #transformer.dims<batch, sequence, embed>>
!y = tensor<?x?x16xf32, #transformer.dims<batch, sequence, wide>>
!w = tensor<16x16xf32, #ee>
module {
  func.func @loss(%tokens: !tokens, %targets: !tokens) -> tensor<f32> {
    %t = transformer.parameter "t" init <normal, 0.0, 0.02> : tensor<64x16xf32, #transformer.dims<vocab, embed>>
    %x0 = transformer.embedding %t, %tokens : tensor<64x16xf32, #transformer.dims<vocab, embed>>, !tokens -> !x
LAYERS
    %l = transformer.head_loss %xN, %t, %targets scale 1.0 : !x, tensor<64x16xf32, #transformer.dims<vocab, embed>>, !tokens -> tensor<f32>
    return %l : tensor<f32>
  }
}
"""
LAYER = """
    %wI = transformer.parameter "w.I" layer I init <normal, 0.0, 0.02> : !w
    %aI = transformer.contract "bse,we->bsw" %xP, %wI : !x, !w -> !y
    %bI = transformer.contract "bsw,we->bse" %aI, %wI : !y, !w -> !x
    %xI = transformer.add %xP, %bI : !x, !x -> !x
"""


class VerifyRunning(unittest.TestCase):
    cost_s = 30

    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)

    def verify(self, model, spec, *more):
        return self.space.must("meshwork", "verify", model, "--spec", spec, "--by-running", *more).stdout

    def test_examples_compute_what_one_rank_computes(self):
        for i, (model, spec) in enumerate(itertools.product(MODELS, SPECS)):
            if i % 3 and i % len(SPECS):
                continue
            device = ("cpu", "cuda")[i % 2]
            told = self.verify(f"examples/{model}.json", f"examples/{spec}.toml", "--set", f"target.device={device}")
            self.assertIn("what one rank computes", told, f"{model} {spec} {device}")

    def test_a_stage_keeps_a_layer_where_a_schedule_has_two_on_each_rank(self):
        config = json.loads((shell.ROOT / "examples" / "llama-tiny.json").read_text())
        self.space.write("five.json", json.dumps(config | {"num_hidden_layers": 5}))
        self.space.write("v.toml", "[mesh]\naxes = [\"pp=2\"]\n[batch]\nglobal = 4\nmicro = 1\nsequence = 8\n"
                                   "[pipeline]\nschedule = \"zb-v\"\n")
        self.assertIn("what one rank computes", self.verify("five.json", "v.toml"))

    def test_16384_ranks_become_a_few(self):
        self.space.write("large.json", (shell.ROOT / "test" / "EndToEnd" / "llama-405b.json").read_text())
        self.space.write("large.toml", LARGE.format(method="ring"))
        told = self.verify("large.json", "large.toml")
        for part in ("axis pp 16 -> 4", "axis dp 8 -> 2", "axis cp 16 -> 4", "axis tp 8 -> 2", "layers 126 -> 17",
                     "64 ranks compute what one rank computes"):
            self.assertIn(part, told)

    def test_each_choice_of_the_compiler_is_run(self):
        spec = "examples/cp2.toml"
        told = self.verify("examples/llama-tiny.json", spec, "--set", "context.method=auto")
        for method in ("gathered", "ulysses", "ring"):
            self.assertIn(f"context.method {method}: 2 ranks compute what", told)
        told = self.verify("examples/llama-tiny.json", spec, "--set", "recompute.policy=auto", "--set",
                           "expect.memory_per_rank=1 GiB", "--set", "batch.micro=auto")
        self.assertIn("what one rank computes", told)

    def test_products_in_fp8(self):
        """Those that are in 8 bits stay so, and others do not become so: 176 / 2 is a multiple of 8 alone."""
        fp8 = ("--set", "precision.matmul=fp8")
        for model, spec, products, *more in (
                ("llama", "tp2", "24 of 42"), ("llama", "dp2", "42 of 42", "precision.scaling=delayed"),
                ("mixtral", "ep2", "24 of 32"), ("gpt2", "pp2-zero-bubble", "24 of 24", "target.device=cuda")):
            sets = [part for one in more for part in ("--set", one)]
            told = self.verify(f"examples/{model}-tiny.json", f"examples/{spec}.toml", *fp8, *sets)
            self.assertIn("what one rank computes", told)
            self.assertIn(f"products in FP8: {products}", told)
            self.assertEqual("rows of experts" in told, model == "mixtral")

    def test_layers_that_are_no_chain_stay(self):
        def text(layers):
            return UNCHAINED.replace("LAYERS", "".join(layers)).replace("%xN", f"%x{len(layers)}")
        layers = [LAYER.replace("I", str(i)).replace("xP", f"x{i - 1}").replace(f"layer {i}", f"layer {i - 1}")
                  for i in range(1, 7)]
        self.space.write("chain.mlir", text(layers))
        self.assertIn("layers 6 -> 3", self.verify("chain.mlir", "examples/dp2.toml"))
        # The last layer also reads what the second one made.
        layers[5] = layers[5].replace("%x6 = transformer.add %x5, %b6", "%x6 = transformer.add %x5, %b2")
        self.space.write("skips.mlir", text(layers))
        told = self.verify("skips.mlir", "examples/dp2.toml")
        self.assertIn("layers are all kept", told)
        self.assertIn("what one rank computes", told)

    def test_what_is_too_large_is_told(self):
        layers = [LAYER.replace("I", "1").replace("xP", "x0").replace("layer 1", "layer 0")]
        text = UNCHAINED.replace("LAYERS", "".join(layers)).replace("%xN", "%x1").replace("64x16", "1048576x16")
        cut = """
    %cut = transformer.slice %t dim "vocab" offset 9 : tensor<1048576x16xf32, #transformer.dims<vocab, embed>> -> tensor<16xf32, #e>
    %x0 = transformer.add %y0, %cut : !x, tensor<16xf32, #e> -> !x
"""
        self.space.write("cut.mlir", text.replace("%x0 = transformer.embedding", "%y0 = transformer.embedding")
                         .replace("-> !x\n", "-> !x\n" + cut, 1))
        self.space.refuse(shell.DATA, ["stays too large", "1048576", "cut at an offset"], "meshwork", "verify",
                          "cut.mlir", "--spec", "examples/dp2.toml", "--by-running")
        axes = [f"a{i}=2" for i in range(12)]
        names = [f"a{i}" for i in range(12)]
        self.space.write("wide.toml", f"[mesh]\naxes = {json.dumps(axes)}\n[shard]\nbatch = {json.dumps(names)}\n"
                         "[batch]\nglobal = 4096\nmicro = 1\nsequence = 16\n")
        self.space.refuse(shell.SPEC, ["4096 ranks", "512"], "meshwork", "verify", "examples/gpt2-tiny.json",
                          "--spec", "wide.toml", "--by-running")

    def test_mistakes_are_told(self):
        model, spec = "examples/gpt2-tiny.json", "examples/dp2.toml"
        for code, needles, *line in (
                (shell.USAGE, ["--spec"], model, "--by-running"),
                (shell.USAGE, ["--by-running"], model, "--spec", spec),
                (shell.NO_INPUT, ["missing.json"], "missing.json", "--spec", spec, "--by-running"),
                (shell.NO_INPUT, ["missing.toml"], model, "--spec", "missing.toml", "--by-running"),
                (shell.SPEC, ["batch.micro"], model, "--spec", spec, "--by-running", "--set", "batch.micro=-1"),
                (shell.SPEC, ["batch.sequence"], model, "--spec", spec, "--by-running", "--set", "batch.sequence=4096"),
                (shell.DATA, ["README.md"], "README.md", "--spec", spec, "--by-running")):
            self.space.refuse(code, needles, "meshwork", "verify", *line)


if __name__ == "__main__":
    unittest.main()
