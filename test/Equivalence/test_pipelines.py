"""Stages of a pipeline equal one stage.

What a microbatch computes does not depend on where it is computed, so in f32 losses and gradients
have the bits of the same layout without a pipeline. Two sums differ in order: the gradient norm
(a sum over the parameters of each stage, then over stages) and the gradient of an embedding that
is tied to the head. Weights are compared without clipping, which is all that the norm is for.
"""
import csv
import itertools
import json
import os
import pathlib
import re
import sys
import unittest

import numpy as np

import configs
import pairs
import safetensors
import same_bits
import tools

RATE, STEPS, SEQUENCE = 1e-2, 2, 23
UNIT = 2.0 ** -24
LAYERS = {"gpt2": {"n_layer": 4, "n_head": 4}, "llama": {"num_hidden_layers": 4}}
DROPPING = {"embd_pdrop": 0.1, "attn_pdrop": 0.2, "resid_pdrop": 0.1}
MODELS = {"llama": {**configs.ALL["llama"], **LAYERS["llama"]},
          "gpt2": {**configs.GPT2, **LAYERS["gpt2"]},
          "gpt2-dropout": {**configs.GPT2, **LAYERS["gpt2"], **DROPPING}}
# For four ranks with two stages each.
MODELS |= {"llama-deep": {**MODELS["llama"], "num_hidden_layers": 8},
           "gpt2-40": {**MODELS["gpt2"], "n_embd": 40},  # three ranks have unequal parts
           "gpt2-dropout-deep": {**MODELS["gpt2-dropout"], "n_layer": 8}}

LAYOUTS = {**same_bits.LAYOUTS, "cp2": (["cp=2"], {"sequence": ["cp"]}, 0),
           "tp2-sp": (["tp=2"], same_bits.SPLIT, 0), "dp3-zero1": (["dp=3"], {}, 1),
           "dp2-cp2": (["dp=2", "cp=2"], {"sequence": ["cp"]}, 0)}

# A case a line, which the reference interpreter reads too (test/Interpreter/PipelinesTest.cpp).
LIST = pathlib.Path(__file__).with_name("pipelines.csv")


def listed_cases():
    """(model, layout beside the pipeline, stages, schedule, virtual stages or None, microbatches, recompute,
    documents, target) of each."""
    with open(LIST) as file:
        return [(row["model"], row["layout"], int(row["stages"]), row["schedule"],
                 int(row["virtual_stages"]) if row["virtual_stages"] else None, int(row["microbatches"]),
                 row["recompute"], row["documents"], row["target"]) for row in csv.DictReader(file)]


# Stages on each rank where the schedule needs them.
SCHEDULES = {"gpipe": None, "1f1b": None, "interleaved-1f1b": 2, "zb-h1": None, "zb-v": None, "dualpipe-v": None,
             "auto": None}
WITH_TWO_STAGES = ("interleaved-1f1b", "zb-v", "dualpipe-v")


def chosen_cases():
    """Each pair of values that may meet; the list has them."""
    every = itertools.product(("llama", "gpt2-dropout"), ("dp2", "tp2-sp", "zero1", "zero3", "cp2"), (2, 4), SCHEDULES,
                              (1, 2, 4, 7, 9), same_bits.RECOMPUTE, same_bits.DOCUMENTS)
    def deep(stages, schedule):
        return "-deep" if stages == 4 and schedule in WITH_TWO_STAGES else ""
    return [(model + deep(stages, schedule), layout, stages, schedule, SCHEDULES[schedule], *rest, "cpu")
            for model, layout, stages, schedule, *rest in pairs.choose(every)]


# Stages on nodes of their own, whose links are slow beside those within.
TWO_NODES = """name = "two-nodes"
device = "cpu"
ranks_per_node = 2
flops.f32 = 1e11
memory.bandwidth = 1e10
[link]
within_node = { latency = 1e-9, bandwidth = 1e12 }
between_nodes = { latency = 1e-6, bandwidth = 1e6 }
"""
TIED = "wte.weight"
# Runs a rank and writes what its process took at most, in KiB, to the file named first and its number.
RESIDENT = """import os, resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
with open(sys.argv[1] + os.environ["OMPI_COMM_WORLD_RANK"], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""


class Case(same_bits.Case):
    """`stages` of 1: the same without a pipeline."""
    layouts = LAYOUTS

    def __init__(self, model, layout, stages, schedule, virtual, microbatches, recompute, documents, target):
        super().__init__("llama", layout, microbatches, "f32", recompute, "never", documents, target)
        self.model = model
        self.sections["optimizer"] = {"clip_grad_norm": 0, "epsilon": 1e-2}
        if layout == "cp2":
            self.sections["context"] = {"method": "gathered"}
        if stages == 1:
            return
        self.ranks *= stages
        self.sections["mesh"] = {"axes": [f"pp={stages}", *self.axes]}
        self.sections["pipeline"] = {"schedule": schedule, **({"virtual_stages": virtual} if virtual else {})}

    def plan(self, space):
        text = tools.spec(self.batch, self.micro, SEQUENCE, documents=self.documents, **self.sections)
        return space.compile(MODELS[self.model], text)


class Pipelines(unittest.TestCase):
    cost_s = 120

    def setUp(self):
        self.space = tools.Workspace(LD_LIBRARY_PATH=str(tools.BIN.parent / "emulator"))
        self.addCleanup(self.space.close)

    def run_case(self, values, stages):
        case = Case(*values[:2], stages, *values[3:])
        return case.run(self.space, case.plan(self.space))

    def test_a_run_goes_on_with_other_stages(self):
        def step(stages, schedule, virtual=None):
            case = Case("llama", "one", stages, schedule, virtual, 3, "selective", "joined", "cpu")
            return case.plan(self.space)
        folder, data = self.space.file(".checkpoints"), self.space.tokens(same_bits.CORPUS)
        options = ["--data", data, "--data-type", "u16", "--lr", RATE, "--threads", 1]
        self.space.must("meshwork-run", step(2, "1f1b"), *options, "--steps", 2, "--checkpoint", folder)
        whole = self.space.file(".safetensors")
        self.space.must("meshwork-run", step(1, None), *options, "--steps", 4, "--save", whole)
        for values in ((1, None), (2, "zb-h1"), (4, "gpipe"), (2, "interleaved-1f1b", 2)):
            with self.subTest(values):
                saved = self.space.file(".safetensors")
                self.space.must("meshwork-run", step(*values), *options, "--steps", 4, "--resume", folder,
                                "--save", saved)
                ours, theirs = (safetensors.read(path) for path in (saved, whole))
                self.assertEqual(set(ours), set(theirs))
                for name in theirs:
                    self.check_same(name, ours[name], theirs[name], 0)

    def test_activations_of_the_first_stage_do_not_grow_with_microbatches(self):
        def activations(schedule, microbatches):
            case = Case("llama", "one", 4, schedule, None, microbatches, "none", "joined", "cpu")
            stages = self.space.explain(case.plan(self.space))["memory_per_rank_bytes"]["stages"]
            return [stage["activations"] for stage in stages]
        four, eight = activations("1f1b", 4), activations("1f1b", 8)
        self.assertEqual(four[0], eight[0])
        # A stage nearer to the end keeps fewer; the last one has the head's beside.
        self.assertGreater(eight[0], eight[1])
        self.assertGreater(eight[1], eight[2])
        self.assertGreater(activations("gpipe", 8)[0], 1.5 * activations("gpipe", 4)[0])

    def test_each_stage_takes_what_is_planned(self):
        """Resident memory of each rank's process: beside the plan's bytes, between 108 and 298 MiB,
        all take the same (code, libraries, buffers of MPI: some 30 MiB)."""
        config = {**MODELS["llama"], "hidden_size": 256, "intermediate_size": 704, "head_dim": 64,
                  "max_position_embeddings": 512}
        data, beside, planned = self.space.tokens(np.tile(same_bits.CORPUS, 6)), [], []
        for schedule, virtual in (("gpipe", None), ("1f1b", None), ("interleaved-1f1b", 2), ("zb-v", None)):
            pipeline = {"schedule": schedule, **({"virtual_stages": virtual} if virtual else {})}
            plan = self.space.compile(config, tools.spec(16, 4, 512, mesh={"axes": ["pp=2"]}, pipeline=pipeline,
                                                         recompute={"policy": "none"}))
            taken = self.space.file(".kib")
            self.space.must("meshwork-run", plan, "--data", data, "--data-type", "u16", "--steps", 1, "--threads", 1,
                            launcher=[*same_bits.MPIRUN, "2", sys.executable, "-c", RESIDENT, taken])
            for rank, stage in enumerate(self.space.explain(plan)["memory_per_rank_bytes"]["stages"]):
                with open(taken + str(rank)) as file:
                    planned.append(stage["peak"])
                    beside.append(int(file.read()) * 1024 - stage["peak"])
        self.assertGreater(max(planned), 2 * min(planned))
        self.assertLess(max(beside) - min(beside), 6 << 20, (planned, beside))

    def test_each_stage_computes_again_what_the_policy_says(self):
        """No stage keeps more than another of as many microbatches, and all stages together move over tp
        what one stage of all layers moves."""
        def explained(stages, policy):
            case = Case("llama", "tp2-sp", stages, "gpipe", None, 3, policy, "joined", "cpu")
            return self.space.explain(case.plan(self.space))

        def moved(told):
            found = {}
            for move in told["collectives"]:
                if move["axis"] == "tp" and move["phase"] != "update":
                    key = move["kind"], move["phase"]
                    found[key] = found.get(key, 0) + move["bytes_sent_per_rank"]
            return found
        kept = {}
        for policy in same_bits.RECOMPUTE:
            whole, cut = explained(1, policy), explained(4, policy)
            self.assertEqual(moved(cut), moved(whole), policy)
            kept[policy] = [stage["activations"] for stage in cut["memory_per_rank_bytes"]["stages"]]
            self.assertEqual(kept[policy][1], kept[policy][2], policy)
        for stage in range(3):
            self.assertGreater(kept["none"][stage], 1.2 * kept["selective"][stage], stage)
            self.assertGreater(kept["selective"][stage], 1.2 * kept["full"][stage], stage)

    def test_a_boundary_is_one_residual_stream_each_way(self):
        case = Case("llama", "dp2", 2, "1f1b", None, 3, "selective", "joined", "cpu")
        explained = self.space.explain(case.plan(self.space))
        sent = [(move["program"], move["axis"], move["phase"], move["count"], move["bytes_sent_per_rank"])
                for move in explained["collectives"] if move["kind"] == "send"]
        residual = case.micro * SEQUENCE * MODELS["llama"]["hidden_size"] * 4
        self.assertEqual(sent, [(0, "pp", "forward", 3, 3 * residual), (1, "pp", "backward", 3, 3 * residual)])
        self.assertAlmostEqual(explained["bubble_fraction"], 1 / (1 + 3))
        self.assertEqual(len(explained["schedule"]), 2)

    def test_what_ranks_have_whole_crosses_in_parts(self):
        """With the bits of what crosses whole; what is split anyway crosses as it is."""
        machine = self.space.write(".toml", TWO_NODES)
        for model, layout in (("llama", "tp2"), ("gpt2-dropout", "tp2"), ("llama", "tp2-sp")):
            values = (model, layout, 2, "1f1b", None, 3, "selective", "joined", "cpu")
            with self.subTest(values):
                case = Case(*values)
                case.sections["target"] = {"machine": machine}
                plan = case.plan(self.space)
                parts, whole = case.run(self.space, plan), self.run_case(values, 2)
                self.assertEqual(parts.losses, whole.losses)
                for name, weight in whole.weights.items():
                    self.check_same(name, parts.weights[name], weight, 0)
                    self.check_same(name, parts.gradients[name], whole.gradients[name], 0)
                told = self.space.explain(plan)["collectives"]
                width = MODELS[model].get("hidden_size", MODELS[model].get("n_embd"))
                rows = case.micro * SEQUENCE / 2 if layout == "tp2" else case.micro * -(-SEQUENCE // 2)
                sent = [move["bytes_sent_per_rank"] for move in told if move["kind"] == "send"]
                self.assertEqual(sent, 2 * [3 * rows * width * 4])
                gathered = [move for move in told if "between stages" in move["cause"]]
                if layout == "tp2":
                    self.assertEqual({(move["kind"], move["axis"], move["phase"]) for move in gathered},
                                     {("all_gather", "tp", "forward"), ("all_gather", "tp", "backward")})
                    self.assertIn("cross in parts", gathered[0]["cause"])
                else:
                    self.assertEqual(gathered, [])

    def test_sums_of_gradients_run_under_the_stage_that_makes_them(self):
        """Each virtual stage has a list of weights' gradients, and the sums run under the last of its runs."""
        for values in (("llama", "dp2", 2, "interleaved-1f1b", 2, 3, "selective", "joined", "cpu"),
                       ("llama", "zero1", 2, "zb-v", None, 4, "none", "joined", "cpu"),
                       ("gpt2-dropout", "dp2", 2, "zb-v", None, 3, "none", "joined", "cpu")):
            with self.subTest(values):
                beside, behind = Case(*values), Case(*values)
                beside.sections["overlap"] = {"collectives": "always", "bucket": "4 KiB"}
                plans = [case.plan(self.space) for case in (beside, behind)]
                runs = [case.run(self.space, plan) for case, plan in zip((beside, behind), plans)]
                self.assertEqual(runs[0].losses, runs[1].losses)
                for name, weight in runs[1].weights.items():
                    self.check_same(name, runs[0].weights[name], weight, 0)
                    self.check_same(name, runs[0].gradients[name], runs[1].gradients[name], 0)
                makers = [{one["phase"] for held in self.space.explain(plan)["rank_classes"]
                           for one in held["instructions"] if one["operation"] in ("all_reduce", "reduce_scatter")}
                          for plan in plans]
                self.assertLess({"update"}, makers[0])
                stages = {phase for phase in makers[0] if phase.startswith(("backward", "weight_grad"))}
                self.assertEqual(len(stages), 4, makers[0])
                self.assertEqual(makers[1], {"update"})

    def test_weights_that_are_pinned_in_stages(self):
        """Reshards within layers stay in their stage's lists, and what is cut of a rotary table is cut in
        each stage. With three microbatches a gradient of weights comes later than lists behind it."""
        mlp = {"mlp.down_proj": '[{?}, {"dp", ?}]', "mlp.up_proj": '[{"dp"}, {?}]'}
        heads = {"self_attn.q_proj": '[{}, {"tp", ?}, {}]'}
        for axis, pins, schedule in (("dp", mlp, "zb-v"), ("dp", mlp, "zb-h1"), ("tp", heads, "zb-v"),
                                     ("tp", heads, "1f1b")):
            def run(axes, pinned, **sections):
                split = {dim: [] for dim in ("heads", "ffn", "vocab")} if axes and axis == "tp" else {}
                text = tools.spec(6, 1 if axes else 2, SEQUENCE, mesh={"axes": axes}, shard=split,
                                  optimizer={"clip_grad_norm": 0, "epsilon": 1e-2}, **sections)
                text += "".join(f"[[shard.tensor]]\nname = 'model.layers.*.{name}.weight'\ndims = '{dims}'\n"
                                for name, dims in pinned.items())
                return self.space.train(self.space.compile(MODELS["llama"], text), same_bits.CORPUS, STEPS,
                                        "--threads", 1, lr=RATE)
            with self.subTest(axis=axis, schedule=schedule):
                found = run(["pp=2", f"{axis}=2"], pins, pipeline={"schedule": schedule})
                expected = run([f"{axis}=2"], pins)
                self.assertEqual(found.losses, expected.losses)
                for name, weight in expected.weights.items():
                    self.check_same(name, found.weights[name], weight, 0)
                    self.check_same(name, found.gradients[name], expected.gradients[name], 0)

    def test_a_trace_has_the_planned_actions(self):
        plan = Case("llama", "one", 2, "zb-h1", None, 3, "none", "joined", "cpu").plan(self.space)
        trace = self.space.file(".json")
        self.space.must("meshwork-run", plan, "--data", self.space.tokens(same_bits.CORPUS), "--data-type", "u16",
                        "--steps", 1, "--threads", 1, "--trace", trace)
        with open(trace) as file:
            events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
        for rank, planned in enumerate(self.space.explain(plan)["schedule"]):
            seen = []
            for event in sorted(events, key=lambda event: event["ts"]):
                action = event["args"]["action"]
                computes = event["pid"] == rank and event["tid"] == 0 and action[0].isdigit()
                if computes and (not seen or seen[-1] != action):
                    seen.append(action)
            self.assertEqual(seen, [action for action in planned if "_" not in action])

    def test_explain_compares_a_run_with_the_plan(self):
        """Against the trace, by hand; and what is no trace of the plan is refused."""
        plan = Case("llama", "tp2", 2, "zb-h1", None, 3, "none", "joined", "cpu").plan(self.space)
        trace = self.space.file(".json")
        self.space.must("meshwork-run", plan, "--data", self.space.tokens(same_bits.CORPUS), "--data-type", "u16",
                        "--steps", 3, "--threads", 1, "--trace", trace)
        told = json.loads(self.space.must("meshwork", "explain", plan, "--measured", trace, "--json").stdout)
        measured, explained = told.pop("measured"), self.space.explain(plan)
        self.assertEqual(told, explained)
        with open(trace) as file:
            written = file.read()
        events = [event for event in json.loads(written)["traceEvents"] if event["ph"] == "X"]
        later = [event for event in events if event["args"]["step"] > 0]
        self.assertEqual((measured["steps"], measured["first_left_out"]), (2, True))

        def spans(key):
            found = {}
            for event in later:
                begin, end = event["ts"], event["ts"] + event["dur"]
                known = found.get(key(event), (begin, end, 0))
                found[key(event)] = (min(known[0], begin), max(known[1], end),
                                     known[2] + event["args"].get("wait_us", 0))
            return found
        steps = spans(lambda event: (event["args"]["step"], event["pid"]))
        best = min(max(end - begin for (step, _), (begin, end, _) in steps.items() if step == number)
                   for number in (1, 2))
        self.assertAlmostEqual(measured["step"]["best_ms"], best / 1e3, places=5)
        self.assertEqual(measured["step"]["planned_ms"], explained["estimate"]["step_ms"])
        # No rank has overlapped collectives here: an action is what its events span.
        actions = spans(lambda event: (event["args"]["step"], event["pid"], event["args"]["action"]))
        for row in measured["lists"]:
            letters = {"forward": "F", "input_grad": "I", "weight_grad": "W"}.get(row["list"].split(" ")[0])
            if letters is None:
                continue
            runs = [end - begin - wait for (_, rank, action), (begin, end, wait) in actions.items()
                    if rank // 2 == row["program"] and re.fullmatch(rf"\d+{letters}\d+", action)]
            self.assertEqual((len(runs), row["runs"]), (2 * 2 * 3, 3), row)
            self.assertAlmostEqual(row["best_ms"], min(runs) / 1e3, places=5)
            self.assertAlmostEqual(row["ratio"], row["median_ms"] / row["planned_ms"])
        self.assertLess(measured["pipeline"]["simulated_ms"], 2 * measured["pipeline"]["median_ms"])
        rows = {(move["kind"], move["axis"], move["phase"]) for move in measured["moves"]}
        self.assertLessEqual({("send", "pp", "forward"), ("receive", "pp", "backward")}, rows)
        self.assertTrue(any(axis == "tp" for _, axis, _ in rows), rows)
        text = self.space.must("meshwork", "explain", plan, "--measured", trace).stdout
        self.assertIn("Measured in 2 steps (the first one is left out), planned for cpu", text)
        other = Case("llama", "tp2", 2, "1f1b", None, 3, "none", "joined", "cpu").plan(self.space)
        cut = self.space.write(".json", written[:-1000])
        for code, words, arguments in ((65, "a trace of the plan with the source", (other, trace)),
                                       (65, "is not JSON", (plan, cut)), (66, "absent", (plan, "/absent.json")),
                                       (65, "is not JSON", (plan, plan))):
            done = self.space.call("meshwork", "explain", arguments[0], "--measured", arguments[1], "--json")
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn(words, done.stderr)

    def test_explain_draws_the_pipeline(self):
        plan = Case("llama", "one", 2, "zb-h1", None, 3, "none", "joined", "cpu").plan(self.space)
        picture = self.space.file(".svg")
        text = self.space.must("meshwork", "explain", plan, "--svg", picture).stdout
        self.assertIn("Pipeline of 2 stages on 2 ranks", text)
        self.assertRegex(text, r"(?m)^rank 1 .*I.*W")
        with open(picture) as drawn:
            self.assertIn("<svg", drawn.read())
        for other, words in ((plan, "the plan"), (self.space.file("/no/such.svg"), "no/such.svg")):
            done = self.space.call("meshwork", "explain", plan, "--svg", other)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
        single = Case("llama", "one", 1, None, None, 3, "none", "joined", "cpu").plan(self.space)
        done = self.space.call("meshwork", "explain", single, "--svg", picture)
        self.assertEqual(done.returncode, 64)
        self.assertIn("one stage", done.stderr)

    def test_what_cannot_be_cut_is_refused(self):
        def refused(*words, model="llama", **sections):
            text = tools.spec(4, 2, SEQUENCE, **sections)
            done = self.space.call("meshwork", "compile", self.space.model(MODELS[model]), "--spec",
                                   self.space.write(".toml", text), "-o", self.space.file(".mwplan"))
            self.assertEqual(done.returncode, 78, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)
        eight, two = {"axes": ["pp=8"]}, {"axes": ["pp=2"]}
        refused("8 stages, and the model 4 layers", "at most 4 stages", mesh=eight)
        refused("pipeline.layers", "3 layers in all, expected 2 with 4, like [2, 2]", mesh=two,
                pipeline={"layers": [1, 2]})
        refused("pipeline.schedule", "zb-v", mesh=two, pipeline={"schedule": "zb-v", "virtual_stages": 3})
        refused("shard.heads", "shares out layers", mesh=two, shard={"heads": ["pp"]})
        refused("shard.layers", "expected one", mesh={"axes": ["a=2", "b=2"]}, shard={"layers": ["a", "b"]})

    def test_a_table_of_ones_own(self):
        """A file's table runs: as the schedule that it was made of, and as one stage."""
        table = self.space.file(".csv")
        self.space.must("meshwork", "schedule", "1f1b", "--stages", 2, "--microbatches", 4, "--csv", table)
        named, own = (Case("llama", "one", 2, schedule, None, 4, "none", "joined", "cpu")
                      for schedule in ("1f1b", table))
        plans = [case.plan(self.space) for case in (named, own)]
        tables = [self.space.explain(plan)["schedule"] for plan in plans]
        self.assertEqual(*tables)
        drawn = str(tools.ROOT / "examples" / "schedules" / "two-ranks-v.csv")
        values = ("llama", "zero1", 2, drawn, None, 3, "selective", "separate", "cpu")
        found, expected = self.run_case(values, 2), self.run_case(values, 1)
        self.assertEqual(found.losses, expected.losses)
        for name in expected.weights:
            self.check_same(name, found.weights[name], expected.weights[name], 0)

    def test_what_a_table_says_of_parameters_is_passed_over(self):
        legal = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
        sharded = legal.replace("0F0", "0UNSHARD,0F0").replace("1B1", "1B1,1REDUCE_GRAD,1RESHARD")
        tables = []
        for text in (legal, sharded):
            spec = tools.spec(4, 2, SEQUENCE, mesh={"axes": ["pp=2"]},
                              pipeline={"schedule": self.space.write(".csv", text)})
            plan = self.space.file(".mwplan")
            done = self.space.must("meshwork", "compile", self.space.model(MODELS["llama"]), "--spec",
                                   self.space.write(".toml", spec), "-o", plan)
            self.assertEqual("passed over 3 actions on parameters" in done.stderr, text == sharded, done.stderr)
            tables.append(self.space.explain(plan)["schedule"])
        self.assertEqual(*tables)

    def test_a_table_that_does_not_fit_is_refused(self):
        def refused(code, text, *words, **sections):
            path = self.space.write(".csv", text) if text else "missing.csv"
            spec = tools.spec(4, 2, SEQUENCE, mesh={"axes": ["pp=2"]},
                              pipeline={"schedule": path, **sections})
            done = self.space.call("meshwork", "compile", self.space.model(MODELS["llama"]), "--spec",
                                   self.space.write(".toml", spec), "-o", self.space.file(".mwplan"))
            self.assertEqual(done.returncode, code, done.stderr)
            for word in ("pipeline.schedule", *words):
                self.assertIn(word, done.stderr)
        legal = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
        refused(78, legal.replace("1", "2"), "pipeline.schedule")
        refused(78, legal + "2F0,2B0,2F1,2B1\n", "found 3 ranks, expected 2")
        refused(78, "0F0,0B0\n1F0,1B0\n", "found 1 microbatch, expected 2")
        refused(78, legal, "found 2 stages, expected 4", virtual_stages=2)
        refused(78, legal.replace("0F1,", "0F1,0SEND_F0,"), "expected F, B, I and W alone")
        refused(78, "0F0,0B0,0F1,0B1\n1F0,1F1,1B1,1B0\n", "is not legal", "waits")
        refused(78, legal.replace("0B1", "0X1"), "0X1", "expected a kind among")
        refused(66, None, "missing.csv", "cannot be read")

    def test_a_pipeline_of_one_stage_is_none(self):
        """What ranks hold and run, and a bubble of nothing."""
        def explained(axes, **pipeline):
            text = tools.spec(4, 2, SEQUENCE, mesh={"axes": axes}, precision={"compute": "f32"}, **pipeline)
            return self.space.explain(self.space.compile(MODELS["llama"], text))
        without = explained(["tp=2"])
        self.assertEqual(without["bubble_fraction"], 0)
        one = explained(["pp=1", "tp=2"], pipeline={"schedule": "1f1b"})
        for key in ("programs", "memory_per_rank_bytes", "collectives", "schedule", "bubble_fraction", "estimate",
                    "rank_classes"):
            self.assertEqual(one[key], without[key], key)

    def check_same(self, name, found, expected, slack):
        """`slack`: roundings that a sum may lie apart by."""
        limit = slack * UNIT * np.abs(expected).max()
        self.assertLessEqual(np.abs(found - expected).max(), limit, name)

    @unittest.skipIf(os.environ.get("MESHWORK_ALL_CASES"), "the list has pairs, not all")
    def test_the_list_has_each_pair_of_values(self):
        self.assertEqual(set(chosen_cases()) - set(listed_cases()), set())

    def test_stages_equal_one_stage(self):
        one_stage = {}
        for values in dict.fromkeys(listed_cases() + chosen_cases()):
            with self.subTest("/".join(map(str, values))):
                alone = values[:2] + values[5:]
                if alone not in one_stage:
                    one_stage[alone] = self.run_case(values, 1)
                self.check_case(values, self.run_case(values, values[2]), one_stage[alone])

    def check_case(self, values, found, expected):
        self.assertEqual(found.losses[0], expected.losses[0])
        isTied = values[0].startswith("gpt2")
        if not isTied:
            self.assertEqual(found.losses, expected.losses)
        # Two sums of one rounding for each microbatch, and its doubled share of the second step.
        slack = 4 * (values[5] + STEPS) if isTied else 0
        ours, theirs = found.gradients, expected.gradients
        self.assertEqual(set(ours), set(theirs))
        for name in theirs:
            self.check_same(name, ours[name], theirs[name], 64 * slack)
        for name, weight in expected.weights.items():
            self.check_same(name, found.weights[name], weight, 64 * slack)
        for a, b in zip(found.metrics, expected.metrics):
            self.assertAlmostEqual(a["grad_norm"] / b["grad_norm"], 1, delta=1e-5)

    def test_stages_come_to_the_sum_of_a_weight_that_two_share_in_one_order(self):
        """One between them has nothing to add: behind a sum over the data, and with parts of unequal
        size. One that overlaps more collectives than another has other channels."""
        ring = {"context": {"method": "ring", "layout": "zigzag"}, "overlap": {"collectives": "always"}}
        for model, layout, stages, more in (("gpt2-dropout", "dp2", 3, {}), ("gpt2-40", "dp3-zero1", 4, {}),
                                            ("gpt2-dropout", "dp2-cp2", 2, ring)):
            values = (model, layout, stages, "zb-h1", None, 3, "selective", "joined", "cpu")
            with self.subTest(values):
                def run(count):
                    case = Case(*values[:2], count, *values[3:])
                    case.sections |= more
                    return case.run(self.space, case.plan(self.space))
                self.check_case(values, run(stages), run(1))


if __name__ == "__main__":
    unittest.main()
