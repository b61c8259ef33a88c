"""What each key of a configuration changes in Transformers' own classes, written to keys.json for test_keys.py.

    python keys_record.py [FAMILY...]    # with Transformers and PyTorch; neither is needed by the test

The configuration of a family is that of transformers_record.py with all keys that its class knows. Each key in turn gets
another value. Recorded is what the class does then: the losses of two steps of SGD, and whether anything at all is
different: these losses, the weights that it starts with, or what dropout does. Or that it takes no such value.
"""
import json
import pathlib
import sys

import transformers_record as reference

FILE = pathlib.Path(__file__).resolve().with_name("keys.json")
# Not of the mathematics: which class it is, how files are kept, who computes attention and in which order.
IDENTITY = {"model_type", "architectures", "torch_dtype", "dtype", "transformers_version", "attn_implementation",
            "reorder_and_upcast_attn"}
SHARED = {"tie_word_embeddings", "pad_token_id", "bos_token_id", "eos_token_id"}
OTHER = {
    "vocab_size": 140, "hidden_size": 64, "n_embd": 60, "hidden_act": "relu", "activation_function": "relu",
    "hidden_activation": "relu", "num_attention_heads": 2, "n_head": 2, "num_key_value_heads": 1, "head_dim": 8,
    "pad_token_id": 7, "no_rope_layer_interval": 2, "rotary_pct": 0.34, "partial_rotary_factor": 0.34,
    "sliding_window": 4, "sliding_window_pattern": 2, "num_hidden_layers": 1, "n_layer": 1, "num_experts_per_tok": 1,
    "n_positions": 50, "clip_qkv": 0.25, "n_inner": 96, "decoder_sparse_step": 2, "n_group": 2, "topk_group": 1,
    "first_k_dense_replace": 2, "moe_layer_freq": 2, "max_window_layers": 0,
}


def other_value(key, value, kind):
    if key in OTHER and OTHER[key] != value:
        return OTHER[key]
    if value == "relu":
        return "gelu"
    if key == "rope_scaling":
        name = "type" if kind in ("olmo", "olmo2") else "rope_type"  # what the classes read
        return {name: "linear", "factor": 2.0} if value is None else None
    if key == "mlp_only_layers":
        return [0]
    if key == "layer_types":
        other = {"full_attention": "sliding_attention", "sliding_attention": "full_attention"}
        return [other[value[0]], *value[1:]]
    if key == "no_rope_layers":
        return [1 - value[0], *value[1:]]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.25 if value else 0.125
    return 3 if value is None else f"{value}x"


def full(config):
    """`config` with all keys of its class, as it would write them."""
    import transformers
    kind = getattr(transformers, config["architectures"][0]).config_class
    common = set(transformers.PretrainedConfig().to_dict()) - SHARED
    written = kind.from_dict(config).to_dict()
    keys = (set(kind().to_dict()) - common) | set(config)
    made = {key: written.get(key, config.get(key)) for key in sorted(keys) if not key.startswith("_")}
    if "output_router_logits" in made:
        made["output_router_logits"] = False  # dialect.py has no loss for even routing
    return made


def run(config):
    """Losses, and what else tells one model from another."""
    import torch
    torch.manual_seed(0)
    family = reference.Family(config)
    start = [round(p.double().abs().sum().item(), 6) for p in family.model.parameters()]
    family.load()
    losses = []
    for number in range(2):
        losses.append(family.step(number)[1])
        for p in family.model.parameters():
            if p.grad is not None:
                p.data -= reference.RATE * p.grad
    tokens = torch.from_numpy(reference.windows(0)[0])
    with torch.no_grad():
        kept = family.model(tokens).logits
        dropped = family.model.train()(tokens).logits
    return losses, [start, bool((kept != dropped).any())]


def record(config):
    base, beside = run(config)
    keys = {}
    for key, value in config.items():
        if key in IDENTITY:
            continue
        changed = other_value(key, value, config["model_type"])
        one = keys[key] = {"value": changed}
        try:
            losses, other = run({**config, key: changed})
        except Exception as error:  # whatever a class makes of a value that it does not expect
            one["refused"] = type(error).__name__
            continue
        one["losses"] = losses
        one["differs"] = other != beside or any(abs(a / b - 1) > 1e-9 for a, b in zip(losses, base))
    return {"config": config, "losses": base, "keys": keys}


def main(names):
    sys.path.remove(str(FILE.parent))  # a module here has the name of one that Transformers needs
    import transformers
    transformers.logging.set_verbosity_error()
    old = json.loads(FILE.read_text()) if names else {}
    made = {name: record(full(reference.FAMILIES[name])) for name in names or reference.FAMILIES}
    FILE.write_text(json.dumps({**old, **made}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
