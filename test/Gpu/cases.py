"""What is carried to a GPU and what is asked of it there."""

TINY = {"gpt2": "gpt2-tiny", "llama": "llama-tiny"}

# Axes, sections of the spec; the first is what the others are compared with.
LAYOUTS = {
    "one": ({"dp": 1}, {}),
    "dp2": ({"dp": 2}, {}),
    "tp2-sp": ({"tp": 2}, {"shard": {"residual_sequence": ["tp"]}}),
    "zero1": ({"dp": 2}, {"zero": {"stage": 1}}),
    "zero3": ({"dp": 2}, {"zero": {"stage": 3}}),
    "dp2-tp2-zero3": ({"dp": 2, "tp": 2}, {"zero": {"stage": 3},
                                            "shard": {"residual_sequence": ["tp"]}}),
}
TINY_BATCH, TINY_SEQUENCE = 4, 64

# Real shapes whose every instruction is compared with the CPU's, one step: microbatches of
# two sequences of SEQUENCE tokens. Documents begin at a token, some four a sequence.
COMPARED = {
    "gpt2-124m": {"from": "gpt2-124m"},
    "llama-30m": {"from": "llama-30m"},
    "llama-30m-documents": {"from": "llama-30m", "batch": {"documents": "separate"}, "precisions": ["f32", "bf16"],
                            "options": ["--document-begin", "0"]},
}
COMPARED_MICRO = 2

# Options of the launcher beside none; cuDNN multiplies bf16.
COMPARED_WITH = {"f32": [[]], "bf16": [[], ["--cudnn-attention"]], "fp8": [[]]}

PRECISIONS = {"f32": {"compute": "f32"}, "bf16": {"compute": "bf16"},
              "fp8": {"compute": "bf16", "matmul": "fp8"}}

# Whole steps that are timed: sequences of 1024 tokens, one microbatch.
GPT2_XL = {"n_embd": 1600, "n_layer": 48, "n_head": 25}
LLAMA_1B = {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22,
            "num_attention_heads": 32, "num_key_value_heads": 4, "tie_word_embeddings": False}
TIMED = {
    "gpt2-124m": {"from": "gpt2-124m", "changes": {}, "batch": 32, "recompute": "none"},
    "gpt2-124m-apart": {"from": "gpt2-124m", "changes": {}, "batch": 32, "recompute": "none",
                        "epilogues": "never", "against": "gpt2-124m"},
    "gpt2-1.5b": {"from": "gpt2-124m", "changes": GPT2_XL, "batch": 8, "recompute": "selective"},
    "llama-1b": {"from": "llama-30m", "changes": LLAMA_1B, "batch": 8, "recompute": "selective"},
    "llama-1b-fp8": {"from": "llama-30m", "changes": LLAMA_1B, "batch": 8, "recompute": "selective",
                     "precision": "fp8", "against": "llama-1b"},
}
SEQUENCE = 1024
NO_DROPOUT = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "attention_dropout": 0.0}
OPTIMIZER = {"beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1, "clip_grad_norm": 1.0}
LEARNING_RATE = 3e-4


def config(example, changes):
    """An example's config.json with changes; dropout keys only where it has them."""
    return {**example, **{k: v for k, v in NO_DROPOUT.items() if k in example}, **changes}
