"""Layers are what the model declares: names decide nothing."""
import json
import re
import unittest

import shell

MODEL, TWO = "examples/llama-tiny.json", "examples/tp2-sp.toml"
ODD = {"model.layers.0.": "second.9.", "model.layers.1.": "first.", "lm_head.weight": "ln.2147483647.weight"}


class Layers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)
        cls.space.must("meshwork", "import", MODEL, "-o", "given.mlir")
        text = cls.space.read("given.mlir")
        for name, other in ODD.items():
            text = text.replace(f'"{name}', f'"{other}')
        cls.space.write("odd.mlir", text)
        cls.space.write("flat.mlir", re.sub(r'" layer \d+ init', '" init', text))

    def command(self, model, *changes):
        sets = [word for change in changes for word in ("--set", change)]
        return ("meshwork", "compile", model, "--spec", TWO, *sets, "-o", f"{model}.mwplan")

    def told(self, model, *changes):
        self.space.must(*self.command(model, *changes))
        return json.loads(self.space.must("meshwork", "explain", f"{model}.mwplan", "--json").stdout)

    def shape(self, told):
        """All of a plan but names, and sums of collectives by what they are."""
        sums = {}
        for one in told["collectives"]:
            key = one["kind"], one["axis"], one["phase"], tuple(one["annotations"])
            count, sent = sums.get(key, (0, 0))
            sums[key] = count + one["count"], sent + one["bytes_sent_per_rank"]
        ranks, = told["rank_classes"]
        return {"memory": told["memory_per_rank_bytes"], "collectives": sums,
                "arena": ranks["arena_bytes"],
                "buffers": [(b["kind"], b["offset_bytes"], b["bytes"], b["life"]) for b in ranks["buffers"]],
                "instructions": [(i["phase"], i["operation"], i["flops"], i["reads"], i["writes"])
                                 for i in ranks["instructions"]]}

    def test_plans_are_the_same_whatever_the_names(self):
        for policy in ("selective", "full"):
            change = f'recompute.policy="{policy}"'
            self.assertEqual(self.shape(self.told("given.mlir", change)),
                             self.shape(self.told("odd.mlir", change)), policy)

    def test_recompute_needs_layers_to_drop_them(self):
        changes = 'recompute.policy="full"', "expect.collectives=[]"
        peaks = {model: self.told(model, *changes)["memory_per_rank_bytes"]["activations"]
                 for model in ("odd.mlir", "flat.mlir")}
        self.assertLess(peaks["odd.mlir"], peaks["flat.mlir"])

    def test_budgets_count_declared_layers(self):
        def budget(text):
            return f"expect.collectives=['{text}']"
        for model in ("given.mlir", "odd.mlir"):
            self.space.must(*self.command(model, budget("all_gather(tp) == 2 per layer in forward")))
            self.space.refuse(shell.SPEC, ["found 4 in the 2 layers", "expected 1 in each"],
                              *self.command(model, budget("all_gather(tp) == 1 per layer in forward")))
        self.space.refuse(shell.SPEC, ["the model declares no layers", "layer 0"],
                          *self.command("flat.mlir", budget("all_gather(tp) <= 2 per layer")))

    def scheduled(self, config, kind, *changes):
        """(op, source, layer) of each instruction of a list that computes; layer -1: of none."""
        self.space.write("three.json", json.dumps(config))
        sets = [word for change in changes for word in ("--set", change)]
        self.space.must("meshwork", "compile", "three.json", "--spec", TWO, *sets,
                        "--compile-to=schedule", "-o", "three.mlir")
        text = re.split(rf"schedule\.list +{kind} ", self.space.read("three.mlir"))[1]
        found = []
        for line in text.split("schedule.list")[0].split("\n"):
            if made := re.search(r'schedule\.(\w+) "([^"]*)"', line):
                layer = re.search(r"transformer\.layer = (\d+)", line)
                if made[1] not in ("collective", "wait", "copy_block"):
                    found.append((*made.groups(), int(layer[1]) if layer else -1))
        return found

    def test_instructions_without_a_parameter_have_the_layer_of_their_op(self):
        llama = {**json.loads((shell.ROOT / MODEL).read_text()), "num_hidden_layers": 3}
        gpt2 = {**json.loads((shell.ROOT / "examples/gpt2-tiny.json").read_text()), "n_layer": 3}
        for config in (llama, gpt2):
            for policy in ("none", "full"):
                with self.subTest(config["model_type"], policy=policy):
                    change = f'recompute.policy="{policy}"', "expect.collectives=[]"
                    forward = self.scheduled(config, "forward", *change)
                    backward = self.scheduled(config, "backward", *change)
                    self.assertEqual([l for op, _, l in forward if op == "attention"], [0, 1, 2])
                    self.assertEqual([l for op, _, l in backward if op == "attention_grad"], [2, 1, 0])
                    layers = [l for _, _, l in forward]
                    within = layers[layers.index(0):len(layers) - layers[::-1].index(2)]
                    self.assertEqual(within, sorted(within), forward)
                    places = [i for i, one in enumerate(backward) if one[0] == "attention_grad"]
                    within = [l for _, _, l in backward[places[0]:places[-1] + 1]]
                    self.assertEqual(within, sorted(within, reverse=True), backward)
                    self.assertNotIn(-1, within)

    def test_causes_name_layers_once(self):
        causes = [one["cause"] for one in self.told("given.mlir")["collectives"]]
        self.assertTrue(any("model.layers.*.mlp" in cause for cause in causes))
        self.assertFalse(any("layers.0" in cause or "layers.1" in cause for cause in causes))
        odd = [one["cause"] for one in self.told("odd.mlir")["collectives"]]
        self.assertTrue(any("second.9.mlp" in cause for cause in odd))
        self.assertFalse(any("*" in cause for cause in odd))


if __name__ == "__main__":
    unittest.main()
