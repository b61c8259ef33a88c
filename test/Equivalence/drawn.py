"""Models and specs drawn at random, of all that may stand together (test_random_specs.py).

    draw = random.Random(7)
    model = drawn.Model(draw)
    training = drawn.Training(draw)
    layout = drawn.Layout(draw, model, training)
    layout.spec(), training.spec()   # on a mesh; the same on one rank

A layout without pins is meant to be legal: what the compiler refuses is a fault of it or of this file.
"""
import math
import random

import configs
import drawn_pins
import tools

SIZES = (1, 1, 2, 2, 3, 4)
MOST_RANKS = 12
SCHEDULES = ("gpipe", "1f1b", "zb-h1", "zb-h2", "auto")
SCHEDULES_OF_TWO = ("interleaved-1f1b", "zb-v", "dualpipe-v")  # stages on each rank
# Axes that no default knows, and the rules that say what they split.
OTHER_NAMES = {"pp": "stage", "dp": "replica", "fsdp": "pod", "cp": "part", "cq": "piece", "tp": "model"}

# The last one goes by signs.
OPTIMIZERS = ({"kind": "adamw", "epsilon": 1e-2}, {"kind": "sgd"},
              {"kind": "sgd", "momentum": 0.9, "nesterov": True}, {"kind": "lion"})


# The same blocks with experts.
MIXTURES = {"mistral": configs.MIXTRAL, "qwen2": configs.QWEN2_MOE, "qwen3": configs.QWEN3_MOE}
EXPERTS = 12


def beside(*drawn):
    """More of a draw, which leaves what is drawn after it as it was."""
    return random.Random(repr(drawn))


class Model:
    def __init__(self, draw, device="cpu"):
        self.family = draw.choice(list(configs.DENSE))
        self.layers = draw.choice((2, 3, 4, 5, 6))
        self.kv_heads = draw.choice((1, 2, 3, 4))
        self.heads = self.kv_heads * draw.choice((1, 2, 3))
        width = draw.choice((2, 4, 6, 8, 10, 14, 16))
        vocabulary = draw.choice((128, 131, 133))
        shared = {"vocab_size": vocabulary, "tie_word_embeddings": draw.random() < 0.6}
        change = self._gpt2 if self.family == "gpt2" else self._llama
        self.config = {**configs.DENSE[self.family], **shared, **change(draw, width)}
        more = beside(self.config)
        self.has_experts = device == "cpu" and self.family in MIXTURES and more.random() < 0.5
        if self.has_experts:
            self.config |= self._experts(more)

    def _experts(self, draw):
        if self.family == "qwen3" and beside(self.config, "biased").random() < 0.5:
            return self._biased(draw)
        mixture, width = MIXTURES[self.family], draw.choice((5, 8, 17))
        sizes = {"num_experts_per_tok": draw.choice((1, 2, 3, 5)), "architectures": mixture["architectures"],
                 "model_type": mixture["model_type"]}
        if mixture["model_type"] == "mixtral":
            return {**sizes, "num_local_experts": EXPERTS, "intermediate_size": width, **self._balance(draw)}
        if mixture["model_type"] == "qwen2_moe":
            sizes |= {"shared_expert_intermediate_size": draw.choice((9, 16)), "use_sliding_window": False}
        return {**sizes, "num_experts": EXPERTS, "moe_intermediate_size": width,
                "norm_topk_prob": draw.random() < 0.5, "mlp_only_layers": [draw.randrange(self.layers)],
                **self._balance(draw)}

    def _biased(self, draw):
        groups = draw.choice((1, 2, 3))
        kept = draw.randint(1, groups)
        return {"model_type": "dots1", "architectures": configs.DOTS1["architectures"], "n_routed_experts": EXPERTS,
                "moe_intermediate_size": draw.choice((5, 8, 17)), "n_group": groups, "topk_group": kept,
                "num_experts_per_tok": draw.choice([k for k in (1, 2, 3, 5) if k <= EXPERTS // groups * kept]),
                "n_shared_experts": draw.choice((1, 2)), "first_k_dense_replace": draw.randrange(self.layers),
                "norm_topk_prob": draw.random() < 0.5, "routed_scaling_factor": draw.choice((1.0, 2.5)),
                "sliding_window": None}

    @staticmethod
    def _balance(draw):
        """The loss for even routing, in half of them."""
        return {"output_router_logits": draw.random() < 0.5, "router_aux_loss_coef": 0.1}

    def _gpt2(self, draw, width):
        self.kv_heads = self.heads
        dropped = {key: draw.choice((0.0, 0.1)) for key in ("embd_pdrop", "attn_pdrop", "resid_pdrop")}
        return {"n_head": self.heads, "n_embd": self.heads * width, "n_layer": self.layers,
                "n_inner": draw.choice((40, 52, 97)), **dropped,
                "activation_function": draw.choice(("gelu_new", "gelu", "relu"))}

    def _llama(self, draw, width):
        changes = {"num_attention_heads": self.heads, "num_key_value_heads": self.kv_heads,
                   "num_hidden_layers": self.layers, "intermediate_size": draw.choice((40, 51, 72)),
                   "head_dim": width, "hidden_size": draw.choice((24, 48, 50)),
                   "attention_dropout": draw.choice((0.0, 0.0, 0.1))}
        if self.family == "qwen2":  # it has no head_dim
            del changes["head_dim"]
            changes |= {"hidden_size": self.heads * width, "max_window_layers": draw.choice((0, 1, self.layers))}
        return changes


class Training:
    """What is computed, wherever it is."""

    def __init__(self, draw):
        self.batch, self.sequence = draw.choice((6, 12, 24)), draw.choice((8, 13, 16, 17, 23, 31, 32))
        self.documents = draw.choice(("joined", {key: draw.choice(values) for key, values in (
            ("documents", ("joined", "separate")), ("positions", ("sequence", "document")),
            ("document_end_loss", (True, False)))}))
        self.compute = draw.choice(("f32", "f32", "f32", "f32", "bf16"))
        self.experts = {}  # of models with experts, as far as it changes what is computed
        self.optimizer = {"clip_grad_norm": draw.choice((0, 0.05, 1.0)), **draw.choice(OPTIMIZERS)}
        more = beside(self.batch, self.sequence, self.optimizer)
        self.groups = f"rate = {more.choice((0, 0.25, 2))}" if more.random() < 0.3 else ""  # of the first layer
        self.weights = {}  # of zero, where they travel in 8 bits
        self.order = ["--order", "epochs"] if more.random() < 0.3 else []

    @property
    def keeps_states(self):
        """Beside weights that are their own masters."""
        return self.compute == "bf16" or self.optimizer["kind"] != "sgd" or "momentum" in self.optimizer

    @property
    def options(self):
        """Of the launcher; a plan that does not look at documents refuses to be told of them."""
        keys = self.documents if isinstance(self.documents, dict) else {}
        looks = any(keys.get(key, usual) != usual for key, usual in (
            ("documents", "joined"), ("positions", "sequence"), ("document_end_loss", True)))
        return [*(["--document-begin", 5] if looks else []), *self.order]

    def spec(self, micro=None, **sections):
        if self.experts:
            sections["experts"] = {**self.experts, **sections.get("experts", {})}
        if self.weights and "zero" not in sections:  # as a layout has them
            sections = {"mesh": {"axes": ["dp=1"]}, "zero": {"stage": 3, **self.weights}, **sections}
        text = tools.spec(self.batch, micro or self.batch, self.sequence, documents=self.documents,
                          compute=self.compute, **{"mesh": {"axes": []}, "recompute": {"policy": "none"},
                                                   "optimizer": self.optimizer, **sections})
        if self.groups:
            text += f'[[optimizer.groups]]\nname = "{self.layers}.0.*"\n{self.groups}\n'
        return text


class Layout:
    """Who computes it."""
    launcher = ()  # of ranks that are processes

    def __init__(self, draw, model, training, device="cpu", most_ranks=MOST_RANKS):
        self.model, self.training, self.device = model, training, device
        training.layers = "h" if model.family == "gpt2" else "model.layers"
        if model.has_experts and training.compute == "f32":  # else others are chosen
            training.experts = self._routing(model)
        sizes = self._sizes(draw, most_ranks)
        self.ranks = math.prod(sizes.values())
        self.micro = draw.choice([n for n in range(1, training.batch + 1)
                                  if training.batch % (n * sizes["dp"]) == 0 and n <= 4])
        self.names = OTHER_NAMES if draw.random() < 0.25 else {name: name for name in OTHER_NAMES}
        self.experts = {}
        self.sections = {"mesh": {"axes": self._axes(draw, sizes)}, "shard": self._rules(draw, sizes),
                         "recompute": {"policy": draw.choice(("none", "selective", "full"))},
                         "overlap": {"collectives": draw.choice(("auto", "always", "never")),
                                     "bucket": draw.choice(("1 KiB", "10 KiB", "25 MiB"))},
                         "target": {"epilogues": draw.choice(("auto", "always", "never")),
                                    "merge_launches": draw.choice(("auto", "always", "never")),
                                    **({"device": "cuda", "arch": "sm_80"} if device == "cuda" else {})}}
        self.sections |= self.experts | self._offload(sizes)
        chunks = beside(model.config, sizes, "chunks")
        if self.sections["overlap"]["collectives"] != "never" and chunks.random() < 0.5:
            self.sections["overlap"] |= {"matmul": "always", "chunks": chunks.choice((2, 3))}
        if beside(model.config, sizes, "activations").random() < 0.25:
            self.sections["recompute"] = {"policy": "offload"}
            self.sections.setdefault("offload", {})["window"] = "4 KiB"
        self.pins = self._pins(draw, sizes) if draw.random() < 0.4 else []
        if sizes["dp"] > 1 or sizes["cp"] > 1:
            self.sections["zero"] = self._zero(draw, sizes)
        if sizes["cp"] > 1:
            self.sections["context"] = self._context(draw, sizes)
        if sizes["pp"] > 1:
            self.sections["pipeline"] = self._pipeline(draw, sizes["pp"])

    def _sizes(self, draw, most_ranks):
        model, batch = self.model, self.training.batch
        while True:
            sizes = {name: draw.choice(SIZES) for name in ("pp", "dp", "cp", "tp")}
            sizes["cq"] = draw.choice((1, 1, 2, 3)) if sizes["cp"] > 1 else 1  # more axes of sequences
            tp = sizes["tp"]
            heads_fit = model.heads % tp == 0 and (model.kv_heads % tp == 0 or tp % model.kv_heads == 0)
            ranks = math.prod(sizes.values())
            if heads_fit and sizes["pp"] <= model.layers and batch % sizes["dp"] == 0 and ranks <= most_ranks:
                return sizes

    def _axes(self, draw, sizes):
        names = [name for name, size in sizes.items() if size > 1 or name != "cq" and draw.random() < 0.1]
        if draw.random() < 0.3:
            draw.shuffle(names)
        self.has = set(names)
        self.data = ["dp", "fsdp"] if sizes["dp"] == 4 and draw.random() < 0.5 else ["dp"]
        axes = {**sizes, **({"dp": 2, "fsdp": 2} if len(self.data) == 2 else {})}
        names = [part for name in names for part in (self.data if name == "dp" else [name])]
        self.sequence = [name for name in ("cp", "cq") if name in self.has]
        draw.shuffle(self.sequence)
        return [f"{self.names[name]}={axes[name]}" for name in names]

    def _named(self, axes):
        return [self.names[axis] for axis in axes]

    def _rules(self, draw, sizes):
        rules = {}
        if self.names is OTHER_NAMES:
            split = {"batch": self.data, "heads": ["tp"], "ffn": ["tp"], "vocab": ["tp"], "layers": ["pp"]}
            rules = {dim: self._named(axes) for dim, axes in split.items() if axes[0] in self.has}
        if self.names is OTHER_NAMES and self.sequence or "cq" in self.sequence:  # no default knows it
            rules["sequence"] = self._named(self.sequence)
        if sizes["tp"] > 1 and draw.random() < 0.5:
            more = [*self.sequence, "tp"] if sizes["cp"] > 1 and draw.random() < 0.5 else ["tp"]
            rules["residual_sequence"] = self._named(more)
            if len(more) > 1:
                rules["sequence"] = self._named(self.sequence)
        if sizes["tp"] > 1 and draw.random() < 0.2:
            rules[draw.choice(("ffn", "vocab"))] = []
        return {**rules, **self._expert_rules(sizes, rules)}

    @staticmethod
    def _routing(model):
        own = beside(model.config, "routing")
        rate = {"bias_rate": 0.01} if model.config["model_type"] == "dots1" else {}
        return {**rate, **({"capacity": own.choice((0.6, 1.0, 1.7))} if own.random() < 0.4 else {})}

    def _expert_rules(self, sizes, rules):
        """Samples or heads are split over the same axes."""
        choices = [axes for axes, size in ((self.data, sizes["dp"]), (["tp"], sizes["tp"])) if size > 1]
        if not self.model.has_experts or not choices:
            return {}
        own = beside(self.model.config, sizes)
        axes = own.choice([None, *choices])
        if not axes:
            return {}
        has_own_tokens = axes == self.data or "residual_sequence" in rules  # which has tp
        exchange = own.choice(("all_to_all", "all_to_all", "auto", "gathered") if has_own_tokens else ("auto", "gathered"))
        bound = {} if exchange == "gathered" else {"bound": own.choice((1.0, 1.25, "worst"))}
        self.experts = {"experts": {"exchange": exchange, **bound}}
        return {"experts": self._named(axes)}

    def _pins(self, draw, sizes):
        spare = draw.choice((2, 2, 3) if self.ranks > 3 else (2, 3, 5, 7))
        self.ranks *= spare
        self.sections["mesh"]["axes"].append(f"spare={spare}")
        if self.sequence:  # pins leave no default for it
            self.sections["shard"].setdefault("sequence", self._named(self.sequence))
        all_sizes = {**sizes, **({"dp": 2, "fsdp": 2} if len(self.data) == 2 else {})}
        if draw.random() < 0.2:
            self.sections["shard"]["embed"] = ["spare"]
        axes = {self.names[name]: all_sizes[name] for name in (*self.data, *self.sequence, "tp")
                if name in self.has or name == "fsdp"}
        return drawn_pins.draw(draw, self.model, {"spare": spare, **axes})

    def _zero(self, draw, sizes):
        stage = draw.choice((0, 1, 2, 3))
        gathered = {"gathered": draw.choice(("free", "keep"))} if stage == 3 else {}
        data = self.data if sizes["dp"] > 1 else []
        lists = [data, data[:1], data[1:] or data] if data else []
        if sizes["cp"] > 1:
            lists += [[*data, *self.sequence], [*self.sequence, *data], self.sequence]
        some = draw.choice(lists)
        named = self.names is OTHER_NAMES or not data or draw.random() < 0.5
        axes = {"axes": [self.names[axis] for axis in some]} if stage and named else {}
        if stage == 3 and axes and len(some) > 1 and beside(some, "hierarchy").random() < 0.7:
            gathered = {"gathered": self._named(beside(some, stage).sample(some, len(some) - 1))}
        reduce = {"reduce": beside(stage, some, sizes).choice(("microbatch", "step"))} if stage > 1 else {}
        if stage == 3:
            how = beside(stage, sizes, "weights").choice(("compute", "int8", "fp8"))
            self.training.weights = {} if how == "compute" else {"weights": how}
        return {"stage": stage, **gathered, **reduce, **self.training.weights, **axes}

    def _offload(self, sizes):
        own = beside(self.model.config, sizes, "offload")
        if own.random() < 0.6:
            return {}
        return {"offload": {"optimizer": True, "window": own.choice(("1 KiB", "30 KiB", "16 MiB"))}}

    def _context(self, draw, sizes):
        by_head = sizes["cp"] * sizes["cq"] * sizes["tp"]
        shares_heads = self.model.heads % by_head == 0 and self.model.kv_heads % by_head == 0
        methods = ["ring", "gathered", "auto", *(["ulysses"] if shares_heads else [])]
        if len(self.sequence) > 1 and shares_heads:
            outer, inner = self._named(self.sequence)
            methods.append({outer: draw.choice(("ring", "gathered")), inner: "ulysses"})
        return {"method": draw.choice(methods), "layout": draw.choice(("zigzag", "block"))}

    def _pipeline(self, draw, stages):
        """Layers fall to stages by balance, or any way."""
        layers = self.model.layers
        two = SCHEDULES_OF_TWO if 2 * stages <= layers else ()
        schedule = draw.choice((*SCHEDULES, *two))
        on_each = 2 if schedule in SCHEDULES_OF_TWO else 1
        keys = {"schedule": schedule}
        if schedule == "interleaved-1f1b":
            on_each = keys["virtual_stages"] = draw.choice((2, 3) if 3 * stages <= layers else (2,))
        if draw.random() < 0.3:
            cuts = sorted(draw.sample(range(1, layers), on_each * stages - 1))
            keys["layers"] = [end - begin for begin, end in zip([0, *cuts], [*cuts, layers])]
        return keys

    @property
    def options(self):
        return [*self.training.options, *(["--share-gpu"] if self.device == "cuda" and self.ranks > 1 else [])]

    def spec(self):
        sections = dict(self.sections)
        if not self.training.keeps_states:
            sections["offload"] = {key: value for key, value in sections.get("offload", {}).items()
                                   if sections["recompute"]["policy"] == "offload" and key != "optimizer"}
        return self.training.spec(self.micro, **sections) + "".join(
            f"[[shard.tensor]]\nname = '{name}'\ndims = '{dims}'\n" for name, dims in self.pins)
