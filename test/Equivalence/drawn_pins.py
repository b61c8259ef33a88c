"""Pins drawn at random: weights split as nobody would (drawn.py).

Over any axes but those of stages, with priorities, on one tensor or on all of a model. What the rest of the
spec splits may be in the way, and is refused then.
"""

# What each dim of a parameter is, by the letters of SIZES; "3" is queries, keys and values.
_OF_GPT2 = {"wte.weight": "ve", "wpe.weight": "pe", "ln_f.weight": "e", "ln_f.bias": "e", "h.LAYER.ln_1.weight": "e",
            "h.LAYER.ln_1.bias": "e", "h.LAYER.ln_2.weight": "e", "h.LAYER.ln_2.bias": "e",
            "h.LAYER.attn.c_attn.weight": "e3hd", "h.LAYER.attn.c_attn.bias": "3hd",
            "h.LAYER.attn.c_proj.weight": "hde", "h.LAYER.attn.c_proj.bias": "e", "h.LAYER.mlp.c_fc.weight": "ef",
            "h.LAYER.mlp.c_fc.bias": "f", "h.LAYER.mlp.c_proj.weight": "fe", "h.LAYER.mlp.c_proj.bias": "e"}
_LAYER = "model.layers.LAYER."
_OF_LLAMA = {"model.embed_tokens.weight": "ve", "model.norm.weight": "e", _LAYER + "input_layernorm.weight": "e",
             _LAYER + "post_attention_layernorm.weight": "e", _LAYER + "self_attn.q_proj.weight": "hde",
             _LAYER + "self_attn.k_proj.weight": "kde", _LAYER + "self_attn.v_proj.weight": "kde",
             _LAYER + "self_attn.o_proj.weight": "ehd", _LAYER + "mlp.gate_proj.weight": "fe",
             _LAYER + "mlp.up_proj.weight": "fe", _LAYER + "mlp.down_proj.weight": "ef"}
_BIASES = {_LAYER + "self_attn.q_proj.bias": "hd", _LAYER + "self_attn.k_proj.bias": "kd",
           _LAYER + "self_attn.v_proj.bias": "kd"}
_MORE = {"gpt2": {}, "mistral": {}, "qwen2": _BIASES,
         "qwen3": {_LAYER + "self_attn.q_norm.weight": "d", _LAYER + "self_attn.k_norm.weight": "d"},
         "llama": {**_BIASES, _LAYER + "self_attn.o_proj.bias": "e", _LAYER + "mlp.gate_proj.bias": "f",
                   _LAYER + "mlp.up_proj.bias": "f", _LAYER + "mlp.down_proj.bias": "e"}}


def tensors(model):
    """The parameters of `model` and their dims, for all layers at once."""
    found = {**(_OF_GPT2 if model.family == "gpt2" else _OF_LLAMA), **_MORE[model.family]}
    if not model.config["tie_word_embeddings"]:
        found["lm_head.weight"] = "ve"
    return found


def draw(random, model, axes):
    """Names and dims for [[shard.tensor]]. `axes` are names and sizes."""
    known = tensors(model)
    count = random.choice((1, 1, 2, 3, len(known)))
    pins = []
    for name in random.sample(list(known), count):
        layer = random.choice(("*", str(random.randrange(model.layers))))
        pins.append((name.replace("LAYER", layer), _dims(random, model, known[name], dict(axes))))
    return pins


def _dims(random, model, kinds, axes):
    left = random.sample(list(axes), len(axes))
    texts = []
    for kind in kinds:
        whole = {"h": model.heads, "k": model.kv_heads}.get(kind)  # each rank has equally many
        own = []
        for _ in range(random.choice((0, 0, 1, 2))):
            if left and (whole is None or whole % axes[left[-1]] == 0):
                own.append(left.pop())
                whole = whole and whole // axes[own[-1]]
        words = [f'"{axis}"' for axis in own] + (["?"] if random.random() < 0.5 else [])
        texts.append("{" + ", ".join(words) + "}" + random.choice(("", "", "p0", "p1", "p2")))
    return f"[{', '.join(texts)}]"
