"""Ranks of a pipeline that are equal but for names are compiled once, and it shows nowhere.

Who dumps each phase sees each rank go through all of them alone. What the last phase leaves must be the same text
either way: it is all that a plan is made of but machine code.
"""
import itertools
import json
import pathlib
import unittest

import configs
import pairs
import same_bits
import tools

STAGES = 4
SEQUENCE = 24
LAYERS = {"num_hidden_layers": 8}
MODELS = {"gpt2": {**configs.GPT2, "n_layer": 8, "n_head": 4, "tie_word_embeddings": False},
          "gpt2-dropout": {**configs.GPT2, **same_bits.DROPPING, "n_layer": 8, "n_head": 4},
          "mixtral": {**configs.MIXTRAL, **LAYERS},
          # Four layers look back without limit, four through a window.
          "windows": {**configs.QWEN2, **LAYERS, "max_window_layers": 4},
          # Every other layer has experts.
          "alternating": {**configs.QWEN3_MOE, **LAYERS, "mlp_only_layers": [0, 2, 4, 6]},
          "llama": {**configs.LLAMA, **LAYERS}}
# Axes, [shard], [zero]
LAYOUTS = {"pp": ([], {}, {}), "zero1": (["dp=2"], {}, {"stage": 1}), "zero3": (["dp=2"], {}, {"stage": 3}),
           "tp-sp": (["tp=2"], same_bits.SPLIT, {}), "cp": (["cp=2"], {"sequence": ["cp"]}, {})}
SCHEDULES = {"1f1b": None, "gpipe": None, "interleaved-1f1b": 2, "zb-h1": None, "zb-v": None, "auto": None}
POLICIES = ({"policy": "none"}, {"policy": "selective"}, {"policy": "full"}, {"policy": "offload"})
OFFLOAD = (False, True)
TARGETS = ("cpu", "cuda")


def cases():
    return pairs.choose(itertools.product(MODELS, LAYOUTS, SCHEDULES, POLICIES, OFFLOAD, ("joined", "separate"), TARGETS))


def spec(layout, schedule, policy, offload, documents, target, **pipeline):
    axes, rules, zero = LAYOUTS[layout]
    replicas = 2 if "dp=2" in axes else 1
    keys = {"schedule": schedule, **pipeline}
    offloaded = {"optimizer": offload}
    if offload or policy["policy"] == "offload":
        offloaded["window"] = "16 KiB"  # so that activations of 1 KiB move
    if SCHEDULES[schedule]:
        keys["virtual_stages"] = SCHEDULES[schedule]
    return tools.spec(8 * replicas, 1, SEQUENCE, documents=documents, mesh={"axes": [f"pp={STAGES}", *axes]},
                      shard=rules, zero=zero, pipeline=keys, recompute=policy,
                      offload=offloaded, target={"device": target})


class EqualRanks(unittest.TestCase):
    cost_s = 60

    def setUp(self):
        self.space = tools.Workspace()
        self.addCleanup(self.space.close)

    def compile(self, config, text):
        """The last phase, ranks alone and folded, and how many of them another one stood for."""
        model, file = self.space.model(config), self.space.write(".toml", text)
        phases = pathlib.Path(self.space.file("-phases"))
        self.space.must("meshwork", "compile", model, "--spec", file, "--compile-to", "memory", "--dump-phases", phases,
                        "-o", self.space.file(".mlir"))
        folded = pathlib.Path(self.space.file(".mlir"))
        self.space.must("meshwork", "compile", model, "--spec", file, "--compile-to", "memory", "-o", folded)
        first = self.space.must("meshwork-opt", phases / "4-pipeline.mlir", "-pipeline-fold-ranks").stdout
        return (phases / "8-memory.mlir").read_text(), folded.read_text(), first.count("#schedule.equal_rank<")

    def check(self, config, text):
        alone, folded, count = self.compile(config, text)
        self.assertTrue(alone == folded, text)  # of megabytes
        return count

    def test_each_pair_of_values(self):
        counts = {}
        for model, *rest in cases():
            with self.subTest(model=model, rest=rest):
                counts.setdefault(model, []).append(self.check(MODELS[model], spec(*rest)))
        # Two of four ranks have neither the first nor the last layer. Dropout tells them apart, and so does the row
        # that each router has in the counts of chosen experts.
        for model in ("gpt2", "llama"):
            self.assertEqual({1}, set(counts[model]), counts)
        for model in ("gpt2-dropout", "mixtral", "alternating"):
            self.assertEqual({0}, set(counts[model]), counts)

    def test_layers_that_differ(self):
        usual = ("pp", "1f1b", {"policy": "selective"}, False, "joined", "cpu")
        # The two ranks in the middle have as many layers, or not.
        self.assertEqual(1, self.check(MODELS["llama"], spec(*usual, layers=[2, 2, 2, 2])))
        self.assertEqual(0, self.check(MODELS["llama"], spec(*usual, layers=[2, 1, 3, 2])))
        # Windows begin between them; both have such a layer.
        self.assertEqual(0, self.check(MODELS["windows"], spec(*usual, layers=[2, 2, 2, 2])))
        self.assertEqual(1, self.check(MODELS["windows"], spec(*usual, layers=[4, 1, 1, 2])))

    def test_what_a_budget_chooses_for_each_layer(self):
        """Policies by layer: ranks of equal layers that are recomputed in different ways are two."""
        text = spec("pp", "1f1b", {"policy": "auto"}, False, "joined", "cpu")
        whole = self.memory(text.replace("auto", "none"))
        least = self.memory(text.replace("auto", "full"))
        for share in (0.25, 0.5, 0.75):
            limit = f'[expect]\nmemory_per_rank = "{int(least + share * (whole - least))} B"\n'
            alone, folded, _ = self.compile(MODELS["llama"], text + limit)
            self.assertTrue(alone == folded, share)

    def memory(self, text):
        plan = self.space.compile(MODELS["llama"], text)
        return self.space.explain(plan)["memory_per_rank_bytes"]["peak"]


if __name__ == "__main__":
    unittest.main()
