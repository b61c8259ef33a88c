"""Equal layers of a model are estimated by few of them, and it shows nowhere.

Who dumps each phase sees all layers go through all of them. Each digit of the estimate must be the same either way.
"""
import itertools
import unittest

import configs
import pairs
import same_bits
import tools

SEQUENCE = 24
LAYERS = {"num_hidden_layers": 13}
WINDOWS = {"num_hidden_layers": 23, "layer_types": (["sliding_attention", "full_attention"] * 12)[:23]}
MODELS = {"gpt2": {**configs.GPT2, "n_layer": 13, "n_head": 4},
          "llama": {**configs.LLAMA, **LAYERS},
          "qwen3": {**configs.QWEN3, **LAYERS},
          "parallel": {**configs.GPT_NEOX, **LAYERS, "attention_dropout": 0.0, "hidden_dropout": 0.0},
          # Every other layer has a window. The 23rd sums up more than one kernel may read.
          "windows": {**configs.GEMMA2, **WINDOWS},
          # The first layers differ from the others.
          "two kinds": {**configs.QWEN2, **LAYERS, "max_window_layers": 4},
          "mixtral": {**configs.MIXTRAL, **LAYERS},
          "dropout": {**configs.GPT2, **same_bits.DROPPING, "n_layer": 13, "n_head": 4}}
# Each layer of a mixture counts in a row of its own, and draws of dropout have a number each.
WHOLE = ("mixtral", "dropout")
# Axes, other tables
LAYOUTS = {"one": ([], {}), "zero1": (["dp=2"], {"zero": {"stage": 1}}), "zero3": (["dp=2"], {"zero": {"stage": 3}}),
           "gathered": (["dp=2"], {"zero": {"stage": 3, "gathered": "auto"}, "expect": {"memory_per_rank": "1 GiB"}}),
           "tp-sp": (["tp=2"], {"shard": same_bits.SPLIT}),
           "ring": (["cp=2"], {"shard": {"sequence": ["cp"]}, "context": {"method": "ring"}}),
           "auto": (["cp=2"], {"shard": {"sequence": ["cp"]}}),
           "pp": (["pp=2", "dp=2"], {"zero": {"stage": 2}, "pipeline": {"schedule": "zb-h1"}})}
POLICIES = ("none", "selective", "full")
PRECISIONS = ({"compute": "f32"}, {"compute": "bf16"}, {"compute": "bf16", "gradients": "bf16"})
TARGETS = ("cpu", "cuda")


def cases():
    layouts = [layout for layout in LAYOUTS if layout not in ("auto", "gathered")]
    return pairs.choose(itertools.product(MODELS, layouts, POLICIES, PRECISIONS, ("joined", "separate"), TARGETS))


def spec(layout, policy="none", precision=PRECISIONS[0], documents="joined", target="cpu", **more):
    axes, tables = LAYOUTS[layout]
    return tools.spec(8, 1, SEQUENCE, documents=documents, mesh={"axes": axes}, recompute={"policy": policy},
                      precision=precision, target={"device": target}, **tables, **more)


class EqualLayers(unittest.TestCase):
    cost_s = 60

    def setUp(self):
        self.space = tools.Workspace()
        self.addCleanup(self.space.close)

    def check(self, config, text):
        """Whether the estimate is by few layers. It must be that of all of them."""
        arguments = ("meshwork", "compile", self.space.model(config), "--spec", self.space.write(".toml", text),
                     "--estimate", "--json")
        few = self.space.must(*arguments, "--timing")
        every = self.space.must(*arguments, "--dump-phases", self.space.file("-phases"))
        self.assertEqual(few.stdout, every.stdout, text)
        return "few layers" in few.stderr

    def test_each_pair_of_values(self):
        for model, *rest in cases():
            with self.subTest(model=model, rest=rest):
                self.assertEqual(self.check(MODELS[model], spec(*rest)), model not in WHOLE)

    def test_where_the_spec_tells_layers_apart_all_are_compiled(self):
        for name, is_few in (("model.layers.*", True), ("model.layers.3.*", False), ("*.[0-4].*", False)):
            group = f'[[optimizer.groups]]\nname = "{name}"\nrate = 0.5\n'
            self.assertEqual(self.check(MODELS["llama"], spec("zero1") + group), is_few, name)
            pin = f'[[shard.tensor]]\nname = "{name}down_proj.weight"\ndims = "[{{?}}, {{?}}]"\n'
            self.assertEqual(self.check(MODELS["llama"], spec("one") + pin), is_few, name)

    def test_what_is_chosen(self):
        """Ways of moving weights are compared from the phase on that moves them, when all layers are there."""
        self.assertTrue(self.check(MODELS["llama"], spec("auto")))
        self.assertFalse(self.check(MODELS["llama"], spec("gathered")))


if __name__ == "__main__":
    unittest.main()
