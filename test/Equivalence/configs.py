"""Tiny models with every option on. Sizes are odd on purpose: nothing divides a
vector, a tile or a cache line."""
import numpy as np

GPT2 = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 131,
    "n_positions": 40, "n_embd": 48, "n_layer": 2, "n_head": 3, "n_inner": 104,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
    "initializer_range": 0.02, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
    "resid_pdrop": 0.0, "tie_word_embeddings": True, "torch_dtype": "float32",
}

PADDING = 15  # a token that the corpus has more often than others

_LLAMA = {
    "vocab_size": 131, "max_position_embeddings": 64, "hidden_size": 48,
    "intermediate_size": 72, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "initializer_range": 0.02, "attention_dropout": 0.0,
    "torch_dtype": "float32",
}

LLAMA = {
    **_LLAMA, "model_type": "llama", "architectures": ["LlamaForCausalLM"],
    "head_dim": 16, "attention_bias": True, "mlp_bias": True,
    "tie_word_embeddings": False, "pad_token_id": PADDING,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                     "high_freq_factor": 4.0, "original_max_position_embeddings": 16},
}

QWEN2 = {
    **_LLAMA, "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"],
    "tie_word_embeddings": True, "use_sliding_window": True, "sliding_window": 5,
    "max_window_layers": 1, "rope_scaling": {"rope_type": "linear", "factor": 2.0},
}

QWEN3 = {
    **_LLAMA, "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"],
    "head_dim": 16, "attention_bias": False, "tie_word_embeddings": True,
    "use_sliding_window": False, "rope_theta": 1000000.0,
    "original_max_position_embeddings": 16, "pad_token_id": PADDING - 131,
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0},
}

MISTRAL = {
    **_LLAMA, "model_type": "mistral", "architectures": ["MistralForCausalLM"],
    "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 12,
    "sliding_window": 7, "tie_word_embeddings": False,
}

MIXTRAL = {
    **_LLAMA, "model_type": "mixtral", "architectures": ["MixtralForCausalLM"],
    "tie_word_embeddings": False, "intermediate_size": 40, "num_local_experts": 4, "num_experts_per_tok": 2,
    "sliding_window": None,
}

# A layer without experts between two that have some.
QWEN3_MOE = {
    **_LLAMA, "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "num_hidden_layers": 3,
    "head_dim": 16, "tie_word_embeddings": True, "num_experts": 8, "num_experts_per_tok": 3,
    "moe_intermediate_size": 20, "norm_topk_prob": False, "mlp_only_layers": [1],
}

# Names as Qwen3-MoE has them; a shared expert beside, and a layer without any.
QWEN2_MOE = {
    **_LLAMA, "model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"], "num_hidden_layers": 3,
    "tie_word_embeddings": False, "num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 20,
    "shared_expert_intermediate_size": 28, "norm_topk_prob": False, "mlp_only_layers": [1],
}

# Norms of q and k over all heads.
OLMOE = {
    **_LLAMA, "model_type": "olmoe", "architectures": ["OlmoeForCausalLM"], "tie_word_embeddings": False,
    "intermediate_size": 40, "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": True, "clip_qkv": None,
    "pad_token_id": PADDING,
}

# A bias chooses experts of the two best groups; the first layer has none.
DOTS1 = {
    **_LLAMA, "model_type": "dots1", "architectures": ["Dots1ForCausalLM"], "num_hidden_layers": 3, "head_dim": 16,
    "tie_word_embeddings": False, "n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 20,
    "n_shared_experts": 2, "n_group": 4, "topk_group": 2, "first_k_dense_replace": 1, "norm_topk_prob": True,
    "routed_scaling_factor": 2.5, "sliding_window": None,
}

# Families that follow Transformers' classes in test_transformers.py and test_export.py; the oracle has none of them.
GEMMA = {
    **_LLAMA, "model_type": "gemma", "architectures": ["GemmaForCausalLM"], "head_dim": 16, "num_key_value_heads": 1,
    "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": True, "pad_token_id": PADDING,
}

# Heads of 12, of which 8 elements turn; a window in every layer.
PHI3 = {
    **_LLAMA, "model_type": "phi3", "architectures": ["Phi3ForCausalLM"], "tie_word_embeddings": False,
    "pad_token_id": PADDING, "partial_rotary_factor": 0.67, "sliding_window": 9, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
    "original_max_position_embeddings": 64,
}

# As many heads of k and v as of q.
PHI3_MHA = {**PHI3, "num_key_value_heads": 4, "partial_rotary_factor": 1.0, "sliding_window": None}

SMOLLM3 = {
    **_LLAMA, "model_type": "smollm3", "architectures": ["SmolLM3ForCausalLM"], "num_hidden_layers": 3,
    "tie_word_embeddings": True, "pad_token_id": PADDING, "no_rope_layers": [1, 0, 1], "use_sliding_window": True,
    "sliding_window": 6, "attention_bias": False, "mlp_bias": True,
}

GRANITE = {
    **_LLAMA, "model_type": "granite", "architectures": ["GraniteForCausalLM"], "tie_word_embeddings": True,
    "attention_bias": True, "mlp_bias": True, "embedding_multiplier": 3.0, "attention_multiplier": 0.125,
    "residual_multiplier": 0.22, "logits_scaling": 2.0,
}

OLMO = {
    **{k: v for k, v in _LLAMA.items() if k != "rms_norm_eps"}, "model_type": "olmo",
    "architectures": ["OlmoForCausalLM"], "tie_word_embeddings": False, "attention_bias": True, "clip_qkv": 0.5,
    "pad_token_id": PADDING,
}

OLMO2 = {
    **_LLAMA, "model_type": "olmo2", "architectures": ["Olmo2ForCausalLM"], "tie_word_embeddings": False,
    "pad_token_id": PADDING,
}

GPT_NEOX = {
    "model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"], "vocab_size": 131,
    "max_position_embeddings": 64, "hidden_size": 48, "intermediate_size": 104, "num_hidden_layers": 2,
    "num_attention_heads": 4, "hidden_act": "gelu", "rotary_pct": 0.5, "rotary_emb_base": 10000,
    "layer_norm_eps": 1e-5, "initializer_range": 0.02, "attention_dropout": 0.0, "hidden_dropout": 0.0,
    "tie_word_embeddings": False, "use_parallel_residual": True, "torch_dtype": "float32",
}

# The two sums one after the other, as in StableLM's first models; no biases of attention.
GPT_NEOX_SERIAL = {**GPT_NEOX, "use_parallel_residual": False, "attention_bias": False, "rotary_pct": 1.0}

MINISTRAL = {
    **_LLAMA, "model_type": "ministral", "architectures": ["MinistralForCausalLM"], "num_hidden_layers": 3,
    "head_dim": 12, "sliding_window": 7, "tie_word_embeddings": False,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
}

# Each third layer sees all.
GEMMA3 = {
    **{k: v for k, v in _LLAMA.items() if k != "hidden_act"}, "model_type": "gemma3_text",
    "architectures": ["Gemma3ForCausalLM"], "num_hidden_layers": 4, "head_dim": 16,
    "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": True, "pad_token_id": PADDING,
    "query_pre_attn_scalar": 24, "sliding_window": 6, "sliding_window_pattern": 3, "rope_theta": 1000000.0,
    "rope_local_base_freq": 10000.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0},
}

# Caps that some scores and logits reach.
GEMMA2 = {
    **{k: v for k, v in _LLAMA.items() if k != "hidden_act"}, "model_type": "gemma2",
    "architectures": ["Gemma2ForCausalLM"], "num_hidden_layers": 3, "head_dim": 16,
    "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": True, "pad_token_id": PADDING,
    "query_pre_attn_scalar": 1, "sliding_window": 6, "attn_logit_softcapping": 1.5, "final_logit_softcapping": 3.0,
}

CEREBRAS_GPT = {**GPT2, "activation_function": "gelu", "n_head": 4, "n_inner": 192, "scale_attn_weights": True,
                "reorder_and_upcast_attn": False, "scale_attn_by_inverse_layer_idx": False}

# The layer without a window has no rotary positions.
EXAONE4 = {
    **_LLAMA, "model_type": "exaone4", "architectures": ["Exaone4ForCausalLM"], "num_hidden_layers": 3,
    "tie_word_embeddings": False, "pad_token_id": PADDING, "sliding_window": 6, "sliding_window_pattern": 2,
    "head_dim": 16,
}

OPT = {
    "model_type": "opt", "architectures": ["OPTForCausalLM"], "vocab_size": 131, "max_position_embeddings": 30,
    "hidden_size": 48, "ffn_dim": 104, "num_hidden_layers": 2, "num_attention_heads": 4, "activation_function": "relu",
    "init_std": 0.02, "dropout": 0.0, "attention_dropout": 0.0, "tie_word_embeddings": True, "pad_token_id": PADDING,
    "torch_dtype": "float32",
}

SEED_OSS = {
    **_LLAMA, "model_type": "seed_oss", "architectures": ["SeedOssForCausalLM"], "head_dim": 16,
    "tie_word_embeddings": False, "attention_bias": True, "attention_out_bias": False, "residual_dropout": 0.0,
    "pad_token_id": PADDING,
}

STARCODER2 = {
    **{k: v for k, v in _LLAMA.items() if k != "rms_norm_eps"}, "model_type": "starcoder2",
    "architectures": ["Starcoder2ForCausalLM"], "hidden_act": "gelu_pytorch_tanh", "norm_epsilon": 1e-5,
    "use_bias": True, "sliding_window": 7, "tie_word_embeddings": True, "pad_token_id": PADDING,
}

FOLLOWED = {"gemma": GEMMA, "phi3": PHI3, "phi3 mha": PHI3_MHA, "smollm3": SMOLLM3, "granite": GRANITE, "olmo": OLMO,
            "olmo2": OLMO2, "gpt_neox": GPT_NEOX, "gpt_neox serial": GPT_NEOX_SERIAL, "ministral": MINISTRAL,
            "gemma3_text": GEMMA3, "cerebras-gpt": CEREBRAS_GPT, "exaone4": EXAONE4, "opt": OPT, "seed_oss": SEED_OSS,
            "starcoder2": STARCODER2, "gemma2": GEMMA2}
DENSE = {"gpt2": GPT2, "llama": LLAMA, "qwen2": QWEN2, "qwen3": QWEN3, "mistral": MISTRAL}
MIXTURES = {"mixtral": MIXTRAL, "qwen2_moe": QWEN2_MOE, "qwen3_moe": QWEN3_MOE, "olmoe": OLMOE,
            "dots1": DOTS1}
ALL = {**DENSE, **MIXTURES}
SEQUENCE, BATCH = 23, 4


def corpus(vocabulary=131, length=1500, seed=11):
    """Ids with a pattern to learn: each mostly follows from the one before."""
    random = np.random.default_rng(seed)
    ids = [0]
    for noise in random.integers(0, vocabulary, length - 1):
        ids.append(int(noise) if noise % 5 == 0 else (3 * ids[-1] + 7) % vocabulary)
    return np.array(ids)
