"""The Llama family (Touvron et al., arXiv 2302.13971): Llama, Mistral, Qwen2, Qwen3,
Mixtral, Qwen2-MoE, Qwen3-MoE, OLMoE and dots.llm1 (mixture.py), on a dictionary of weights named as in Hugging Face files, projections [out, in]."""
import math

import torch

import mixture
import rotary


def _head_dim(config):
    return (config.get("head_dim")
            or config["hidden_size"] // config["num_attention_heads"])


def _kv_heads(config):
    return config.get("num_key_value_heads") or config["num_attention_heads"]


def _attention_biases(config):
    """Projections that have a bias."""
    if config["model_type"] in ("qwen2", "qwen2_moe"):
        return {"q_proj", "k_proj", "v_proj"}
    if config["model_type"] in ("llama", "olmoe", "qwen3", "qwen3_moe", "dots1") and config.get("attention_bias"):
        return {"q_proj", "k_proj", "v_proj", "o_proj"}
    return set()


def _window(config, layer):
    """Tokens a query sees in this layer, 0 for all."""
    window = config.get("sliding_window") or 0
    if config["model_type"] in ("mistral", "mixtral"):
        return window
    if config["model_type"] == "dots1":
        return window if layer >= config.get("max_window_layers", 62) else 0
    if config["model_type"] in ("qwen2", "qwen3") and config.get("use_sliding_window"):
        return window if layer >= config["max_window_layers"] else 0
    return 0


def parameter_shapes(config):
    """Name -> shape of every trained tensor; a tied head has none of its own."""
    embed, inner = config["hidden_size"], config["intermediate_size"]
    depth, vocab = _head_dim(config), config["vocab_size"]
    q_width = config["num_attention_heads"] * depth
    kv_width = _kv_heads(config) * depth
    shapes = {"model.embed_tokens.weight": (vocab, embed)}

    def projection(name, out, into, bias):
        shapes[name + ".weight"] = (out, into)
        if bias:
            shapes[name + ".bias"] = (out,)

    biases = _attention_biases(config)
    mlp_bias = bool(config["model_type"] == "llama" and config.get("mlp_bias"))
    for layer in range(config["num_hidden_layers"]):
        block = f"model.layers.{layer}."
        for name, out, into in (("q_proj", q_width, embed), ("k_proj", kv_width, embed),
                                ("v_proj", kv_width, embed), ("o_proj", embed, q_width)):
            projection(block + "self_attn." + name, out, into, name in biases)
        if config["model_type"].startswith("qwen3") or config["model_type"] == "dots1":
            shapes[block + "self_attn.q_norm.weight"] = (depth,)
            shapes[block + "self_attn.k_norm.weight"] = (depth,)
        if config["model_type"] == "olmoe":
            shapes[block + "self_attn.q_norm.weight"] = (q_width,)
            shapes[block + "self_attn.k_norm.weight"] = (kv_width,)
        if mixture.has_experts(config, layer):
            shapes |= mixture.parameter_shapes(config, block)
        else:
            projection(block + "mlp.gate_proj", inner, embed, mlp_bias)
            projection(block + "mlp.up_proj", inner, embed, mlp_bias)
            projection(block + "mlp.down_proj", embed, inner, mlp_bias)
        shapes[block + "input_layernorm.weight"] = (embed,)
        shapes[block + "post_attention_layernorm.weight"] = (embed,)
    shapes["model.norm.weight"] = (embed,)
    if not config.get("tie_word_embeddings", False):
        shapes["lm_head.weight"] = (vocab, embed)
    return shapes


def _project(weights, name, x):
    y = x @ weights[name + ".weight"].t()
    bias = weights.get(name + ".bias")
    return y if bias is None else y + bias


def attention(config, weights, name, layer, x, positions, kernels, drop):
    batch, length, _ = x.shape
    depth, epsilon = _head_dim(config), config.get("rms_norm_eps", 1e-6)

    def heads(part, count):
        y = _project(weights, f"{name}.{part}_proj", x)
        norm = weights.get(f"{name}.{part}_norm.weight")
        if norm is not None:  # over a head, or over all
            y = kernels.rms_norm(y.view(batch, length, -1, len(norm)), norm, epsilon)
        return y.view(batch, length, count, depth).transpose(1, 2)

    q = rotary.rotate(heads("q", config["num_attention_heads"]), *positions)
    k = rotary.rotate(heads("k", _kv_heads(config)), *positions)
    v = heads("v", _kv_heads(config))
    out = kernels.attention(q, k, v, 1 / math.sqrt(depth), _window(config, layer),
                            drop(name + ".attention_dropout",
                                 config.get("attention_dropout", 0.0)))
    return _project(weights, name + ".o_proj", out.transpose(1, 2).flatten(2))


def layer_name(layer):
    """What names of its weights begin with."""
    return f"model.layers.{layer}."


def block(config, weights, layer, x, positions, kernels, drop):
    """One layer: x before it to x after it."""
    epsilon, name = config.get("rms_norm_eps", 1e-6), layer_name(layer)
    activation = kernels.activation(config.get("hidden_act", "silu"))
    y = kernels.rms_norm(x, weights[name + "input_layernorm.weight"], epsilon)
    x = x + attention(config, weights, name + "self_attn", layer, y, positions,
                      kernels, drop)
    y = kernels.rms_norm(x, weights[name + "post_attention_layernorm.weight"], epsilon)
    if mixture.has_experts(config, layer):
        return x + mixture.mixture(config, weights, name, y, activation)
    gate = activation(_project(weights, name + "mlp.gate_proj", y))
    y = gate * _project(weights, name + "mlp.up_proj", y)
    return x + _project(weights, name + "mlp.down_proj", y)


def logits(config, weights, tokens, kernels, drop, positions=None):
    """`positions` are rotary.tables of at least the tokens' length, made here when
    absent."""
    epsilon = config.get("rms_norm_eps", 1e-6)
    x = torch.nn.functional.embedding(tokens, weights["model.embed_tokens.weight"],
                                      padding_idx=config.get("pad_token_id"))
    if positions is None:
        tables = rotary.tables(config, _head_dim(config), tokens.shape[1], x.dtype)
        positions = [kernels.by_position(table, tokens.shape[1]).unsqueeze(-3) for table in tables]
    for layer in range(config["num_hidden_layers"]):
        x = block(config, weights, layer, x, positions, kernels, drop)
    head = weights.get("lm_head.weight", weights["model.embed_tokens.weight"])
    return kernels.rms_norm(x, weights["model.norm.weight"], epsilon) @ head.t()
