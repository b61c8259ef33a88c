"""Models and specs drawn at random, of all that may stand together (test_random_specs.py).

    draw = random.Random(7)
    model = drawn.Model(draw)
    training = drawn.Training(draw)
    layout = drawn.Layout(draw, model, training)
    layout.spec(), training.spec()   # on a mesh; the same on one rank

A layout without pins is meant to be legal: what the compiler refuses is a fault of it or of this file.
"""
import configs
import tools

SIZES = (1, 1, 2, 2, 3, 4)
MOST_RANKS = 12
SCHEDULES = ("gpipe", "1f1b", "zb-h1", "zb-h2", "auto")
SCHEDULES_OF_TWO = ("interleaved-1f1b", "zb-v", "dualpipe-v")  # stages on each rank
# Axes that no default knows, and the rules that say what they split.
OTHER_NAMES = {"pp": "stage", "dp": "replica", "fsdp": "pod", "cp": "part", "tp": "model"}

# The last one goes by signs.
OPTIMIZERS = ({"kind": "adamw", "epsilon": 1e-2}, {"kind": "sgd"},
              {"kind": "sgd", "momentum": 0.9, "nesterov": True}, {"kind": "lion"})

# Parameters that are pinned, and how many dims they have.
PINNED = {
    "gpt2": [("h.LAYER.mlp.c_fc.weight", 2), ("h.LAYER.mlp.c_proj.weight", 2), ("h.LAYER.mlp.c_fc.bias", 1),
             ("h.LAYER.attn.c_proj.weight", 3), ("h.LAYER.ln_1.weight", 1), ("wte.weight", 2), ("ln_f.bias", 1)],
    "llama": [("model.layers.LAYER.mlp.up_proj.weight", 2), ("model.layers.LAYER.mlp.down_proj.weight", 2),
              ("model.layers.LAYER.self_attn.q_proj.weight", 3), ("model.layers.LAYER.self_attn.o_proj.weight", 3),
              ("model.layers.LAYER.input_layernorm.weight", 1), ("model.embed_tokens.weight", 2),
              ("model.norm.weight", 1)]}


class Model:
    def __init__(self, draw):
        self.family = draw.choice(list(configs.ALL))
        self.layers = draw.choice((2, 3, 4, 5, 6))
        self.kv_heads = draw.choice((1, 2, 3, 4))
        self.heads = self.kv_heads * draw.choice((1, 2, 3))
        width = draw.choice((4, 6, 8, 10, 16))
        vocabulary = draw.choice((128, 131, 133))
        shared = {"vocab_size": vocabulary, "tie_word_embeddings": draw.random() < 0.6}
        change = self._gpt2 if self.family == "gpt2" else self._llama
        self.config = {**configs.ALL[self.family], **shared, **change(draw, width)}

    def _gpt2(self, draw, width):
        self.kv_heads = self.heads
        dropped = {key: draw.choice((0.0, 0.1)) for key in ("embd_pdrop", "attn_pdrop", "resid_pdrop")}
        return {"n_head": self.heads, "n_embd": self.heads * width, "n_layer": self.layers,
                "n_inner": draw.choice((40, 52, 97)), **dropped,
                "activation_function": draw.choice(("gelu_new", "gelu", "relu"))}

    def _llama(self, draw, width):
        changes = {"num_attention_heads": self.heads, "num_key_value_heads": self.kv_heads,
                   "num_hidden_layers": self.layers, "intermediate_size": draw.choice((40, 51, 72)),
                   "head_dim": width, "hidden_size": draw.choice((24, 48, 50))}
        if self.family == "qwen2":  # it has no head_dim
            del changes["head_dim"]
            changes |= {"hidden_size": self.heads * width, "max_window_layers": draw.choice((0, 1, self.layers))}
        return changes


class Training:
    """What is computed, wherever it is."""

    def __init__(self, draw):
        self.batch, self.sequence = draw.choice((6, 12, 24)), draw.choice((8, 16, 23, 32))
        self.documents = draw.choice(("joined", {key: draw.choice(values) for key, values in (
            ("documents", ("joined", "separate")), ("positions", ("sequence", "document")),
            ("document_end_loss", (True, False)))}))
        self.optimizer = {"clip_grad_norm": draw.choice((0, 0.05, 1.0)), **draw.choice(OPTIMIZERS)}

    @property
    def options(self):
        """Of the launcher; a plan that does not look at documents refuses to be told of them."""
        keys = self.documents if isinstance(self.documents, dict) else {}
        looks = any(keys.get(key, usual) != usual for key, usual in (
            ("documents", "joined"), ("positions", "sequence"), ("document_end_loss", True)))
        return ["--document-begin", 5] if looks else []

    def spec(self, micro=None, **sections):
        return tools.spec(self.batch, micro or self.batch, self.sequence, documents=self.documents,
                          **{"mesh": {"axes": []}, "recompute": {"policy": "none"}, "optimizer": self.optimizer,
                             **sections})


class Layout:
    """Who computes it."""

    def __init__(self, draw, model, training, device="cpu", most_ranks=MOST_RANKS):
        self.model, self.training, self.device = model, training, device
        sizes = self._sizes(draw, most_ranks)
        self.ranks = sizes["pp"] * sizes["dp"] * sizes["cp"] * sizes["tp"]
        self.micro = draw.choice([n for n in range(1, training.batch + 1)
                                  if training.batch % (n * sizes["dp"]) == 0 and n <= 4])
        self.names = OTHER_NAMES if draw.random() < 0.25 else {name: name for name in OTHER_NAMES}
        self.sections = {"mesh": {"axes": self._axes(draw, sizes)}, "shard": self._rules(draw, sizes),
                         "recompute": {"policy": draw.choice(("none", "selective", "full"))},
                         "overlap": {"collectives": draw.choice(("auto", "always", "never")),
                                     "bucket": draw.choice(("1 KiB", "10 KiB", "25 MiB"))},
                         "target": {"epilogues": draw.choice(("auto", "always", "never")),
                                    "merge_launches": draw.choice(("auto", "always", "never")),
                                    **({"device": "cuda", "arch": "sm_80"} if device == "cuda" else {})}}
        self.pins = self._pins(draw) if draw.random() < 0.3 else []
        if sizes["dp"] > 1:
            self.sections["zero"] = self._zero(draw)
        if sizes["cp"] > 1:
            self.sections["context"] = self._context(draw, sizes)
        if sizes["pp"] > 1:
            self.sections["pipeline"] = self._pipeline(draw, sizes["pp"])

    def _sizes(self, draw, most_ranks):
        model, batch = self.model, self.training.batch
        while True:
            sizes = {name: draw.choice(SIZES) for name in ("pp", "dp", "cp", "tp")}
            tp = sizes["tp"]
            heads_fit = model.heads % tp == 0 and (model.kv_heads % tp == 0 or tp % model.kv_heads == 0)
            ranks = sizes["pp"] * sizes["dp"] * sizes["cp"] * tp
            if heads_fit and sizes["pp"] <= model.layers and batch % sizes["dp"] == 0 and ranks <= most_ranks:
                return sizes

    def _axes(self, draw, sizes):
        names = [name for name, size in sizes.items() if size > 1 or draw.random() < 0.1]
        if draw.random() < 0.3:
            draw.shuffle(names)
        self.has = set(names)
        self.data = ["dp", "fsdp"] if sizes["dp"] == 4 and draw.random() < 0.5 else ["dp"]
        axes = {**sizes, **({"dp": 2, "fsdp": 2} if len(self.data) == 2 else {})}
        names = [part for name in names for part in (self.data if name == "dp" else [name])]
        return [f"{self.names[name]}={axes[name]}" for name in names]

    def _rules(self, draw, sizes):
        rules = {}
        if self.names is OTHER_NAMES:
            split = {"batch": self.data, "heads": ["tp"], "ffn": ["tp"], "vocab": ["tp"], "sequence": ["cp"],
                     "layers": ["pp"]}
            rules = {dim: [self.names[axis] for axis in axes] for dim, axes in split.items() if axes[0] in self.has}
        if sizes["tp"] > 1 and draw.random() < 0.5:
            more = ["cp", "tp"] if sizes["cp"] > 1 and draw.random() < 0.5 else ["tp"]
            rules["residual_sequence"] = [self.names[axis] for axis in more]
            if "cp" in more:
                rules["sequence"] = [self.names["cp"]]
        if sizes["tp"] > 1 and draw.random() < 0.2:
            rules[draw.choice(("ffn", "vocab"))] = []
        return rules

    def _pins(self, draw):
        """Weights split as nobody would: over any axes but those of stages and sequences, and one of their
        own. What rules split elsewhere may be in the way, and is refused then."""
        self.sections["mesh"]["axes"].append("spare=2")
        axes = ["spare", *(self.names[name] for name in (*self.data, "tp") if name in self.has or name == "fsdp")]
        if "cp" in self.has:  # pins leave no default for it
            self.sections["shard"].setdefault("sequence", [self.names["cp"]])
        pins = []
        for name, dims in draw.sample(PINNED["gpt2" if self.model.family == "gpt2" else "llama"], draw.choice((1, 2))):
            left = draw.sample(axes, len(axes))
            parts = [[f'"{left.pop()}"' for _ in range(min(draw.choice((0, 0, 1, 2)), len(left)))] for _ in range(dims)]
            opened = [part + ["?"] if draw.random() < 0.4 else part for part in parts]
            layer = draw.choice(("*", str(draw.randrange(self.model.layers))))
            pins.append((name.replace("LAYER", layer), f"[{', '.join('{' + ', '.join(part) + '}' for part in opened)}]"))
        self.ranks *= 2
        return pins

    def _zero(self, draw):
        stage = draw.choice((0, 1, 2, 3))
        gathered = {"gathered": draw.choice(("free", "keep"))} if stage == 3 else {}
        some = draw.choice((self.data, self.data[:1], self.data[1:] or self.data))
        named = self.names is OTHER_NAMES or draw.random() < 0.5
        axes = {"axes": [self.names[axis] for axis in some]} if stage and named else {}
        return {"stage": stage, **gathered, **axes}

    def _context(self, draw, sizes):
        by_head = sizes["cp"] * sizes["tp"]
        shares_heads = self.model.heads % by_head == 0 and self.model.kv_heads % by_head == 0
        methods = ("ring", "gathered", "auto", *(("ulysses",) if shares_heads else ()))
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
        return self.training.spec(self.micro, **self.sections) + "".join(
            f"[[shard.tensor]]\nname = '{name}'\ndims = '{dims}'\n" for name, dims in self.pins)
