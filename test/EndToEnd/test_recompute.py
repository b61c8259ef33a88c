"""What the recompute policies keep, in bytes of a plan, against closed forms."""
import json
import re
import unittest

import shell

BATCH, SEQUENCE = 8, 64
GPT2 = {"model_type": "gpt2", "vocab_size": 256, "n_positions": SEQUENCE, "n_embd": 64, "n_head": 4,
        "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1}
LLAMA = {"model_type": "llama", "vocab_size": 256, "hidden_size": 64, "intermediate_size": 192,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": SEQUENCE,
         "rms_norm_eps": 1e-5, "hidden_act": "silu"}
BF16, F32 = 2, 4
TOKENS = BATCH * SEQUENCE


def spec(axes, policy, sequence_parallel=False, **expect):
    lines = ["[mesh]", f"axes = {json.dumps(axes)}", "[batch]",
             f"global = {BATCH}", f"micro = {BATCH}", f"sequence = {SEQUENCE}",
             "[recompute]", f'policy = "{policy}"']
    if sequence_parallel:
        lines += ["[shard]", 'residual_sequence = ["tp"]']
    if expect:
        lines += ["[expect]", *(f'{key} = "{value}"' for key, value in expect.items())]
    return "\n".join(lines)


class Recompute(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)

    def memory(self, config, layers, text):
        key = "n_layer" if "n_layer" in config or config["model_type"] == "gpt2" else "num_hidden_layers"
        self.space.write("model.json", json.dumps({**config, key: layers}))
        self.space.write("spec.toml", text)
        self.space.must("meshwork", "compile", "model.json", "--spec", "spec.toml", "-o", "a.mwplan")
        told = json.loads(self.space.must("meshwork", "explain", "a.mwplan", "--json").stdout)
        return told["memory_per_rank_bytes"]

    def bytes_of_a_layer(self, config, text):
        """Layers are alike, so one more costs what one keeps."""
        fewer, more = (self.memory(config, n, text)["activations"] for n in (4, 5))
        return more - fewer

    # Per token, in elements; h = 64. Korthikanti et al. (arXiv 2205.05198) count 34 h bytes a
    # layer in 16-bit beside the scores, 2 h of it dropout masks, which are drawn again here.
    # Attention keeps one f32 a head and token, its log-sum-exp; a norm the sum of a row, and of its
    # squares.
    def test_gpt2(self):
        h, heads = 64, 4
        sums = F32 * heads + F32 * 2 * 2
        residuals, norms, attention, ffn = 2 * h, 2 * h, 4 * h, 8 * h
        self.assertEqual(BF16 * (residuals + norms + attention + ffn), 34 * h - 2 * h)
        forms = {"none": BF16 * (residuals + norms + attention + ffn) + sums,
                 # The norms' outputs and the activation's are computed again.
                 "selective": BF16 * (residuals + attention + ffn // 2) + sums,
                 "full": BF16 * h}
        for policy, form in forms.items():
            self.assertEqual(self.bytes_of_a_layer(GPT2, spec(["dp=1"], policy)), TOKENS * form, policy)

    def test_llama(self):
        h, heads, f = 64, 4, 192
        sums = F32 * heads + F32 * 2
        attention = h + h // 2 + h // 2 + h  # q, fewer k and v, result
        forms = {"none": BF16 * (4 * h + attention + 3 * f) + sums,
                 "selective": BF16 * (2 * h + attention + 2 * f) + sums,
                 "full": BF16 * h}
        for policy, form in forms.items():
            self.assertEqual(self.bytes_of_a_layer(LLAMA, spec(["dp=1"], policy)), TOKENS * form, policy)

    def test_sequence_parallel_divides_all_but_what_none_keeps_gathered(self):
        h = 64
        for policy, gathered in (("none", 2 * h), ("selective", 0), ("full", 0)):
            whole = self.bytes_of_a_layer(GPT2, spec(["tp=1"], policy))
            part = self.bytes_of_a_layer(GPT2, spec(["tp=2"], policy, sequence_parallel=True))
            self.assertEqual(part, whole // 2 + TOKENS * BF16 * gathered // 2, policy)

    def test_auto_keeps_what_fits(self):
        layers = 6
        peaks = {p: self.memory(LLAMA, layers, spec(["dp=1"], p))["peak"] for p in ("none", "selective", "full")}
        self.assertLess(peaks["full"], peaks["selective"])
        self.assertLess(peaks["selective"], peaks["none"])
        used = {}
        for name, budget in {"all": 2 * peaks["none"], "some": (peaks["selective"] + peaks["none"]) // 2,
                             "little": (peaks["selective"] + peaks["full"]) // 2}.items():
            told = self.memory(LLAMA, layers, spec(["dp=1"], "auto", memory_per_rank=f"{budget} B"))
            used[name] = told["peak"]
            self.assertLessEqual(told["peak"], budget)
        self.assertEqual(used["all"], peaks["none"])
        # Never worse than the better of the two at the same budget.
        self.assertGreater(used["some"], peaks["selective"])
        self.assertGreater(used["little"], peaks["full"])
        self.space.write("spec.toml", spec(["dp=1"], "auto", memory_per_rank="1 MiB"))
        self.space.refuse(shell.SPEC, ["memory_per_rank", "full in 6 layers", "batch.micro = 4"],
                          "meshwork", "compile", "model.json", "--spec", "spec.toml", "-o", "b.mwplan")

    def test_the_memory_of_the_machine_is_the_budget_where_none_is_given(self):
        peaks = {p: self.memory(LLAMA, 4, spec(["dp=1"], p))["peak"] for p in ("selective", "none")}
        capacity = sum(peaks.values()) // 2
        machine = (shell.ROOT / "examples/machines/xeon-2.toml").read_text()
        self.space.write("m.toml", machine.replace("[memory]", f"[memory]\ncapacity = {capacity}"))
        named = '\n[target]\nmachine = "m.toml"'
        used = self.memory(LLAMA, 4, spec(["dp=1"], "auto") + named)["peak"]
        self.assertGreater(used, peaks["selective"])
        self.assertLessEqual(used, capacity)
        self.assertEqual(self.memory(LLAMA, 4, spec(["dp=1"], "none", memory_per_rank="1 GiB") + named)["peak"],
                         peaks["none"])
        self.space.write("spec.toml", spec(["dp=1"], "none") + named)
        self.space.refuse(shell.SPEC, ['memory.capacity of target.machine "xeon-2": each rank needs ',
                                       f"= {peaks['none']} bytes, expected at most ", f"= {capacity} bytes\n", "recompute.policy = selective"],
                          "meshwork", "compile", "model.json", "--spec", "spec.toml", "-o", "b.mwplan")

    def plan(self, micro, policy, budget):
        """What `explain` says of that many sequences a microbatch, and what `compile` says; nothing of what is refused."""
        self.space.write("model.json", json.dumps({**LLAMA, "num_hidden_layers": 2}))
        self.space.write("spec.toml", spec(["dp=1"], policy, memory_per_rank=f"{budget} B").replace(
            f"micro = {BATCH}", f"micro = {micro}"))
        done = self.space.run("meshwork", "compile", "model.json", "--spec", "spec.toml", "-o", "a.mwplan")
        if done.returncode != 0:
            return None
        return json.loads(self.space.must("meshwork", "explain", "a.mwplan", "--json").stdout), done.stderr

    def test_the_microbatch_is_the_fastest_that_fits(self):
        sizes = set()
        for limit, policy in ((1, "selective"), (4, "selective"), (4, "auto")):
            budget = self.plan(limit, "selective", 1 << 40)[0]["memory_per_rank_bytes"]["peak"]
            given = {micro: self.plan(micro, policy, budget) for micro in (1, 2, 4, 8)}
            steps = {micro: plan[0]["estimate"]["step_ms"] for micro, plan in given.items() if plan}
            best = min(steps, key=steps.get)
            chosen, said = self.plan('"auto"', policy, budget)
            self.assertIn(f"microbatch: {best} sequence{'s' * (best > 1)}\n", said)
            self.assertEqual(chosen, given[best][0])
            sizes.add(best)
        self.assertGreater(len(sizes), 1)

    def test_the_microbatch_of_a_pipeline_is_the_fastest_that_fits(self):
        """Small ones leave stages less idle. On a machine that is slow to launch large ones are
        faster, unless they need too much."""
        self.space.write("model.json", json.dumps({**LLAMA, "num_hidden_layers": 4}))
        machine = (shell.ROOT / "examples/machines/xeon-2.toml").read_text()
        self.space.write("slow.toml", re.sub(r"(\[launch\]\n[^=]*= )\S+", r"\g<1>1e-4", machine))

        def plan(micro, schedule, budget, policy="auto"):
            text = spec(["pp=2"], policy, memory_per_rank=f"{budget} B").replace(f"micro = {BATCH}", f"micro = {micro}")
            self.space.write("spec.toml", "\n".join([
                text, "[shard]", 'layers = ["pp"]', "[pipeline]", f'schedule = "{schedule}"',
                "[target]", 'machine = "slow.toml"']))
            done = self.space.run("meshwork", "compile", "model.json", "--spec", "spec.toml", "-o", "a.mwplan")
            if done.returncode != 0:
                self.assertIn("expect.memory_per_rank", done.stderr)
                return None
            return json.loads(self.space.must("meshwork", "explain", "a.mwplan", "--json").stdout), done.stderr

        sizes = set()
        for schedule, limit in (("1f1b", 8), ("1f1b", 1), ("auto", 2)):
            budget = plan(limit, schedule, 1 << 40, "full")[0]["memory_per_rank_bytes"]["peak"]
            given = {micro: plan(micro, schedule, budget) for micro in (1, 2, 4, 8)}
            steps = {micro: one[0]["estimate"]["step_ms"] for micro, one in given.items() if one}
            best = min(steps, key=steps.get)
            chosen, said = plan('"auto"', schedule, budget)
            self.assertIn(f"microbatch: {best} sequence{'s' * (best > 1)}\n", said)
            self.assertEqual(chosen, given[best][0])
            sizes.add(best)
        self.assertGreater(len(sizes), 1)

    def test_the_microbatch_needs_a_budget_that_something_fits(self):
        self.assertIsNone(self.plan('"auto"', "full", 1 << 20))
        self.space.refuse(shell.SPEC, ["expect.memory_per_rank: each rank needs", "microbatch: 1 sequence\n"],
                          "meshwork", "compile", "model.json", "--spec", "spec.toml", "-o", "b.mwplan")
        shown = self.space.must("meshwork", "compile", "model.json", "--spec", "spec.toml", "--print-config").stdout
        self.assertIn('micro = "auto"', shown)

    def test_auto_needs_a_budget(self):
        self.space.write("spec.toml", spec(["dp=1"], "auto") + '\n[target]\nmachine = "xeon-2"')
        self.space.refuse(shell.SPEC, ["spec.toml:", "recompute.policy", "memory.capacity"],
                          "meshwork", "compile", "examples/llama-tiny.json", "--spec", "spec.toml", "-o", "b.mwplan")
        self.space.write("spec.toml", spec(["dp=1"], "auto"))
        self.space.refuse(shell.SPEC, ["recompute.policy", "expect.memory_per_rank"],
                          "meshwork", "compile", "examples/llama-tiny.json", "--spec", "spec.toml", "-o", "b.mwplan")


if __name__ == "__main__":
    unittest.main()
