"""What is carried to a GPU and what is asked of it there."""

TINY = {"gpt2": "gpt2-tiny", "llama": "llama-tiny", "mixtral": "mixtral-tiny"}

CP = {"shard": {"sequence": ["cp"]}}

# Axes, sections of the spec; the first is what the others are compared with.
LAYOUTS = {
    "one": ({"dp": 1}, {}),
    "dp2": ({"dp": 2}, {}),
    "tp2-sp": ({"tp": 2}, {"shard": {"residual_sequence": ["tp"]}}),
    "tp2-chunks": ({"tp": 2}, {"shard": {"residual_sequence": ["tp"]},
                               "overlap": {"collectives": "always", "matmul": "always", "chunks": 2}}),
    "zero1": ({"dp": 2}, {"zero": {"stage": 1}}),
    "zero3": ({"dp": 2}, {"zero": {"stage": 3}}),
    "zero1-offloaded": ({"dp": 2}, {"zero": {"stage": 1}, "recompute": {"policy": "offload"},
                                    "offload": {"optimizer": True, "window": "16 KiB"}}),
    "dp2-tp2-zero3": ({"dp": 2, "tp": 2}, {"zero": {"stage": 3},
                                            "shard": {"residual_sequence": ["tp"]}}),
    **{f"cp2-{method}-{layout}": ({"cp": 2}, {"context": {"method": method, "layout": layout}, **CP})
       for method, layout in (("ring", "zigzag"), ("gathered", "block"), ("ulysses", "block"))},
    "cp4-ring-block": ({"cp": 4}, {"context": {"method": "ring", "layout": "block"}, **CP}),
    **{f"pp2-{schedule}": ({"pp": 2}, {"pipeline": {"schedule": schedule}}) for schedule in ("1f1b", "zb-h1")},
    "pp2-cp2-ring": ({"pp": 2, "cp": 2}, {"context": {"method": "ring", "layout": "zigzag"}, **CP}),
}
EXCHANGE = {"experts": {"exchange": "all_to_all", "bound": 1.0}}
# Those of a mixture of experts, the first beside them. With a bound of 1 some tokens go in a further round. Two layers a
# stage have exchanges enough for one word.
TINY_CHANGES = {"mixtral": {"num_hidden_layers": 4}}
EXPERT_LAYOUTS = {
    "ep2": ({"ep": 2}, {"experts": {"exchange": "gathered"}}),
    "ep2-exchanged": ({"ep": 2}, EXCHANGE),
    "pp2-ep2-exchanged": ({"pp": 2, "ep": 2}, EXCHANGE),
}
TINY_BATCH, TINY_SEQUENCE = 4, 64

# Tiny models whose kernels a sanitizer follows.
SANITIZED = ["gpt2-one-cuda", "llama-dp2-tp2-zero3-cuda"]

# Real shapes whose every instruction is compared with the CPU's: one step of two sequences of
# SEQUENCE tokens, on one rank where "axes" does not say more. Documents begin at a token, some four
# a sequence. In a ring, keys have positions of their own, and attention gives f32.
MIXTURE = {"hidden_size": 1024, "intermediate_size": 328, "num_local_experts": 32, "num_experts_per_tok": 6,
           "num_attention_heads": 16, "num_key_value_heads": 4, "max_position_embeddings": 1024}
COMPARED = {
    "gpt2-124m": {"from": "gpt2-124m"},
    "llama-30m": {"from": "llama-30m"},
    "llama-30m-documents": {"from": "llama-30m", "sections": {"batch": {"documents": "separate"}},
                            "precisions": ["f32", "bf16"], "options": ["--document-begin", "0"]},
    "llama-30m-ring": {"from": "llama-30m", "axes": {"cp": 2}, "precisions": ["f32", "bf16"],
                       "sections": {"context": {"method": "ring", "layout": "zigzag"}, **CP},
                       "options": ["--share-gpu"]},
    # Weights are cast once a step, by launches of their own; tile kernels also find maxima.
    "llama-30m-delayed": {"from": "llama-30m", "precisions": ["fp8-delayed"],
                          "sections": {"precision": {"weight_casts": "step"}}},
    # Weights travel as i8, gradients as pairs of 4 bits, which kernels make and make wide again.
    "llama-30m-int8": {"from": "llama-30m", "axes": {"dp": 2}, "micro": 1, "precisions": ["f32"], "options": ["--share-gpu"],
                       "sections": {"zero": {"stage": 3, "weights": "int8", "gradients": "int4"}}},
    # Experts: on one rank, and on two that send each other tokens, in as many rounds as it takes.
    "mixtral": {"from": "mixtral", "changes": MIXTURE, "precisions": ["bf16", "f32"],
                "sections": {"experts": {"capacity": 1.0}}},
    "mixtral-exchanged": {"from": "mixtral", "changes": MIXTURE, "precisions": ["bf16"], "axes": {"ep": 2},
                          "micro": 1, "sections": EXCHANGE, "options": ["--share-gpu"]},
    # Norms whose rows a block walks in loops, their gradients too: wider than 8192.
    "llama-wide": {"from": "llama-30m", "precisions": ["bf16"],
                   "changes": {"hidden_size": 12288, "intermediate_size": 512, "num_hidden_layers": 1,
                               "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64,
                               "vocab_size": 512}},
}
COMPARED_MICRO = 2

# Options of the launcher beside none: who runs attention, which is bf16's alone.
COMPARED_WITH = {"f32": [[]], "bf16": [[], ["--no-wgmma-attention"], ["--cudnn-attention"]], "fp8": [[]],
                 "fp8-delayed": [[]]}

PRECISIONS = {"f32": {"compute": "f32"}, "bf16": {"compute": "bf16"},
              "fp8": {"compute": "bf16", "matmul": "fp8"},
              "fp8-delayed": {"compute": "bf16", "matmul": "fp8", "scaling": "delayed"}}
USUAL_PRECISIONS = ["bf16", "fp8", "f32"]  # what speed is measured in comes first
ORDER_OF_PRECISIONS = [*USUAL_PRECISIONS, "fp8-delayed"]

# Whole steps that are timed, as a user would have them for MACHINE: what is recomputed is chosen to
# fit its memory. The decisive ones first. "micro" is the whole batch where it is not given. With
# "apart" a plan without epilogues is timed beside. "against": the case that has the same rival;
# None: none is timed.
GPT2_XL = {"n_embd": 1600, "n_layer": 48, "n_head": 25}
LLAMA_1B = {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22,
            "num_attention_heads": 32, "num_key_value_heads": 4, "tie_word_embeddings": False}
# Two layers of Qwen3-30B-A3B, as far as experts are concerned.
QWEN3_30B_LAYERS = {"hidden_size": 2048, "intermediate_size": 768, "num_local_experts": 128, "num_experts_per_tok": 8,
                    "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000,
                    "max_position_embeddings": 4096}
TIMED = {
    "gpt2-1.5b": {"from": "gpt2-124m", "changes": GPT2_XL, "batch": 8, "apart": True},
    "gpt2-1.5b-32": {"from": "gpt2-124m", "changes": GPT2_XL, "batch": 32, "micro": "auto"},
    "gpt2-124m": {"from": "gpt2-124m", "changes": {}, "batch": 32, "apart": True},
    "llama-1b": {"from": "llama-30m", "changes": LLAMA_1B, "batch": 8},
    "llama-1b-fp8": {"from": "llama-30m", "changes": LLAMA_1B, "batch": 8, "precision": "fp8",
                     "against": "llama-1b"},
    "llama-1b-fp8-delayed": {"from": "llama-30m", "changes": LLAMA_1B, "batch": 8,
                             "precision": "fp8-delayed", "against": "llama-1b"},
    "llama-1b-offloaded": {"from": "llama-30m", "changes": LLAMA_1B, "batch": 8, "against": "llama-1b",
                           "sections": {"offload": {"optimizer": True}}},
    "mixture": {"from": "mixtral", "changes": QWEN3_30B_LAYERS, "batch": 8, "against": None},
}
MACHINE = "h100x8"
SEQUENCE = 1024

# Models of one layer that are next to nothing but attention: as many tokens in each, and 2048
# columns of heads, which is how its libraries are usually compared.
ATTENTION_TOKENS = 16384
ATTENTION = {
    f"attention-{width}-{sequence}": {
        "from": "llama-30m", "batch": ATTENTION_TOKENS // sequence, "sequence": sequence,
        "changes": {"hidden_size": 2048, "intermediate_size": 64, "num_hidden_layers": 1, "head_dim": width,
                    "num_attention_heads": 2048 // width, "num_key_value_heads": 2048 // width, "vocab_size": 512,
                    "max_position_embeddings": sequence}}
    for width in (64, 128) for sequence in (4096, 1024, 16384)}
NO_DROPOUT = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "attention_dropout": 0.0}
OPTIMIZER = {"beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1, "clip_grad_norm": 1.0}
LEARNING_RATE = 3e-4

# TFLOP/s of dense products by NVIDIA's data sheets, the first name that nvidia-smi's has in it.
NOMINAL_TFLOPS = {
    "bf16": {"H100 PCIe": 756.5, "H100 NVL": 835.5, "H100": 989.4, "H200": 989.4, "A100": 312.0, "B200": 2250.0},
    "fp8": {"H100 PCIe": 1513.0, "H100 NVL": 1671.0, "H100": 1978.9, "H200": 1978.9, "B200": 4500.0},
}


def nominal_tflops(kind, gpu):
    """None for a GPU that is not in the table."""
    return next((x for name, x in NOMINAL_TFLOPS[kind].items() if name in gpu), None)


def config(example, changes):
    """An example's config.json with changes; dropout keys only where it has them."""
    return {**example, **{k: v for k, v in NO_DROPOUT.items() if k in example}, **changes}


# Of a small bundle, which an emulator runs.
SMALL = {"compared": {"gpt2-124m": ["bf16", "fp8"], "llama-30m-documents": ["bf16"],
                      "llama-30m-ring": ["bf16"], "llama-30m-delayed": ["fp8-delayed"], "llama-30m-int8": ["f32"], "mixtral-exchanged": ["bf16"]},
         "layouts": ["one", "dp2-tp2-zero3", "zero1-offloaded", "ep2-exchanged"], "timed": ["gpt2-124m", "llama-1b-fp8", "mixture"],
         "attention": ["attention-64-1024"]}


def sequence(small, case=None):
    return TINY_SEQUENCE if small else (case or {}).get("sequence", SEQUENCE)


def model(case, small):
    """Example and changes of a case; a small bundle, for tests in an emulator, has tiny ones."""
    if not small:
        return TINY.get(case["from"], case["from"]), case.get("changes", {})
    return TINY[case["from"].split("-")[0]], {}


def layouts(family, small):
    """What a tiny model is run as."""
    every = {"one": LAYOUTS["one"], **EXPERT_LAYOUTS} if family == "mixtral" else LAYOUTS
    return {name: layout for name, layout in every.items() if not small or name in SMALL["layouts"]}


def attention(small):
    return SMALL["attention"] if small else list(ATTENTION)


def batch(case, small):
    return 2 if small else case["batch"]
