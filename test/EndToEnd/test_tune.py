"""`meshwork tune`: what it finds is what a loop over `compile --estimate` finds."""
import itertools
import json
import re
import unittest

import shell

MODEL = "examples/llama-tiny.json"
LAYERS = "examples/llama-30m.json"  # ten of them: bodies have fewer
ASKED_LAYERS = ("--fixed", "recompute.policy=selective", "--fixed", "batch.micro=1")
ASKED = ("--global", "8", "--sequence", "64")


class Tune(unittest.TestCase):
    cost_s = 80

    def setUp(self):
        self.space = shell.Shell()
        self.addCleanup(self.space.close)

    def tune(self, *options, ranks=4, model=MODEL, machine="h100x8", asked=ASKED):
        return self.space.run("meshwork", "tune", model, "--ranks", ranks, "--machine", machine, *asked, *options)

    def found(self, *options, **more):
        done = self.tune("--json", *options, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["found"][0]

    def estimate(self, spec, model=MODEL):
        done = self.space.run("meshwork", "compile", model, "--spec", spec, "--estimate", "--json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def exhaustive(self, meshes):
        """Milliseconds of each spec that compiles, by a loop that knows nothing of the search."""
        steps = {}
        for axes, stage, micro in itertools.product(meshes, (0, 1, 2), (1, 2, 4, 8)):
            self.space.write("s.toml", f"[mesh]\naxes = {json.dumps(axes)}\n[batch]\nglobal = 8\nmicro = {micro}\n"
                             f"sequence = 64\n[zero]\nstage = {stage}\n[shard]\nresidual_sequence = []\n[recompute]\n"
                             'policy = "selective"\n[target]\ndevice = "cuda"\nmachine = "h100x8"\n')
            if told := self.estimate("s.toml"):
                steps[(tuple(axes), stage, micro)] = told["estimate"]["step_ms"]
        return steps

    def test_it_finds_what_a_loop_finds(self):
        meshes = (["dp=4"], ["dp=2", "tp=2"], ["tp=4"])
        steps = self.exhaustive(meshes)
        found = self.found("--axis", "pp=1", "--axis", "cp=1", "--fixed", "recompute.policy=selective", "--fixed",
                           "shard.residual_sequence=[]", "--fixed", "zero.reduce=microbatch")
        # Below stage 2 zero.reduce has no meaning, and specs do without.
        self.assertGreater(len(steps), 10)
        self.assertEqual(found["best"][0]["step_ms"], min(steps.values()))
        found = self.found("--axis", "pp=1", "--axis", "cp=1", "--fixed", "recompute.policy=selective", "--fixed",
                           "shard.residual_sequence=[]", "--fixed", "zero.reduce=microbatch", "--fixed", "zero.stage=2")
        self.assertEqual(found["best"][0]["step_ms"], min(ms for (_, stage, _), ms in steps.items() if stage == 2))

    def test_what_is_fixed_holds_where_it_has_a_meaning(self):
        """Other specs do without, as lib/Spec wants it. A key that has a meaning in none is told."""
        options = ("--fixed", "pipeline.schedule=zb-h1", "--fixed", "context.method=ring", "--fixed", "zero.gathered=keep",
                   "--fixed", "zero.reduce=step", "--axis", "tp=1", *ASKED_LAYERS, "--within", "100000%")
        done = self.tune("--json", *options)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = [row["settings"] for row in json.loads(done.stdout)["found"][0]["best"]]
        for key, value, axis in (("pipeline.schedule", "zb-h1", "pp="), ("context.method", "ring", "cp="),
                                 ("zero.gathered", "keep", ""), ("zero.reduce", "step", "")):
            self.assertEqual({row.get(key) for row in rows}, {None, value}, key)
            having = [row for row in rows if axis and axis in "".join(row["mesh.axes"])]
            self.assertTrue(all(key in row for row in having), key)
        for ranks, fixed, why in ((2, "experts.exchange=gathered", "no axis splits experts"),
                                  (1, "context.method=ring", "no axis splits the sequence"),
                                  (1, "pipeline.schedule=zb-h1", "without a pipeline")):
            done = self.tune("--fixed", fixed, *ASKED_LAYERS, ranks=ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, f"warning: {ranks} ranks?: --fixed changes nothing: {fixed.split('=')[0]}: .*{why}")
        done = self.tune("--fixed", "pipeline.virtual_stages=2", "--axis", "pp=2", "--fixed", "pipeline.schedule=1f1b", *ASKED_LAYERS)
        self.assertEqual(done.returncode, shell.SPEC, done.stdout)
        self.assertIn("found 2 virtual stages a rank, expected 1", done.stderr)

    def test_no_plan_is_below_its_bound(self):
        """Bounds count what moves: tensor parallel ranks and copies of weights are among these, and a pipeline."""
        compiled = [0, 0]
        for axes in (("pp=2", "cp=1", "tp=1"), ("pp=1", "cp=2", "tp=1"), ("pp=1", "cp=1", "tp=2")):
            options = [word for axis in axes for word in ("--axis", axis)]
            if "cp=2" in axes:
                options += ["--fixed", "context.layout=zigzag"]
            found = self.found(*options, *ASKED_LAYERS, "--within", "100000%", model=LAYERS, ranks=8)
            self.assertGreater(len(found["best"]), 10)
            for row in found["best"]:
                self.assertLessEqual(row["bound_ms"], row["step_ms"], row["name"])
                self.assertLessEqual(row["bound_bytes"], row["memory_per_rank_bytes"], row["name"])
            fast = self.found(*options, *ASKED_LAYERS, model=LAYERS, ranks=8)
            self.assertEqual(fast["best"][0]["step_ms"], found["best"][0]["step_ms"])
            compiled = [sum(pair) for pair in zip(compiled, (fast["compiled"], found["compiled"]))]
        self.assertLess(*compiled, "the bounds leave nothing out")

    def test_layers_of_two_kinds(self):
        """Windows in every other layer: what three shallow models tell of twelve layers is no more than specs take."""
        config = {**json.loads((shell.ROOT / "examples/qwen2-tiny.json").read_text()), "num_hidden_layers": 12,
                  "use_sliding_window": True, "sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"] * 6}
        self.space.write("two.json", json.dumps(config))
        options = ("--axis", "cp=1", "--axis", "tp=1", *ASKED_LAYERS)
        found = self.found(*options, "--within", "100000%", model="two.json")
        self.assertEqual({row["name"].split(" ")[0] for row in found["best"]}, {"dp=4,", "pp=2", "pp=4,"})
        for row in found["best"]:
            self.assertLessEqual(row["bound_ms"], row["step_ms"], row["name"])
            self.assertLessEqual(row["bound_bytes"], row["memory_per_rank_bytes"], row["name"])
        best = [row for row in found["best"] if row["name"].startswith("dp=4, ZeRO-1")]
        self.assertGreater(best[0]["bound_ms"], 0.9 * best[0]["step_ms"], "the shallow models tell too little")
        self.assertEqual(self.found(*options, model="two.json")["best"][0]["step_ms"], found["best"][0]["step_ms"])

    def test_balanced_stages_that_do_not_fit(self):
        """One byte less than balanced stages need: the compiler searches for other layers, and what tune tells is what it finds.
        Where balanced stages fit they are the plan."""
        for schedule in ("1f1b", "zb-h1"):
            options = ("--axis", "pp=2", *ASKED_LAYERS, "--fixed", f"pipeline.schedule={schedule}", "--fixed", "offload.optimizer=false",
                       "-o", "best.toml")
            limit, told = 80 * 10**9, []
            for _ in range(2):
                found = self.found(*options, "--fixed", f"expect.memory_per_rank={limit} B", model=LAYERS, ranks=2)
                self.assertEqual(found["choices"], 1)
                best, plan = found["best"][0], self.estimate("best.toml", model=LAYERS)
                self.assertEqual(best["step_ms"], plan["estimate"]["step_ms"])
                self.assertEqual(best["memory_per_rank_bytes"], plan["memory_per_rank_bytes"]["peak"])
                told.append(best)
                limit = best["memory_per_rank_bytes"] - 1
            self.assertLess(told[1]["memory_per_rank_bytes"], told[0]["memory_per_rank_bytes"])
            self.assertLessEqual(told[1]["bound_ms"], told[1]["step_ms"])

    def test_the_spec_keeps_the_promise(self):
        done = self.tune("--axis", "dp=4", "--fixed", "zero.stage=1", "-o", "best.toml")
        self.assertEqual(done.returncode, 0, done.stderr)
        best = self.found("--axis", "dp=4", "--fixed", "zero.stage=1")["best"][0]
        told = self.estimate("best.toml")
        self.assertEqual(told["estimate"]["step_ms"], best["step_ms"])
        self.assertEqual(told["memory_per_rank_bytes"]["peak"], best["memory_per_rank_bytes"])
        self.assertIn("stage = 1", self.space.read("best.toml"))
        self.assertIn("Not tried:", done.stdout)

    def test_what_is_usual_is_told_also_where_it_does_not_fit(self):
        done = self.tune("--axis", "dp=4", "--fixed", "zero.stage=0", "--fixed", "expect.memory_per_rank=1 MiB",
                         "-o", "best.toml")
        self.assertEqual(done.returncode, shell.SPEC, done.stdout)
        self.assertRegex(done.stdout, r"plain data parallelism .* does not fit: .* too much")
        self.assertRegex(done.stderr, r"no spec fits the 1.00 MiB of expect.memory_per_rank; nearest comes dp=4, .* too much")
        self.assertFalse((self.space.path / "best.toml").exists())

    def test_what_comes_nearest_is_told_also_where_nothing_usual_is_left(self):
        """All are too large by their bound, and none of them is usual: the one with the least bound is compiled."""
        done = self.tune("--axis", "dp=2", "--axis", "pp=1", "--axis", "tp=1", "--fixed", "expect.memory_per_rank=10 kB",
                         "--fixed", "recompute.policy=none", "--fixed", "context.method=ring")
        self.assertEqual(done.returncode, shell.SPEC, done.stdout)
        self.assertIn(" 1 compiled", done.stdout)
        self.assertRegex(done.stderr, "nearest comes dp=2 cp=2, .* too much")

    def test_odd_numbers(self):
        """One rank; seven, which divide neither the batch nor heads, but share sequences; more stages than layers."""
        self.assertEqual(self.found("--fixed", "recompute.policy=none", ranks=1)["best"][0]["name"].split(",")[0], "one rank")
        few = self.found("--fixed", "recompute.policy=none", "--fixed", "batch.micro=8", "--fixed", "zero.stage=0", ranks=7)
        self.assertEqual(few["best"][0]["name"].split(",")[0], "cp=7")
        done = self.tune("--axis", "pp=8", "--fixed", "recompute.policy=none", "--fixed", "batch.micro=1", ranks=8)
        self.assertEqual(done.returncode, shell.SPEC, done.stdout)
        self.assertRegex(done.stderr, "no spec is legal; most are refused for this: .* 8 stages")

    def test_what_refuses_a_mesh_refuses_it_once(self):
        """Eight ranks do not share four experts, whatever else they do: few bodies tell it of all specs."""
        done = self.tune("--axis", "ep=8", "--json", model="examples/mixtral-tiny.json", ranks=16)
        self.assertEqual(done.returncode, shell.SPEC, done.stdout)
        self.assertRegex(done.stderr, "no spec is legal; most are refused for this: shard.experts: .* 'ep' of size 8")
        found = json.loads(done.stdout)["found"][0]
        self.assertGreater(found["choices"], 200)
        self.assertLessEqual(found["bodies"], 6)
        self.assertEqual(sum(found["refused"].values()) + found["too_large"], found["choices"])

    def test_heads_refuse_a_mesh_once(self):
        """Four heads are not shared by eight ranks of tp."""
        done = self.tune("--axis", "tp=8", "--json", ranks=16)
        self.assertEqual(done.returncode, shell.SPEC, done.stdout)
        self.assertRegex(done.stderr, "no spec is legal; most are refused for this: shard.heads: .* 'tp' of size 8")
        found = json.loads(done.stdout)["found"][0]
        self.assertGreater(found["choices"], 200)
        self.assertLessEqual(found["bodies"], 6)

    def test_a_cache_knows_what_it_depends_on(self):
        """The second search compiles nothing; another machine knows none of it; a damaged line is made again. All
        specs are compiled, or what is left out would go by which result comes first."""
        options = ("--axis", "dp=4", "--fixed", "recompute.policy=none", "--within", "100000%", "--cache", "known")
        first, second = self.found(*options), self.found(*options)
        self.assertEqual(first["cached"], 0)
        self.assertEqual(second["cached"], second["compiled"] + second["bodies"] + second["sketches"])
        self.assertEqual({**second, "cached": 0}, first)
        lines = self.space.read("known").splitlines()
        self.space.write("damaged", "\n".join([*lines[:-1], lines[-1].replace("0", "1")]))
        damaged = self.found(*options[:-1], "damaged")
        self.assertEqual({**damaged, "cached": second["cached"]}, second)
        self.assertEqual(damaged["cached"], second["cached"] - 1)
        slow = {"machine": self.slow_machine()}
        third, fourth = self.found(*options, **slow), self.found(*options[:-2], **slow)
        self.assertEqual(third, fourth, "a result of the other machine was taken")

    def fast_host(self):
        """A file with h100x8's figures, but eight times its bandwidth to the host's memory."""
        text = (shell.ROOT / "examples/machines/h100x8.toml").read_text()
        self.space.write("fast.toml", re.sub(r"\nhost = \S+", "\nhost = 440e9", text, count=1))
        return self.space.path / "fast.toml"

    def on_the_host(self, machine, micro, policy, states):
        """Milliseconds and bytes of a step of two ranks."""
        sets = ('mesh.axes=["dp=2"]', "zero.stage=1", "batch.global=4", f"batch.micro={micro}", "batch.sequence=2048",
                f'recompute.policy="{policy}"', f"offload.optimizer={states}", 'target.device="cuda"', f'target.machine="{machine}"')
        self.space.write("empty.toml", "")
        done = self.space.run("meshwork", "compile", LAYERS, "--spec", "empty.toml", "--estimate", "--json",
                              *(word for one in sets for word in ("--set", one)))
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        return told["estimate"]["step_ms"], told["memory_per_rank_bytes"]["peak"]

    def test_what_lies_on_the_host_where_memory_is_short(self):
        """With less memory first what layers keep goes to the host, then states, too; a loop finds the same. With
        enough of it nothing does: no such spec is faster than the same one on the device."""
        machine = self.fast_host()
        specs = {(micro, policy, states): self.on_the_host(machine, micro, policy, states) for micro, policy, states
                 in itertools.product((1, 2), ("none", "selective", "offload", "full"), ("false", "true"))}
        for micro, policy, states in specs:
            without = specs[micro, "selective" if policy == "offload" else policy, "false"]
            self.assertGreaterEqual(specs[micro, policy, states][0], without[0])
        places = []
        for limit in (700e6, 1e9, 80e9):
            found = self.with_memory(machine, limit, "always")
            self.assertEqual(found["choices"], len(specs))
            self.assertEqual(found["best"][0]["step_ms"], min(ms for ms, peak in specs.values() if peak <= limit))
            for row in found["best"]:
                self.assertLessEqual(row["bound_ms"], row["step_ms"], row["name"])
                self.assertLessEqual(row["bound_bytes"], row["memory_per_rank_bytes"], row["name"])
            best = found["best"][0]["settings"]
            places.append((best["recompute.policy"], best.get("offload.optimizer", False)))
            self.assertEqual(found["best"][0]["host_memory_per_rank_bytes"] > 0, limit < 80e9)
        self.assertEqual(places, [("offload", True), ("offload", False), ("none", False)])
        self.assertFalse([row["name"] for row in found["best"] if row["host_memory_per_rank_bytes"] > 0])
        self.check_offload_by_default(machine, specs)

    def with_memory(self, machine, limit, offload):
        done = self.space.run("meshwork", "tune", LAYERS, "--ranks", 2, "--machine", machine, "--global", 4, "--sequence", 2048,
                              "--axis", "dp=2", "--fixed", "zero.stage=1", "--json", "--within", "100000%", "--offload", offload,
                              "--fixed", f"expect.memory_per_rank={limit:.0f} B")
        if offload == "never" and done.returncode == shell.SPEC:
            return None
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["found"][0]

    def check_offload_by_default(self, machine, specs):
        """The host's memory is part of the space only where nothing fits without it."""
        here = {key: cost for key, cost in specs.items() if key[1] != "offload" and key[2] == "false"}
        least = min(peak for _, peak in here.values())
        self.assertIsNone(self.with_memory(machine, least - 1, "never"))
        found = self.with_memory(machine, least - 1, "auto")
        self.assertEqual(found["best"][0]["step_ms"], min(ms for ms, peak in specs.values() if peak <= least - 1))
        found = self.with_memory(machine, least, "auto")
        self.assertEqual(found["best"][0]["step_ms"], min(ms for ms, peak in here.values() if peak <= least))
        self.assertEqual(found["choices"], len(here))

    def test_several_numbers_of_ranks(self):
        """A table of scaling, against the first number that has a spec; a number that has none says why, and one that
        is repeated counts once."""
        options = ("--axis", "pp=1", "--axis", "cp=1", "--axis", "tp=1", *ASKED_LAYERS, "--fixed", "expect.memory_per_rank=250 MB")
        done = self.tune(*options, "-o", "best.toml", model=LAYERS, ranks="1,4,3,8,4")
        self.assertEqual(done.returncode, shell.SPEC, done.stdout)
        self.assertRegex(done.stderr, "error: 1 rank: no spec fits the 238 MiB .*\n.*error: 3 ranks: no spec is legal; .* multiple of 3")
        rows = [line.split() for line in done.stdout[done.stdout.index("The best of each number of ranks"):].splitlines()[2:]]
        self.assertEqual([row[0] for row in rows], ["1", "4", "3", "8"])
        self.assertEqual(rows[0][1:6], ["-"] * 5)
        found = json.loads(self.tune(*options, "--json", model=LAYERS, ranks="1,4,3,8").stdout)["found"]
        self.assertEqual([one["ranks"] for one in found], [1, 4, 3, 8])
        four, eight = (found[i]["best"][0] for i in (1, 3))
        for best, ranks in ((four, 4), (eight, 8)):
            self.assertAlmostEqual(best["tokens_per_second"], 8 * 64 / best["step_ms"] * 1e3, delta=1)
            self.assertIn(f'{best["tokens_per_second"] / ranks / 1e3:.3g} k', " ".join(rows[1 if ranks == 4 else 3]))
        self.assertIn("100.0 %", " ".join(rows[1]))
        self.assertIn(f'{50 * eight["tokens_per_second"] / four["tokens_per_second"]:.1f} %', " ".join(rows[3]))
        self.assertEqual(sorted(path.name for path in self.space.path.glob("best*")), ["best-4.toml", "best-8.toml"])
        for ranks in ("0", "4,0", "1048577", "4,x"):
            done = self.tune(*options, ranks=ranks)
            self.assertEqual(done.returncode, shell.USAGE, done.stdout)
            self.assertIn("expected a whole number from 1 to 1048576", done.stderr)

    def test_bounds_know_what_is_fixed(self):
        """Over slow links gradients in 4 bits and weights in 8 take a fraction of the time: no spec is below its bound."""
        machine = self.slow_machine(ranks_per_node=2)
        options = ("--axis", "dp=4", *ASKED_LAYERS, "--within", "100000%")
        steps = []
        for fixed in ((), ("zero.gradients=int4", "zero.weights=int8", "precision.gradients=bf16")):
            found = self.found(*options, *(word for one in fixed for word in ("--fixed", one)), model=LAYERS, machine=machine)
            self.assertGreater(len(found["best"]), 4)
            for row in found["best"]:
                self.assertLessEqual(row["bound_ms"], row["step_ms"], row["name"])
                self.assertLessEqual(row["bound_bytes"], row["memory_per_rank_bytes"], row["name"])
            steps.append({row["name"]: row["step_ms"] for row in found["best"]})
        for name in (name for name in steps[1] if "ZeRO-3" in name):
            self.assertLess(steps[1][name], 0.6 * steps[0][name], name)

    def test_gradients_that_cross_in_each_microbatch(self):
        """They cross as they were computed, in bf16, though they are added up in f32: no pipeline is below its bound."""
        sizes = {"hidden_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 2816, "vocab_size": 256}
        self.space.write("wide.json", json.dumps({**json.loads((shell.ROOT / LAYERS).read_text()), **sizes}))
        options = ("--axis", "pp=2", "--axis", "dp=4", "--fixed", "zero.stage=2", "--fixed", "zero.reduce=microbatch", *ASKED_LAYERS,
                   "--within", "100000%")
        found = self.found(*options, model="wide.json", machine=self.slow_machine(ranks_per_node=2), ranks=8)
        self.assertEqual(len(found["best"]), 7)
        for row in found["best"]:
            self.assertLessEqual(row["bound_ms"], row["step_ms"], row["name"])
        self.assertGreater(max(row["bound_ms"] / row["step_ms"] for row in found["best"]), 0.9)

    def test_stages_tell_of_other_schedules(self):
        """Weights that are gathered for each microbatch: one sketch says what a stage takes whatever the schedule. No bound is
        above its step, and those of short stages, which hide little, are close to it."""
        sizes = {"hidden_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 2816, "vocab_size": 256,
                 "num_hidden_layers": 16}
        self.space.write("deep.json", json.dumps({**json.loads((shell.ROOT / LAYERS).read_text()), **sizes}))
        axes = ("--axis", "pp=2", "--axis", "dp=4")
        options = (*axes, "--fixed", "zero.stage=3", "--fixed", "zero.gathered=keep", "--fixed", "zero.reduce=microbatch", *ASKED_LAYERS)
        asked = {"model": "deep.json", "machine": self.slow_machine(ranks_per_node=2), "ranks": 8}
        found = self.found(*options, "--within", "100000%", **asked)
        ratios = {row["name"].split(", ")[2]: row["bound_ms"] / row["step_ms"] for row in found["best"]}
        self.assertEqual((len(ratios), found["cached"]), (8, 0))
        self.assertLessEqual(max(ratios.values()), 1)
        self.assertGreater(min(ratios["interleaved-1f1b x4"], ratios["interleaved-1f1b x8"]), 0.85, ratios)
        self.assertEqual(self.found(*options, **asked)["best"][0]["step_ms"], found["best"][0]["step_ms"])
        found = self.found(*axes, "--fixed", "zero.stage=1", *ASKED_LAYERS, "--within", "100000%", **asked)
        ratios = {row["name"].split(", ")[2]: row["bound_ms"] / row["step_ms"] for row in found["best"]}
        self.assertLessEqual(max(ratios.values()), 1, ratios)
        self.assertGreater(min(ratios["zb-h1"], ratios["zb-v"]), 0.9, "where the backward pass is split")

    def test_what_nothing_hides(self):
        """Nothing is left to hide the last sum of a step, and of a tiny model over many ranks that is most of it. With ZeRO each
        rank sums all of what the ranks do not divide."""
        found = self.found("--axis", "dp=1024", "--fixed", "batch.micro=1", "--fixed", "recompute.policy=none", "--within", "100000%",
                           ranks=1024, asked=("--global", "1024", "--sequence", "128"))
        ratios = {row["settings"].get("zero.stage", "0"): row["bound_ms"] / row["step_ms"] for row in found["best"]}
        self.assertEqual(len(ratios), 4)
        self.assertLessEqual(max(ratios.values()), 1, ratios)
        self.assertGreater(min(list(ratios.values())[:2]), 0.9, ratios)

    def test_a_bound_that_failed_makes_others_doubted(self):
        """Gradients of small layers do not fill what travels together, so a sketch tells too much of many. What is within 4 %
        is found all the same, though its bound is above that."""
        sizes = {"hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 1024,
                 "vocab_size": 32000, "num_hidden_layers": 12, "max_position_embeddings": 2048, "tie_word_embeddings": True}
        self.space.write("small.json", json.dumps({**json.loads((shell.ROOT / LAYERS).read_text()), **sizes}))
        fixed = {"recompute.policy": "full", "overlap.matmul": "never", "zero.stage": 3, "zero.gathered": "keep", "zero.reduce": "step",
                 "batch.micro": 2, "shard.residual_sequence": "[]"}
        options = [word for axis in ("dp=2", "cp=2", "tp=2") for word in ("--axis", axis)]
        options += [word for key, value in fixed.items() for word in ("--fixed", f"{key}={value}")]
        asked = {"model": "small.json", "machine": self.slow_machine(ranks_per_node=4, inside=20), "ranks": 8,
                 "asked": ("--global", "8", "--sequence", "2048")}
        every = self.found(*options, "--within", "100000%", **asked)["best"]
        limit = 1.04 * every[0]["step_ms"]
        near = [row for row in every if row["step_ms"] <= limit]
        self.assertGreater(max(row["bound_ms"] for row in near), limit, "no bound here is too high")
        found = self.found(*options, "--within", "4%", **asked)
        rings = [row for row in near if row["settings"].get("context.method") == "ring"]
        self.assertEqual(rings[0]["step_ms"], rings[1]["step_ms"])
        self.assertEqual([row["settings"]["context.layout"] for row in rings], ["zigzag", "block"], "as choices are listed")
        self.assertEqual([row["name"] for row in found["best"] if row["step_ms"] <= limit], [row["name"] for row in near])
        self.assertLess(found["compiled"], len(every))

    def test_copies_of_what_zero_splits(self):
        """Over slow links ZeRO-3 within each node of two, with copies over nodes, beats ZeRO-3 over all ranks."""
        options = ("--axis", "pp=1", "--axis", "cp=1", "--axis", "tp=1", "--fixed", "zero.stage=3", *ASKED_LAYERS)
        asked = {"model": LAYERS, "machine": self.slow_machine(ranks_per_node=2), "ranks": 8}
        found = self.found(*options, "--within", "100000%", **asked)
        axes = [" ".join(row["settings"]["mesh.axes"]) for row in found["best"]]
        self.assertEqual(set(axes), {"dp=8", "dp=4 fsdp=2", "dp=2 fsdp=4"})
        self.assertEqual(axes[0], "dp=4 fsdp=2")
        self.assertLess(2 * found["best"][0]["step_ms"], min(row["step_ms"] for row, one in zip(found["best"], axes) if one == "dp=8"))
        for row in found["best"]:
            self.assertLessEqual(row["bound_ms"], row["step_ms"], row["name"])
            self.assertLessEqual(row["bound_bytes"], row["memory_per_rank_bytes"], row["name"])
        fast = self.found(*options, "-o", "best.toml", **asked)
        self.assertEqual(fast["best"][0]["step_ms"], found["best"][0]["step_ms"])
        self.assertEqual(self.estimate("best.toml", LAYERS)["estimate"]["step_ms"], found["best"][0]["step_ms"])
        for axis, mesh in (("fsdp=4", "dp=2 fsdp=4"), ("fsdp=8", "fsdp=8"), ("fsdp=1", "dp=8"), ("dp=4", "dp=4 fsdp=2")):
            found = self.found(*options, "--axis", axis, **asked)
            self.assertEqual({" ".join(row["settings"]["mesh.axes"]) for row in found["best"]}, {mesh}, axis)
        done = self.tune("--axis", "fsdp=16", "--axis", "tp=1", *ASKED_LAYERS, ranks=16)
        self.assertEqual(done.returncode, shell.SPEC, done.stdout)
        self.assertRegex(done.stderr, "batch.global: found 8, .*16 data-parallel ranks")

    def slow_machine(self, ranks_per_node=8, inside=1):
        """A file with h100x8's figures, but a fiftieth of its bandwidth between nodes. Within one it has a part of its bandwidth,
        and half as many times its latency."""
        text = (shell.ROOT / "examples/machines/h100x8.toml").read_text()
        slow = self.slower(text, "link.between_nodes", "bandwidth", 1 / 50)
        if inside > 1:
            slow = self.slower(slow, "link.within_node", "bandwidth", 1 / inside)
            slow = self.slower(slow, "link.within_node", "latency", inside / 2)
        slow, changed = re.subn(r"\nranks_per_node = 8", f"\nranks_per_node = {ranks_per_node}", slow)
        self.assertEqual(changed, 1)
        self.space.write("slow.toml", slow)
        return self.space.path / "slow.toml"

    def slower(self, text, section, key, factor):
        head, found, tail = text.partition(f"[{section}]")
        self.assertTrue(found)
        return head + found + re.sub(rf"\n{key} = (\S+)", lambda value: f"\n{key} = {float(value[1]) * factor}", tail, count=1)

    def test_what_is_no_cache_stays_as_it_is(self):
        self.space.write("notes", "mine\n")
        done = self.tune("--axis", "dp=4", "--cache", "notes")
        self.assertEqual(done.returncode, shell.DATA, done.stderr)
        self.assertIn("tune did not write it", done.stderr)
        self.assertEqual(self.space.read("notes"), "mine\n")

    def test_the_best_run_here(self):
        """Two ranks that are threads; those that are GPUs are not here."""
        options = ("--axis", "pp=1", "--fixed", "recompute.policy=none", "--measure", "2")
        found = self.found(*options, "-o", "best.toml", ranks=2, machine="cpu")
        measured = [row.get("measured_ms") for row in found["best"]]
        self.assertTrue(0 < measured[0] <= measured[1], measured)
        self.assertFalse(any(measured[2:]))
        done = self.tune(*options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "Not measured: meshwork-run failed: .*")

    def test_mistakes(self):
        for options, needle in ((("--axis", "xp=2"), "expected pp, dp, fsdp, ep, cp or tp"),
                                (("--fixed", "mesh.axes=[]"), "--ranks and --axis"),
                                (("--fixed", "zero.stag=1"), "zero.stage"),
                                (("--cache", "-"), "which the next search reads"),
                                (("--fixed", "zero"), "expected section.key=value")):
            done = self.tune(*options)
            self.assertNotEqual(done.returncode, 0, options)
            self.assertIn(needle, done.stderr)


if __name__ == "__main__":
    unittest.main()
