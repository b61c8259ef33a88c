"""Bytes and counts of plans against the closed forms of each strategy, exactly."""
import collections
import json
import math
import unittest

import shell

MODEL = "examples/llama-tiny.json"
CONFIG = json.loads((shell.ROOT / MODEL).read_text())
WIDTH, INNER, LAYERS = (CONFIG[k] for k in ("hidden_size", "intermediate_size",
                                            "num_hidden_layers"))
VOCAB, MICRO, SEQUENCE = CONFIG["vocab_size"], 4, 64
KEYS = WIDTH * CONFIG["num_key_value_heads"] // CONFIG["num_attention_heads"]
NORMS = (2 * LAYERS + 1) * WIDTH
TABLES = 2 * VOCAB * WIDTH
MATRICES = LAYERS * (2 * WIDTH * WIDTH + 2 * KEYS * WIDTH + 3 * INNER * WIDTH)
COUNT = NORMS + TABLES + MATRICES
TENSORS = 9 * LAYERS + 3
SCALAR = 4  # an f32
# Where gradients are reduced as they appear, those of norms still are the f32 sums over tokens,
# two bytes an element more than the form's.
SCATTERED = COUNT + NORMS


class Forms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)

    def plan(self, mesh, *settings, micro=MICRO):
        options = [part for setting in settings for part in ("--set", setting)]
        self.space.must("meshwork", "compile", MODEL, "--spec", "examples/dp2.toml", "--set",
                        f"mesh.axes={json.dumps(mesh)}", "--set", f"batch.micro={micro}", "--set",
                        "recompute.policy=none", *options, "-o", "f.mwplan")
        return json.loads(self.space.must("meshwork", "explain", "f.mwplan", "--json").stdout)

    @staticmethod
    def sent(plan):
        """Bytes a rank sends in a step, by kind and axis."""
        total = collections.Counter()
        for c in plan["collectives"]:
            total[c["kind"], c["axis"]] += c["bytes_sent_per_rank"]
        return total

    def test_data_parallel(self):
        plan = self.plan(["dp=2"])
        # all_reduce of 2 bytes an element, 2 (N-1)/N of it; and the loss.
        self.assertEqual(self.sent(plan), {("all_reduce", "dp"): 2 * COUNT + SCALAR})

    def test_zero_1_and_2(self):
        for stage in (1, 2):
            with self.subTest(stage):
                scattered = COUNT if stage == 1 else SCATTERED
                plan = self.plan(["dp=2"], f"zero.stage={stage}")
                # Half of each tensor goes; the norm of the gradient is a scalar a tensor.
                self.assertEqual(self.sent(plan), {
                    ("reduce_scatter", "dp"): scattered, ("all_gather", "dp"): COUNT,
                    ("all_reduce", "dp"): SCALAR + TENSORS * SCALAR})

    def test_zero_2_reduces_in_each_microbatch(self):
        plan = self.plan(["dp=2"], "zero.stage=2", micro=2)
        self.assertEqual(self.sent(plan)["reduce_scatter", "dp"], 2 * SCATTERED)
        self.assertEqual(self.sent(plan)["all_gather", "dp"], COUNT)

    def test_zero_reduces_once_a_step(self):
        """(N-1)/N of the sums of all microbatches, which are f32, whatever their number; and the memory of ZeRO-1."""
        for micro in (2, 1):
            first = self.plan(["dp=2"], "zero.stage=1", micro=micro)
            for stage in (2, 3):
                with self.subTest(stage=stage, micro=micro):
                    plan = self.plan(["dp=2"], f"zero.stage={stage}", "zero.reduce=step", micro=micro)
                    self.assertEqual(self.sent(plan)["reduce_scatter", "dp"], 4 * COUNT // 2)
                    self.assertEqual(*(p["memory_per_rank_bytes"]["gradients"] for p in (first, plan)))

    def test_zero_3(self):
        """3M: a gather in each pass and one reduce_scatter. The table's weights are not read in
        the backward pass, and the head's two passes are one."""
        plan = self.plan(["dp=2"], "zero.stage=3")
        self.assertEqual(self.sent(plan)["reduce_scatter", "dp"], SCATTERED)
        self.assertEqual(self.sent(plan)["all_gather", "dp"], 2 * COUNT - TABLES)

    def test_zero_3_over_ranks_that_share_sequences(self):
        """As over four ranks of dp: (N-1)/N of the same bytes, and a quarter of the states."""
        keys = ("zero.stage=3", "context.method=gathered", "batch.global=2")
        of_dp = self.plan(["dp=4"], *keys[:1], "batch.global=4", micro=1)
        for axes in (["dp", "cp"], ["cp", "dp"]):
            with self.subTest(axes):
                plan = self.plan(["dp=2", "cp=2"], *keys, f"zero.axes={json.dumps(axes)}", micro=1)
                sent, name = self.sent(plan), ", ".join(axes)
                for kind in ("reduce_scatter", "all_gather"):
                    self.assertEqual(sent[kind, name], self.sent(of_dp)[kind, "dp"])
                for kind in ("weights", "optimizer"):
                    self.assertEqual(plan["memory_per_rank_bytes"][kind], of_dp["memory_per_rank_bytes"][kind])

    def test_zero_3_that_keeps_gathers_once(self):
        plan = self.plan(["dp=2"], "zero.stage=3", "zero.gathered=keep")
        self.assertEqual(self.sent(plan)["reduce_scatter", "dp"], SCATTERED)
        self.assertEqual(self.sent(plan)["all_gather", "dp"], COUNT)

    def test_zero_3_in_8_bits(self):
        """A byte an element of matrices, half as much; in int8 four more for each of their rows, and in FP8 one maximum of
        each before. Norms travel as they are."""
        heads = CONFIG["num_attention_heads"]
        rows = LAYERS * (2 * WIDTH + 2 * KEYS + heads * WIDTH + 2 * INNER)
        for how, scales in (("fp8", 0), ("int8", 4 * (2 * rows + 2 * VOCAB))):
            for micro in (MICRO, MICRO // 2):
                with self.subTest(how, micro=micro):
                    plan = self.plan(["dp=2"], "zero.stage=3", f"zero.weights={how}", micro=micro)
                    sent = self.sent(plan)
                    self.assertEqual(sent["all_gather", "dp"], MICRO // micro * (
                        (2 * MATRICES + TABLES + scales) // 2 + 2 * NORMS))
                    usual = self.sent(self.plan(["dp=2"], "zero.stage=3", micro=micro))
                    self.assertEqual(sent["reduce_scatter", "dp"], usual["reduce_scatter", "dp"])
                    maxima = (7 * LAYERS + 2) * SCALAR if how == "fp8" else 0
                    self.assertEqual(sent["all_reduce", "dp"] - usual["all_reduce", "dp"], maxima)

    def test_gradients_in_8_and_4_bits(self):
        """A byte or half of one an element of matrices, and four for each block, which is a row here, or a head's
        dims: (N-1)/N of it. In a hierarchy the outer ranks exchange what the inner ones have left. Norms travel as
        they are."""
        heads = CONFIG["num_attention_heads"]
        scales = 4 * (LAYERS * (WIDTH + 2 * KEYS + heads * WIDTH + 2 * INNER + WIDTH) + 2 * VOCAB)
        for how, shared in (("int8", 1), ("int4", 2)):
            with self.subTest(how):
                sent = self.sent(self.plan(["dp=2"], "zero.stage=3", f"zero.gradients={how}"))
                self.assertEqual(sent["all_to_all", "dp"], ((MATRICES + TABLES) // shared + scales) // 2)
                self.assertEqual(sent["reduce_scatter", "dp"], 2 * NORMS)
        sent = self.sent(self.plan(["dp=2", "fsdp=2"], "zero.stage=3", 'zero.axes=["fsdp","dp"]', 'zero.gathered=["fsdp"]',
                                   "zero.gradients=int4", micro=2))
        inner = ((MATRICES + TABLES) // 2 + scales) // 2
        self.assertEqual([sent["all_to_all", axis] for axis in ("fsdp", "dp")], [inner, inner // 2])

    def test_hybrid(self):
        plan = self.plan(["dp=2", "fsdp=2"], "zero.stage=3", micro=2)
        sent = self.sent(plan)
        self.assertEqual(sent["reduce_scatter", "fsdp"], SCATTERED)
        self.assertEqual(sent["all_gather", "fsdp"], 2 * COUNT - TABLES)
        # Half of the gradients is left to each rank for the sum over dp.
        self.assertEqual(sent["all_reduce", "dp"], COUNT)

    def test_hierarchy(self):
        """The outer gather moves (No-1)/No of M/Ni once a step, the inner one (Ni-1)/Ni of M for each use. A rank
        keeps M/Ni more."""
        for outer, inner, micro in ((2, 2, 2), (2, 2, 1), (4, 2, 1), (2, 4, 1)):
            with self.subTest(outer=outer, inner=inner, micro=micro):
                keys = [f"dp={outer}", f"fsdp={inner}"], "zero.stage=3", 'zero.axes=["dp", "fsdp"]', "batch.global=16"
                free = self.plan(*keys, micro=micro)
                plan = self.plan(*keys, 'zero.gathered=["fsdp"]', micro=micro)
                sent, uses = self.sent(plan), 16 // (micro * outer * inner) * (2 * COUNT - TABLES)
                self.assertEqual(sent["all_gather", "dp"], 2 * COUNT // inner * (outer - 1) // outer)
                self.assertEqual(sent["all_gather", "fsdp"], 2 * uses * (inner - 1) // inner)
                weights = [p["memory_per_rank_bytes"]["weights"] for p in (free, plan)]
                self.assertEqual(weights[1] - weights[0], 2 * COUNT // inner)
                scattered = [sum(n for (kind, _), n in self.sent(p).items() if kind == "reduce_scatter")
                             for p in (free, plan)]
                self.assertEqual(*scattered)

    def test_a_hierarchy_of_one_is_free(self):
        """Outer axes of one rank leave nothing to gather once."""
        keys = ["dp=1", "fsdp=2"], "zero.stage=3", 'zero.axes=["dp", "fsdp"]'
        self.assertEqual(self.sent(self.plan(*keys, 'zero.gathered=["fsdp"]')), self.sent(self.plan(*keys)))

    KEYS_AND_VALUES = 2 * MICRO * SEQUENCE * KEYS * 2  # of a layer, whole sequences

    def test_gathered_keys(self):
        """All ranks' keys and values to each, (N-1)/N of them; back go their gradients. In zigzag
        nothing else moves."""
        for layout in ("block", "zigzag"):
            for ranks in (2, 4):
                with self.subTest(layout, ranks=ranks):
                    plan = self.plan([f"cp={ranks}"], "batch.global=4", f"context.layout={layout}",
                                     "context.method=gathered")
                    moved = LAYERS * self.KEYS_AND_VALUES * (ranks - 1) // ranks
                    self.assertEqual(self.sent(plan), {
                        ("all_gather", "cp"): moved, ("reduce_scatter", "cp"): moved,
                        ("all_reduce", "cp"): 2 * (ranks - 1) * (2 * COUNT + SCALAR) // ranks})

    def test_exchanged_heads(self):
        """q, k, v there and the result back, and the same of gradients: (N-1)/N of a rank's part."""
        for layout in ("block", "zigzag"):
            with self.subTest(layout):
                plan = self.plan(["cp=2"], "batch.global=4", f"context.layout={layout}",
                                 "context.method=ulysses")
                part = MICRO * SEQUENCE // 2 * (2 * WIDTH + 2 * KEYS) * 2
                self.assertEqual(self.sent(plan), {
                    ("all_to_all", "cp"): 2 * LAYERS * part // 2,
                    ("all_reduce", "cp"): 2 * COUNT + SCALAR})

    def test_exchanged_tokens(self):
        """A token once to each rank with an expert of its choices, with two numbers a choice, and a sum back; its
        gradient there and back, with one number a choice. A first round is all that an even choice needs."""
        config = json.loads((shell.ROOT / "examples/mixtral-tiny.json").read_text())
        experts, choices, width, layers = (config[key] for key in (
            "num_local_experts", "num_experts_per_tok", "hidden_size", "num_hidden_layers"))
        for ranks in (2, 4):
            none = 1 - math.comb(experts - experts // ranks, choices) / math.comb(experts, choices)
            for bound in (1, 1.25, math.inf):
                with self.subTest(ranks=ranks, bound=bound):
                    tokens = MICRO * SEQUENCE // ranks
                    slots = math.ceil(min(tokens, bound * tokens * none))
                    self.space.must(
                        "meshwork", "compile", "examples/mixtral-tiny.json", "--spec", "examples/ep2.toml",
                        "--set", f'mesh.axes=["ep={ranks}"]', "--set", f"batch.global={MICRO}", "--set",
                        f"batch.micro={MICRO // ranks}", "--set", "experts.exchange=all_to_all", "--set",
                        "recompute.policy=none", "--set",
                        f"experts.bound={'worst' if bound == math.inf else bound}", "-o", "f.mwplan")
                    plan = json.loads(self.space.must("meshwork", "explain", "f.mwplan", "--json").stdout)
                    row = 4 * width * 2 + 8 * choices + 4 * choices
                    self.assertEqual(self.sent(plan)["all_to_all", "ep"], layers * (ranks - 1) * slots * row)

    def test_ring(self):
        """N-1 chunks of keys and values forward and again backward, and N-1 of their gradients,
        which are f32."""
        for layout in ("block", "zigzag"):
            for ranks in (2, 4):
                with self.subTest(layout, ranks=ranks):
                    plan = self.plan([f"cp={ranks}"], "batch.global=4", f"context.layout={layout}",
                                     "context.method=ring")
                    chunk = LAYERS * self.KEYS_AND_VALUES // ranks
                    self.assertEqual(self.sent(plan), {
                        ("permute", "cp"): (ranks - 1) * (1 + 1 + 2) * chunk,
                        ("all_reduce", "cp"): 2 * (ranks - 1) * (2 * COUNT + SCALAR) // ranks})

    def test_a_ring_under_recompute(self):
        """A selective one keeps what attention needs; of a full one the forward hops are made again."""
        chunk = LAYERS * self.KEYS_AND_VALUES // 2
        for policy, again in (("none", 0), ("selective", 0), ("full", 1)):
            with self.subTest(policy):
                plan = self.plan(["cp=2"], "batch.global=4", "context.method=ring", f"recompute.policy={policy}")
                self.assertEqual(self.sent(plan)["permute", "cp"], (1 + again + 1 + 2) * chunk)

    def test_ring_memory(self):
        """One's own keys and what is on its way: a rank's bytes depend on its part of a sequence,
        not on how many ranks share it. Gathered keys grow with them."""
        config = {**CONFIG, "intermediate_size": 8, "num_hidden_layers": 1, "num_key_value_heads": 4,
                  "max_position_embeddings": 8192}
        self.space.write("attention.json", json.dumps(config))

        def activations(method, ranks, overlap):
            self.space.must("meshwork", "compile", "attention.json", "--spec", "examples/cp2.toml",
                            "--set", f'mesh.axes=["cp={ranks}"]', "--set", f"batch.sequence={512 * ranks}",
                            "--set", f"context.method={method}", "--set", "expect.collectives=[]", "--set",
                            f"overlap.collectives={overlap}", "-o", "memory.mwplan")
            return json.loads(self.space.must("meshwork", "explain", "memory.mwplan", "--json").stdout)[
                "memory_per_rank_bytes"]["activations"]

        for overlap in ("never", "always"):
            with self.subTest(overlap=overlap):
                self.assertEqual(activations("ring", 4, overlap), activations("ring", 16, overlap))
        self.assertGreater(activations("gathered", 16, "never"), 2 * activations("ring", 16, "never"))

    def test_long_sequences(self):
        """131072 tokens with a window, over 8 ranks: an eighth of one rank's activations each, and
        only a neighbour's keys come by. The plan of a million tokens stays small."""
        config = {**CONFIG, "model_type": "mistral", "architectures": ["MistralForCausalLM"],
                  "sliding_window": 4096, "max_position_embeddings": 1 << 20}
        del config["rope_scaling"]
        self.space.write("window.json", json.dumps(config))

        def plan(ranks, tokens, *settings):
            settings = [part for setting in settings for part in ("--set", setting)]
            self.space.must("meshwork", "compile", "window.json", "--spec", "examples/dp1.toml", "--set",
                            f'mesh.axes=["cp={ranks}"]', "--set", "batch.global=1", "--set", "batch.micro=1",
                            "--set", f"batch.sequence={tokens}", *settings, "-o", "long.mwplan")
            return json.loads(self.space.must("meshwork", "explain", "long.mwplan", "--json").stdout)

        whole, part = plan(1, 1 << 17), plan(8, 1 << 17, "context.method=ring")
        bytes_of = [one["memory_per_rank_bytes"]["activations"] for one in (whole, part)]
        self.assertAlmostEqual(bytes_of[0] / bytes_of[1], 8, delta=0.01)
        self.assertEqual({c["count"] for c in part["collectives"] if c["kind"] == "permute"}, {LAYERS})
        plan(8, 1 << 20, "context.method=ring", "context.layout=zigzag")
        self.assertLess((self.space.path / "long.mwplan").stat().st_size, 1e6)
        plan(8, 1 << 12, "context.method=ring")
        self.space.write("long.txt", "a long text\n" * 4096)
        self.space.must("meshwork-run", "long.mwplan", "--data", "long.txt", "--tokenizer", "bytes", "--steps", 1)

    def layers(self, plan, kind, phase):
        """How often collectives of layers move activations, and their bytes."""
        of_layers = [c for c in plan["collectives"]
                     if (c["kind"], c["axis"], c["phase"]) == (kind, "tp", phase)
                     and ".*." in c["cause"].split(" for ")[-1].split(" ")[0]]
        return (sum(c["count"] for c in of_layers),
                sum(c["bytes_sent_per_rank"] for c in of_layers))

    # Row maximum, sum of exponentials and target logit of each token: never the logits.
    HEAD = 3 * MICRO * SEQUENCE * SCALAR
    HIDDEN = MICRO * SEQUENCE * WIDTH * 2
    NORM_SCALARS = (TENSORS - 2 * LAYERS - 1) * SCALAR  # of tensors that tp splits

    def test_tensor_parallel(self):
        plan = self.plan(["tp=2"], "batch.global=4")
        for phase in ("forward", "backward"):
            self.assertEqual(self.layers(plan, "all_reduce", phase),
                             (2 * LAYERS, 2 * LAYERS * self.HIDDEN), phase)
        # Beside the layers: the table's rows forward, the head's input gradient backward.
        self.assertEqual(self.sent(plan), {
            ("all_reduce", "tp"):
                (4 * LAYERS + 2) * self.HIDDEN + self.HEAD + self.NORM_SCALARS})

    def test_sequence_parallel(self):
        plan = self.plan(["tp=2"], "batch.global=4", 'shard.residual_sequence=["tp"]')
        for kind in ("all_gather", "reduce_scatter"):
            for phase in ("forward", "backward"):
                self.assertEqual(self.layers(plan, kind, phase),
                                 (2 * LAYERS, 2 * LAYERS * self.HIDDEN // 2), (kind, phase))
        half = (4 * LAYERS + 2) * self.HIDDEN // 2
        self.assertEqual(self.sent(plan), {
            ("all_gather", "tp"): half, ("reduce_scatter", "tp"): half,
            ("all_reduce", "tp"): self.HEAD + self.NORM_SCALARS + 2 * NORMS})

    def test_collective_matmul(self):
        """As many bytes, in c collectives for each of sequence parallelism: all of a layer's, forward and backward."""
        keys = ["tp=2"], "batch.global=4", 'shard.residual_sequence=["tp"]'
        whole = self.plan(*keys)
        for chunks in (2, 4):
            plan = self.plan(*keys, "overlap.matmul=always", f"overlap.chunks={chunks}")
            self.assertEqual(self.sent(plan), self.sent(whole))
            for kind in ("all_gather", "reduce_scatter"):
                for phase in ("forward", "backward"):
                    self.assertEqual(self.layers(plan, kind, phase),
                                     (chunks * 2 * LAYERS, 2 * LAYERS * self.HIDDEN // 2), (kind, phase))

    def test_both_utilizations(self):
        plan = self.plan(["dp=2"])
        self.space.must("meshwork-run", "f.mwplan", "--data", "README.md", "--tokenizer", "bytes", "--steps", 1,
                        "--peak-tflops", 1, "--metrics", "f.jsonl")
        line = json.loads(self.space.read("f.jsonl").splitlines()[-1])
        flops = {key: line[key] * line["step_ms"] * 1e9 for key in ("mfu", "mfu_palm")}
        # 6 N + 12 L H Q T a token.
        palm = (6 * COUNT + 12 * LAYERS * WIDTH * SEQUENCE) * line["tokens"]
        self.assertAlmostEqual(flops["mfu_palm"] / palm, 1, 4)
        self.assertAlmostEqual(flops["mfu"] / plan["flops_per_step"], 1, 4)

    def test_weights_change_after_the_norm(self):
        """Also where nothing is clipped, and launches are merged."""
        self.plan(["dp=2"], "optimizer.clip_grad_norm=0.0", 'target.device="cuda"', 'target.arch="sm_80"')
        self.space.must("meshwork", "verify", "f.mwplan")

    def state(self, plan):
        memory = plan["memory_per_rank_bytes"]
        return [memory[key] for key in ("weights", "gradients", "optimizer")]

    def test_model_state(self):
        for stage, expected in ((0, [2 * COUNT, 2 * COUNT, 12 * COUNT]),
                                (1, [2 * COUNT, 2 * COUNT, 6 * COUNT]),
                                (2, [2 * COUNT, COUNT, 6 * COUNT]),
                                (3, [COUNT, COUNT, 6 * COUNT])):
            with self.subTest(stage):
                plan = self.plan(["dp=2"], f"zero.stage={stage}")
                self.assertEqual(self.state(plan), expected)

    def test_uneven_state(self):
        """Three ranks: blocks of ceil(n / 3) of the first dim that 3 divides, or of the longest."""
        plan = self.plan(["dp=3"], "zero.stage=3", "batch.global=12")
        heads, keys = CONFIG["num_attention_heads"], CONFIG["num_key_value_heads"]
        depth = WIDTH // heads

        def part(*shape):
            whole = list(shape)
            split = next((i for i, n in enumerate(whole) if n % 3 == 0), whole.index(max(whole)))
            whole[split] = -(-whole[split] // 3)
            count = 1
            for n in whole:
                count *= n
            return count

        count = 2 * part(VOCAB, WIDTH) + (2 * LAYERS + 1) * part(WIDTH) + LAYERS * (
            part(heads, depth, WIDTH) + 2 * part(keys, depth, WIDTH) + part(WIDTH, heads, depth)
            + 2 * part(INNER, WIDTH) + part(WIDTH, INNER))
        self.assertGreater(3 * count, COUNT)
        self.assertEqual(self.state(plan), [2 * count, 2 * count, 12 * count])


if __name__ == "__main__":
    unittest.main()
