"""Why values lie as they do, and budgets that a plan must keep."""
import json
import re
import unittest

import shell

MODEL, TWO = "examples/llama-tiny.json", "examples/tp2-sp.toml"


class Why(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)
        cls.space.must("meshwork", "compile", MODEL, "--spec", TWO, "-o", "sp.mwplan")

    def told(self, plan, value):
        text = self.space.must("meshwork", "explain", plan, value, "--json").stdout
        return {entry["name"]: entry for entry in json.loads(text)["values"]}

    def test_from_the_weight_to_the_spec(self):
        value = self.told("sp.mwplan", "model.layers.1.self_attn.q_proj")[
            "model.layers.1.self_attn.q_proj"]
        heads = next(dim for dim in value["dims"] if dim["dim"] == "heads")
        self.assertEqual(heads["axes"], [{"axis": "tp", "chain": [
            {"op": "contract", "factor": "heads", "dim": "heads",
             "follows": "model.layers.1.self_attn.q_proj.weight"},
            {"annotation": "shard.heads", "value": '["tp"]', "place": "default"}]}])

    def test_what_gave_way_and_what_it_costs(self):
        value = self.told("sp.mwplan", "model.layers.0.input_layernorm")[
            "model.layers.0.input_layernorm"]
        sequence = next(dim for dim in value["dims"] if dim["dim"] == "sequence")
        annotation = sequence["axes"][0]["chain"][-1]
        self.assertEqual(annotation["annotation"], "shard.residual_sequence")
        line = (shell.ROOT / TWO).read_text().split("\n")[int(annotation["place"].split(":")[1]) - 1]
        self.assertIn("residual_sequence", line)
        move, = value["moves"]
        self.assertEqual((move["phase"], move["from"], move["to"]),
                         ("forward", '[{}, {"tp"}, {}]', "[{}, {}, {}]"))
        for word in ("q_proj", "needs all of sequence while tp splits heads", "shard.heads",
                     "since a weight"):
            self.assertIn(word, move["reason"])
        # [8, 64, 64] in bf16: each of two ranks sends its half.
        self.assertEqual(move["steps"], [
            {"step": 'all_gather {"tp"} dim 1', "bytes_sent_per_rank": 8 * 64 * 64 * 2 // 2}])

    def test_moves_are_the_collectives_of_the_plan(self):
        """Bytes of one microbatch, summed over all values, are those of the instructions, but
        for the head, whose scalars the fused loss exchanges on its own."""
        names = set()
        for layer in (0, 1):
            for leaf in ("input_layernorm", "self_attn.o_proj", "post_attention_layernorm",
                         "mlp.down_proj"):
                names.add(f"model.layers.{layer}.{leaf}")
        moved = sum(step["bytes_sent_per_rank"] for name in names
                    for move in self.told("sp.mwplan", name)[name]["moves"]
                    for step in move["steps"])
        plan = json.loads(self.space.must("meshwork", "explain", "sp.mwplan", "--json").stdout)
        sent = sum(c["bytes_sent_per_rank"] for c in plan["collectives"]
                   if c["phase"] == "forward" and c["cause"].startswith("model.layers.*"))
        self.assertEqual(moved, sent)

    def test_state_tells_of_zero(self):
        self.space.must("meshwork", "compile", MODEL, "--spec", "examples/hsdp.toml", "-o",
                        "h.mwplan")
        name = "model.layers.0.mlp.up_proj.weight"
        told = self.told("h.mwplan", name)
        chain = told[f"{name} (master)"]["dims"][0]["axes"][0]
        self.assertEqual(chain["axis"], "fsdp")
        self.assertEqual(chain["chain"][-1]["annotation"], "zero.stage")
        self.assertEqual(chain["chain"][-1]["value"], "3")
        text = self.space.must("meshwork", "explain", "h.mwplan", name).stdout
        self.assertIn("split: dim 0 over fsdp; every rank holds one of 2 parts", text)

    def test_a_pin_is_named_with_its_place(self):
        self.space.write("pin.toml", (shell.ROOT / "examples/tp2.toml").read_text()
                         .split("[expect]")[0] + '[[shard.tensor]]\nname = "*.0.mlp.down_proj.weight"'
                         "\ndims = '[{\"tp\"}, {}]'\n")
        self.space.must("meshwork", "compile", MODEL, "--spec", "pin.toml", "-o", "pin.mwplan")
        name = "model.layers.0.mlp.down_proj.weight"
        axis = self.told("pin.mwplan", name)[name]["dims"][0]["axes"][0]
        self.assertEqual(axis["chain"][0]["annotation"], "shard.tensor *.0.mlp.down_proj.weight")
        self.assertIn("pin.toml:", axis["chain"][0]["place"])


class Budgets(unittest.TestCase):
    def setUp(self):
        self.space = shell.Shell()
        self.addCleanup(self.space.close)

    def compile(self, budget, accept, *needles):
        command = ["meshwork", "compile", MODEL, "--spec", TWO, "-o", "b.mwplan", "--set",
                   f"expect.collectives=['{budget}']"]
        (self.space.path / "b.mwplan").unlink(missing_ok=True)
        if accept:
            self.space.must(*command)
        else:
            self.space.refuse(shell.SPEC, needles, *command)
            self.assertFalse((self.space.path / "b.mwplan").exists())

    def test_collectives(self):
        self.compile("all_gather(tp) == 4 per layer", True)
        self.compile("all_gather(tp) <= 3 per layer", False, "found 8 in the 2 layers",
                     "model.layers.*.input_layernorm for model.layers.*.self_attn.q_proj",
                     "shard.heads", "expected 3 in each")
        self.compile("no all_gather in update", True)
        self.compile("no all_reduce in update", False, "found 2 in a step")
        self.compile("no all_to_all", True)
        self.compile("reduce_scatter >= 6 per microbatch in backward", False, "found 5")

    def peak_with(self, change):
        """Kernels for the present machine need more or less of workspace."""
        self.space.must("meshwork", "compile", MODEL, "--spec", "examples/dp2.toml", "--set", change, "-o", "p.mwplan")
        told = json.loads(self.space.must("meshwork", "explain", "p.mwplan", "--json").stdout)
        return told["memory_per_rank_bytes"]["peak"]

    def test_memory_names_what_lives_and_the_cheapest_change(self):
        peak = 2 ** 62
        for change in ("zero.stage=1", "zero.stage=3"):
            limit = self.peak_with(change)
            done = self.space.refuse(
                shell.SPEC, ["expect.memory_per_rank: each rank needs", "Most is live at",
                             "optimizer", f"--set '{change}' is the cheapest"],
                "meshwork", "compile", MODEL, "--spec", "examples/dp2.toml", "--set",
                f"expect.memory_per_rank={limit} B", "-o", "m.mwplan")
            override = done.stderr.split("--set '")[1].split("'")[0]
            self.space.must("meshwork", "compile", MODEL, "--spec", "examples/dp2.toml", "--set",
                            f"expect.memory_per_rank={limit} B", "--set", override, "-o",
                            "m.mwplan")
            told = json.loads(self.space.must("meshwork", "explain", "m.mwplan", "--json").stdout)
            self.assertRegex(done.stderr, rf"{told['memory_per_rank_bytes']['peak']} bytes, fits, about [\d.]+ [mu]?s a step")
            self.assertLess(told["memory_per_rank_bytes"]["peak"], peak)
            peak = told["memory_per_rank_bytes"]["peak"]

    def test_other_meshes_of_the_same_ranks_are_tried_last(self):
        command = ["meshwork", "compile", MODEL, "--spec", "examples/dp2.toml", "--set", "zero.stage=3", "--set",
                   "recompute.policy=full", "--set", "batch.micro=1", "-o", "m.mwplan"]
        tensor, stages = '["dp=1", "tp=2"]', '["pp=2", "dp=1"]'
        self.space.must(*command, "--set", f"mesh.axes={tensor}")
        limit = json.loads(self.space.must("meshwork", "explain", "m.mwplan", "--json").stdout)["memory_per_rank_bytes"]["peak"]
        done = self.space.refuse(shell.SPEC, [f"mesh.axes = {tensor}: "], *command, "--set", f"expect.memory_per_rank={limit} B")
        override = done.stderr.split("--set '")[1].split("'")[0]
        self.assertEqual(override, f"mesh.axes={tensor}")
        self.space.must(*command, "--set", f"expect.memory_per_rank={limit} B", "--set", override)
        self.space.refuse(shell.SPEC, [f"mesh.axes = {tensor}: ", f"mesh.axes = {stages}: "], *command, "--set",
                          f"expect.memory_per_rank={limit - 1} B")

    def test_advice_is_of_what_would_be_chosen_with_it(self):
        """Policies of layers are chosen anew, so what is promised is what the change compiles to."""
        command = ["meshwork", "compile", "examples/llama-tiny.json", "--spec", "examples/dp2.toml", "--set",
                   "recompute.policy=auto", "--set", "batch.sequence=256", "-o", "m.mwplan"]
        self.space.must(*command, "--set", "recompute.policy=full")
        full = json.loads(self.space.must("meshwork", "explain", "m.mwplan", "--json").stdout)
        limit = full["memory_per_rank_bytes"]["peak"] - 1000
        command += ["--set", f"expect.memory_per_rank={limit} B"]
        done = self.space.refuse(shell.SPEC, ["is the cheapest"], *command)
        override = done.stderr.split("--set '")[1].split("'")[0]
        promised = re.search(r"= (\d+) bytes, fits, about ([\d.]+ \w+) a step", done.stderr)
        compiled = self.space.must(*command, "--set", override)
        told = json.loads(self.space.must("meshwork", "explain", "m.mwplan", "--json").stdout)
        self.assertEqual(int(promised[1]), told["memory_per_rank_bytes"]["peak"])
        self.assertIn(f": {promised[2]} a step, ", compiled.stderr.splitlines()[-1])
        self.assertIn("meshwork: recompute: ", compiled.stderr)
        self.assertNotIn("recompute: full in 2 layers\n", compiled.stderr)  # it keeps more than the least
        self.space.refuse(shell.SPEC, ["all of these: ", "none fits alone"], "meshwork", "compile",
                          MODEL, "--spec", "examples/dp2.toml", "--set",
                          "expect.memory_per_rank=2 MB", "-o", "n.mwplan")
        self.space.refuse(shell.SPEC, ["none fits; use more ranks"], "meshwork", "compile", MODEL, "--spec",
                          "examples/dp2.toml", "--set", "expect.memory_per_rank=100 kB", "-o",
                          "n.mwplan")

    def follow(self, spec, command):
        """Each line of the advice against the estimate of the spec with that change; how many there are."""
        done = self.space.refuse(shell.SPEC, ["changes of the spec"], *command, "--spec", spec, "-o", "a.mwplan")
        lines = re.findall(r"^  ([\w.]+) = (.*?): (?:.* = )?(\d+) bytes(?:, fits)?, about ([\d.]+ \w+) a step", done.stderr, re.M)
        for key, value, peak, seconds in lines:
            changed = (*command, "--spec", spec, "--set", f"{key}={value}", "--estimate")
            told = json.loads(self.space.must(*changed, "--json").stdout)
            self.assertEqual(int(peak), told["memory_per_rank_bytes"]["peak"], key)
            self.assertIn(f": {seconds} a step, ", self.space.must(*changed).stdout, key)
        return len(lines)

    def test_advice_opens_what_was_chosen(self):
        """Ways of ZeRO that were chosen for too little memory are chosen anew with each change, and so are microbatches."""
        def sets(*keys):
            return ("meshwork", "compile", "examples/llama-tiny.json", *(part for key in keys for part in ("--set", key)))
        zero = ('mesh.axes=["dp=2", "fsdp=2"]', "batch.global=16", "batch.micro=4", "zero.stage=3", 'zero.axes=["dp", "fsdp"]',
                "zero.reduce=auto", "zero.gathered=auto", "recompute.policy=none")
        micro = ("batch.micro=auto", "batch.global=16", "batch.sequence=16", "recompute.policy=full")
        for keys, change in ((zero, ("recompute.policy=full",)), (micro, ("zero.stage=1", "batch.micro=4"))):
            told = json.loads(self.space.must(*sets(*keys, "expect.memory_per_rank=1 GiB", *change), "--spec", "examples/dp2.toml",
                                              "--estimate", "--json").stdout)
            limit = told["memory_per_rank_bytes"]["peak"] + 100
            with self.subTest(change=change):
                self.assertGreater(self.follow("examples/dp2.toml", sets(*keys, f"expect.memory_per_rank={limit} B")), 0)

    def test_advice_keeps_the_limit_of_the_host_too(self):
        """States that do not fit the host's memory either are no advice."""
        command = ["meshwork", "compile", MODEL, "--spec", "examples/dp2.toml", "--set", "target.device=cuda", "--set", "target.arch=sm_90a",
                   "--set", "zero.stage=3", "--set", "recompute.policy=offload", "--set", "batch.micro=1"]
        told = json.loads(self.space.must(*command, "--set", "offload.optimizer=true", "--estimate", "--json").stdout)
        limits = ("--set", f"expect.memory_per_rank={told['memory_per_rank_bytes']['peak']} B", "--set", "offload.host_memory_per_rank=")
        host = told["host_memory_per_rank"]["bytes"]
        self.assertGreater(host, 0)
        self.space.refuse(shell.SPEC, ["--set 'offload.optimizer=true' is the cheapest"], *command, *limits[:-1], f"{limits[-1]}{host} B",
                          "-o", "h.mwplan")
        done = self.space.refuse(shell.SPEC, ["offload.optimizer = true: "], *command, *limits[:-1], f"{limits[-1]}{host - 1} B",
                                 "-o", "h.mwplan")
        self.assertNotIn("'offload.optimizer=true' is", done.stderr)


if __name__ == "__main__":
    unittest.main()
