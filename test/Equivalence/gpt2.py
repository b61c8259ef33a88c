"""GPT-2 (Radford et al., 2019) on a dictionary of weights named as in Hugging Face
files. A projection is stored [in, out], as the original code does."""
import math


def parameter_shapes(config):
    """Name -> shape of every trained tensor; a tied head has none of its own."""
    embed, vocab = config["n_embd"], config["vocab_size"]
    inner = config.get("n_inner") or 4 * embed
    shapes = {"wte.weight": (vocab, embed),
              "wpe.weight": (config["n_positions"], embed)}

    def affine(name, *weight):
        shapes[name + ".weight"] = weight
        shapes[name + ".bias"] = weight[-1:]

    for layer in range(config["n_layer"]):
        block = f"h.{layer}."
        affine(block + "ln_1", embed)
        affine(block + "attn.c_attn", embed, 3 * embed)
        affine(block + "attn.c_proj", embed, embed)
        affine(block + "ln_2", embed)
        affine(block + "mlp.c_fc", embed, inner)
        affine(block + "mlp.c_proj", inner, embed)
    affine("ln_f", embed)
    if not config.get("tie_word_embeddings", True):
        shapes["lm_head.weight"] = (vocab, embed)
    return shapes


def attention(config, weights, name, layer, x, kernels, drop):
    batch, length, embed = x.shape
    heads = config["n_head"]
    depth = embed // heads
    qkv = x @ weights[name + ".c_attn.weight"] + weights[name + ".c_attn.bias"]
    q, k, v = (part.view(batch, length, heads, depth).transpose(1, 2)
               for part in qkv.split(embed, dim=2))
    scale = 1.0
    if config.get("scale_attn_weights", True):
        scale /= math.sqrt(depth)
    if config.get("scale_attn_by_inverse_layer_idx", False):
        scale /= layer + 1
    attention_drop = drop(name + ".attn_dropout", config.get("attn_pdrop", 0.1))
    out = kernels.attention(q, k, v, scale, 0, attention_drop)
    out = out.transpose(1, 2).reshape(batch, length, embed)
    return out @ weights[name + ".c_proj.weight"] + weights[name + ".c_proj.bias"]


def norm(config, weights, name, x, kernels):
    return kernels.layer_norm(x, weights[name + ".weight"], weights[name + ".bias"],
                              config.get("layer_norm_epsilon", 1e-5))


def layer_name(layer):
    """What names of its weights begin with."""
    return f"h.{layer}."


def block(config, weights, layer, x, kernels, drop):
    """One layer: x before it to x after it."""
    activation = kernels.activation(config.get("activation_function", "gelu_new"))
    residual_rate = config.get("resid_pdrop", 0.1)
    name = layer_name(layer)
    y = attention(config, weights, name + "attn", layer,
                  norm(config, weights, name + "ln_1", x, kernels), kernels, drop)
    x = x + drop(name + "attn.resid_dropout", residual_rate)(y)
    y = norm(config, weights, name + "ln_2", x, kernels)
    y = y @ weights[name + "mlp.c_fc.weight"] + weights[name + "mlp.c_fc.bias"]
    y = activation(y)
    y = y @ weights[name + "mlp.c_proj.weight"] + weights[name + "mlp.c_proj.bias"]
    return x + drop(name + "mlp.dropout", residual_rate)(y)


def logits(config, weights, tokens, kernels, drop):
    """drop(name, rate) is the function that zeroes with that rate (or does nothing);
    the name is that of the module in the original code."""
    x = weights["wte.weight"][tokens]
    x = x + kernels.by_position(weights["wpe.weight"], tokens.shape[1])
    x = drop("drop", config.get("embd_pdrop", 0.1))(x)
    for layer in range(config["n_layer"]):
        x = block(config, weights, layer, x, kernels, drop)
    head = weights.get("lm_head.weight", weights["wte.weight"])
    return norm(config, weights, "ln_f", x, kernels) @ head.t()
