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


def logits(config, weights, tokens, kernels, drop):
    """drop(name, rate) is the function that zeroes with that rate (or does nothing);
    the name is that of the module in the original code."""
    epsilon = config.get("layer_norm_epsilon", 1e-5)
    activation = kernels.activation(config.get("activation_function", "gelu_new"))
    residual_rate = config.get("resid_pdrop", 0.1)

    def norm(name, x):
        return kernels.layer_norm(x, weights[name + ".weight"],
                                  weights[name + ".bias"], epsilon)

    x = weights["wte.weight"][tokens]
    x = x + weights["wpe.weight"][:tokens.shape[1]]
    x = drop("drop", config.get("embd_pdrop", 0.1))(x)
    for layer in range(config["n_layer"]):
        block = f"h.{layer}."
        y = attention(config, weights, block + "attn", layer,
                      norm(block + "ln_1", x), kernels, drop)
        x = x + drop(block + "attn.resid_dropout", residual_rate)(y)
        y = norm(block + "ln_2", x)
        y = y @ weights[block + "mlp.c_fc.weight"] + weights[block + "mlp.c_fc.bias"]
        y = activation(y)
        y = y @ weights[block + "mlp.c_proj.weight"] + weights[block + "mlp.c_proj.bias"]
        x = x + drop(block + "mlp.dropout", residual_rate)(y)
    head = weights.get("lm_head.weight", weights["wte.weight"])
    return norm("ln_f", x) @ head.t()
