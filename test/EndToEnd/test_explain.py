"""`meshwork explain` against numbers worked out from the configuration."""
import json
import random
import unittest

import shell

MODEL = "examples/gpt2-tiny.json"
CONFIG = json.loads((shell.ROOT / MODEL).read_text())
KINDS = {"weights", "gradients", "optimizer", "activations", "communication", "workspace",
         "peak"}


def gpt2_parameters(config):
    width, inner = config["n_embd"], config["n_inner"] or 4 * config["n_embd"]
    block = (width * 3 * width + 3 * width) + (width * width + width) + 4 * width
    block += (width * inner + inner) + (inner * width + width)
    return (config["vocab_size"] + config["n_positions"]) * width \
        + config["n_layer"] * block + 2 * width


class Explain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)
        for name, compute in (("bf16.mwplan", "bf16"), ("f32.mwplan", "f32")):
            cls.space.must("meshwork", "compile", "examples/gpt2-tiny.json", "--spec",
                           "examples/dp2.toml", "--set", f"precision.compute={compute}",
                           "--set", "batch.global=16", "-o", name)

    def explain(self, *arguments):
        return self.space.must("meshwork", "explain", *arguments).stdout

    def json(self, plan):
        return json.loads(self.explain(plan, "--json"))

    def test_a_weight_that_is_stored_in_parts(self):
        """Its story says that it is whole only where it is used, and its gradient's sum over ranks is told."""
        self.space.must("meshwork", "compile", "examples/llama-tiny.json", "--spec", "examples/hsdp.toml", "-o",
                        "hsdp.mwplan")
        text = self.explain("hsdp.mwplan", "model.layers.0.mlp.up_proj.weight")
        moves = text.split("What moves it between ranks, and why\n")[1].split("\n\n")[0].splitlines()[1:]
        kinds = [(row.split()[1], row.split()[4]) for row in moves]
        self.assertEqual(kinds, [("all_gather", "weight"), ("all_gather", "weight"), ("reduce_scatter", "gradient"),
                                 ("all_reduce", "gradient")])
        self.assertIn("weight: split: dim 0 over fsdp", text)
        self.assertIn("up_proj.weight lies so where it is computed with, and not as it is stored\n  ffn: not split", text)

    def test_causes_name_what_users_know(self):
        """Of new weights, too, which come of scalars like the learning rate."""
        self.space.must("meshwork", "compile", MODEL, "--spec", "examples/dp2.toml", "--set", "zero.stage=1", "-o",
                        "one.mwplan")
        causes = {row["cause"] for row in json.loads(self.explain("one.mwplan", "--json"))["collectives"]}
        self.assertTrue(any(cause.startswith("wte.weight (weight after the update)") for cause in causes), causes)
        self.assertFalse([cause for cause in causes if "step_input" in cause or "learning rate" in cause])
        self.assertIn("(weight after the update)", self.explain("one.mwplan", "wpe.weight"))

    def test_a_pattern_tells_all_that_it_matches(self):
        text = self.explain("bf16.mwplan", "h.*.attn.c_attn.weight")
        count = CONFIG["n_layer"]
        self.assertEqual(text.count(": a parameter, ["), count)
        told = json.loads(self.explain("bf16.mwplan", "h.*.attn.c_attn.weight", "--json"))["matches"]
        self.assertEqual([one["name"] for one in told], [f"h.{i}.attn.c_attn.weight" for i in range(count)])
        self.assertRegex(self.explain("bf16.mwplan", "*"), r"and \d+ more that match \"\*\"")

    def test_json_has_the_keys_of_the_contract(self):
        told = self.json("bf16.mwplan")
        self.assertEqual(set(told), {"ranks", "programs", "parameters", "flops_per_step", "choices",
                                     "memory_per_rank_bytes", "host_memory_per_rank",
                                     "checkpoint_copy_bytes_per_rank",
                                     "collectives", "schedule", "shared_attention",
                                     "bubble_fraction", "idle_fraction", "estimate", "format_version", "mesh", "spec",
                                     "rank_classes", "unread_stores"})
        self.assertEqual(set(told["memory_per_rank_bytes"]), KINDS)
        self.assertEqual((told["ranks"], told["programs"], told["bubble_fraction"]), (2, 1, 0))
        self.assertEqual(told["idle_fraction"], 0)

    def test_model_state_in_bytes_a_parameter(self):
        """Sixteen; in bf16 eighteen where gradients of two microbatches are summed, in f32."""
        count = gpt2_parameters(CONFIG)
        mixed, single = self.json("bf16.mwplan"), self.json("f32.mwplan")
        self.assertEqual(mixed["parameters"], count)
        memory = mixed["memory_per_rank_bytes"]
        self.assertEqual([memory[k] for k in ("weights", "gradients", "optimizer")],
                         [2 * count, 4 * count, 12 * count])
        # Two ranks share master and two moments.
        self.assertAlmostEqual(mixed["checkpoint_copy_bytes_per_rank"], 6 * count, delta=0.02 * count)
        self.assertIn("Checkpoints: a copy of the states", self.explain("bf16.mwplan"))
        self.assertIn("sums    gradients in f32 over 2 microbatches\n", self.explain("bf16.mwplan"))
        self.space.must("meshwork", "compile", "examples/gpt2-tiny.json", "--spec", "examples/dp2.toml", "-o", "one.mwplan")
        memory = self.json("one.mwplan")["memory_per_rank_bytes"]
        self.assertEqual([memory[k] for k in ("weights", "gradients", "optimizer")],
                         [2 * count, 2 * count, 12 * count])
        self.assertIn("sums    gradients in bf16\n", self.explain("one.mwplan"))
        memory = single["memory_per_rank_bytes"]
        self.assertEqual([memory[k] for k in ("weights", "gradients", "optimizer")],
                         [4 * count, 4 * count, 8 * count])
        self.assertGreater(memory["peak"], 16 * count)

    def test_schedule_has_each_microbatch(self):
        # 16 sequences over 2 ranks, 4 at a time.
        self.assertEqual(self.json("f32.mwplan")["schedule"],
                         [["0F0", "0B0", "0F1", "0B1"]])

    def test_gradients_cross_the_mesh_once_a_step(self):
        self.space.must("meshwork", "compile", "examples/gpt2-tiny.json", "--spec", "examples/dp2.toml", "--set",
                        "precision.compute=f32", "--set", "overlap.collectives=always", "-o", "overlapped.mwplan")
        told = self.json("overlapped.mwplan")
        sent = sum(c["bytes_sent_per_rank"] for c in told["collectives"])
        # Over two ranks an all_reduce sends its buffer once: gradients and the loss.
        self.assertEqual(sent, 4 * told["parameters"] + 4)
        for collective in told["collectives"]:
            self.assertEqual((collective["kind"], collective["axis"]), ("all_reduce", "dp"))
            # Gradients under the last backward pass, the loss when all is known.
            self.assertEqual(collective["phase"], "update" if collective["cause"].startswith("loss") else "backward")
            self.assertTrue(collective["cause"])

    def test_flops_are_those_of_the_matmuls(self):
        """Six flops a weight of a matmul and token, and the attention, within a tenth:
        norms and activations are counted too, and are small."""
        told = self.json("f32.mwplan")
        tokens, width, sequence = 16 * 64, CONFIG["n_embd"], 64
        matmul = CONFIG["n_layer"] * 12 * width * width + CONFIG["vocab_size"] * width
        attention = CONFIG["n_layer"] * 2 * sequence * width
        low = 6 * tokens * matmul
        high = 1.1 * 6 * tokens * (matmul + attention)
        self.assertGreater(told["flops_per_step"], low)
        self.assertLess(told["flops_per_step"], high)

    def test_flops_are_the_models_whatever_the_mesh(self):
        """By hand: each weight of a matmul 2 flops a token forward and 4 backward; for each pair
        of a query and a key that it sees, 4 a channel forward and 8 backward."""
        count = 6 * 16 * 64 * (12 * 2 * 64 * 64 + 256 * 64)
        attention = 12 * 2 * 16 * (64 * 65 // 2) * 64
        for mesh, micro in (("dp=1", 4), ("dp=2", 2), ("tp=2", 8)):
            self.space.must("meshwork", "compile", "examples/gpt2-tiny.json", "--spec",
                            "examples/dp2.toml", "--set", f'mesh.axes=["{mesh}"]', "--set",
                            f"batch.micro={micro}", "--set", "batch.global=16", "-o", "m.mwplan")
            self.assertEqual(self.json("m.mwplan")["flops_per_step"], count + attention, mesh)

    def test_text_and_schedule(self):
        text = self.explain("bf16.mwplan")
        for fact in ("2 ranks, batch split over dp", "weights", "optimizer", "all_reduce",
                     "forward", "backward", "0F0,0B0,0F1,0B1\n"):
            self.assertIn(fact, text)
        longer = self.explain("bf16.mwplan", "--schedule")
        self.assertTrue(longer.startswith(text))
        self.assertGreater(longer.count("matmul"), 12 * CONFIG["n_layer"])

    def test_nothing_is_stored_that_nothing_reads(self):
        """Before, gradients of norms and SwiGLU were stored in bf16 beside their copies in FP8."""
        fp8 = ["precision.matmul=fp8"]
        for model, spec, sets in (("llama-tiny", "dp2", ["target.device=cuda", "target.arch=sm_90a", *fp8]),
                                  ("gpt2-tiny", "zero3", ["target.arch=x86-64-v3", *fp8, "precision.scaling=delayed"]),
                                  ("mistral-tiny", "pp2", ["target.arch=x86-64-v3", "recompute.policy=none"])):
            with self.subTest(model, spec=spec):
                self.space.must("meshwork", "compile", f"examples/{model}.json", "--spec", f"examples/{spec}.toml",
                                *(part for one in sets for part in ("--set", one)), "-o", "unread.mwplan")
                self.assertEqual(self.json("unread.mwplan")["unread_stores"], [])

    def test_the_story_of_a_weight(self):
        name = "h.0.mlp.c_fc.weight"
        text = self.explain("bf16.mwplan", name)
        for fact in ("a parameter, [64,256] in files", "bf16[64,256]", "f32[64,256]", "always",
                     "gradient: partial over dp", "all_reduce", "matmul"):
            self.assertIn(fact, text)
        self.assertEqual(text, self.explain("bf16.mwplan", "h.0.*c_fc.weight"))
        self.assertEqual(text, self.explain("bf16.mwplan", "0.mlp.c_fc.weight"))

    def test_names_that_are_not_there(self):
        self.space.refuse(shell.USAGE, ["h.0.mlp.c_fc.weight"], "meshwork", "explain",
                          "f32.mwplan", "h.0.mlp.c_fc.wieght")
        self.space.refuse(shell.USAGE, ["means 2 values"], "meshwork", "explain", "f32.mwplan",
                          "mlp.c_fc.weight")

    def test_damaged_plans(self):
        whole = (self.space.path / "f32.mwplan").read_bytes()
        choose = random.Random(7)
        broken = [whole[:n] for n in (0, 1, 63, 64, 65, len(whole) // 2, len(whole) - 1)]
        for place in [choose.randrange(len(whole)) for _ in range(60)]:
            flipped = bytearray(whole)
            flipped[place] ^= 1 << choose.randrange(8)
            broken.append(bytes(flipped))
        for content in broken:
            self.space.write("broken.mwplan", content)
            done = self.space.refuse(shell.DATA, ["broken.mwplan"], "meshwork", "explain",
                                     "broken.mwplan", "--json")
            self.assertEqual(done.stdout, "")
        self.space.refuse(shell.NO_INPUT, ["absent"], "meshwork", "explain", "absent")
        self.space.refuse(shell.DATA, [], "meshwork", "explain", "README.md")


if __name__ == "__main__":
    unittest.main()
