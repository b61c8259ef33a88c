"""The largest published model of each family, long sequences and large tables, compiled for a GPU:
no width, length or count of elements is too much for its kernels. No code runs."""
import json
import unittest

import shell

LAYERS_OF_A_STAGE = 2  # more layers are more of the same kernels

# Sizes of a layer and of the tables, as published; the key that counts layers; the length of a
# sequence. Last, the stages that the model needs beside 8 ranks of "tp", at 18 bytes a parameter.
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu",
         "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "initializer_range": 0.02,
         "tie_word_embeddings": False}
FAMILIES = {
    # Brown et al., arXiv 2005.14165, table 2.1: "GPT-3 175B", 96 layers.
    "gpt3-175b": ({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 50257,
                   "n_embd": 12288, "n_head": 96, "n_positions": 2048,
                   "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
                   "initializer_range": 0.02, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
                   "attn_pdrop": 0.0}, "n_layer", 2048, 8),
    # huggingface.co/meta-llama/Llama-3.1-405B, config.json: 126 layers.
    "llama-405b": ({**LLAMA, "vocab_size": 128256, "hidden_size": 16384, "intermediate_size": 53248,
                    "num_attention_heads": 128, "num_key_value_heads": 8,
                    "max_position_embeddings": 131072}, "num_hidden_layers", 8192, 16),
    # huggingface.co/mistralai/Mistral-Large-Instruct-2407, config.json: 88 layers.
    "mistral-large-2": ({**LLAMA, "model_type": "mistral", "architectures": ["MistralForCausalLM"],
                         "vocab_size": 32768, "hidden_size": 12288, "intermediate_size": 28672,
                         "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
                         "rope_theta": 1000000.0, "sliding_window": None,
                         "max_position_embeddings": 131072}, "num_hidden_layers", 8192, 8),
    # huggingface.co/Qwen/Qwen2.5-72B, config.json: 80 layers.
    "qwen2.5-72b": ({**LLAMA, "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"],
                     "vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568,
                     "num_attention_heads": 64, "num_key_value_heads": 8, "rms_norm_eps": 1e-6,
                     "rope_theta": 1000000.0, "use_sliding_window": False,
                     "max_position_embeddings": 131072}, "num_hidden_layers", 8192, 4),
    # huggingface.co/Qwen/Qwen3-32B, config.json: 64 layers.
    "qwen3-32b": ({**LLAMA, "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"],
                   "vocab_size": 151936, "hidden_size": 5120, "intermediate_size": 25600,
                   "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
                   "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "use_sliding_window": False,
                   "max_position_embeddings": 40960}, "num_hidden_layers", 8192, 2),
    # huggingface.co/LGAI-EXAONE/EXAONE-4.0-32B, config.json: 64 layers.
    "exaone4-32b": ({**LLAMA, "model_type": "exaone4", "architectures": ["Exaone4ForCausalLM"],
                     "vocab_size": 102400, "hidden_size": 5120, "intermediate_size": 27392,
                     "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
                     "rope_theta": 1000000.0, "sliding_window": 4096, "sliding_window_pattern": 4,
                     "max_position_embeddings": 131072}, "num_hidden_layers", 8192, 2),
    # huggingface.co/google/gemma-2-27b, config.json: 46 layers.
    "gemma2-27b": ({"model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"],
                    "vocab_size": 256000, "hidden_size": 4608, "intermediate_size": 36864,
                    "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128,
                    "query_pre_attn_scalar": 144, "sliding_window": 4096,
                    "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
                    "max_position_embeddings": 8192}, "num_hidden_layers", 8192, 2),
    # huggingface.co/facebook/opt-66b, config.json: 64 layers.
    "opt-66b": ({"model_type": "opt", "architectures": ["OPTForCausalLM"],
                 "vocab_size": 50272,
                 "hidden_size": 9216, "ffn_dim": 36864, "num_attention_heads": 72,
                 "max_position_embeddings": 2048, "activation_function": "relu", "dropout": 0.1,
                 "attention_dropout": 0.0}, "num_hidden_layers", 2048, 4),
    # huggingface.co/ByteDance-Seed/Seed-OSS-36B-Base, config.json: 64 layers.
    "seed-oss-36b": ({**LLAMA, "model_type": "seed_oss", "architectures": ["SeedOssForCausalLM"],
                      "vocab_size": 155136, "hidden_size": 5120, "intermediate_size": 27648,
                      "num_attention_heads": 80, "num_key_value_heads": 8, "head_dim": 128,
                      "rms_norm_eps": 1e-6, "rope_theta": 10000000.0,
                      "max_position_embeddings": 524288}, "num_hidden_layers", 8192, 2),
    # Lozhkov et al., arXiv 2402.19173, table 6: "15B", 40 layers.
    "starcoder2-15b": ({"model_type": "starcoder2", "architectures": ["Starcoder2ForCausalLM"],
                        "vocab_size": 49152, "hidden_size": 6144, "intermediate_size": 24576,
                        "num_attention_heads": 48, "num_key_value_heads": 4,
                        "norm_epsilon": 1e-5, "rope_theta": 100000.0, "sliding_window": 4096,
                        "max_position_embeddings": 16384}, "num_hidden_layers", 8192, 1)}
# huggingface.co/meta-llama/Llama-3.2-1B, config.json: 16 layers.
ONE_B = {**LLAMA, "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192,
         "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
         "max_position_embeddings": 131072, "tie_word_embeddings": True}

SPEC = """[mesh]
axes = [{axes}]
[batch]
global = {batch}
micro = {micro}
sequence = {sequence}
[target]
device = "cuda"
arch = "sm_90a"
"""


class Large(unittest.TestCase):
    cost_s = 60

    @classmethod
    def setUpClass(cls):
        cls.space = shell.Shell()
        cls.addClassCleanup(cls.space.close)

    def compile(self, name, config, axes, sequence, batch=1, micro=1, rest=""):
        """What `explain --json` tells of the plan."""
        axes = ", ".join(f'"{axis}"' for axis in axes)
        self.space.write(f"{name}.json", json.dumps(config))
        self.space.write(f"{name}.toml", SPEC.format(axes=axes, batch=batch, micro=micro,
                                                     sequence=sequence) + rest)
        plan = f"{name}.mwplan"
        self.space.must("meshwork", "compile", f"{name}.json", "--spec", f"{name}.toml", "-o", plan)
        return json.loads(self.space.must("meshwork", "explain", plan, "--json").stdout)

    def test_the_largest_of_each_family(self):
        for name, (config, layers, sequence, stages) in FAMILIES.items():
            with self.subTest(name):
                told = self.compile(name, {**config, layers: stages * LAYERS_OF_A_STAGE},
                                    [f"pp={stages}", "dp=2", "tp=8"], sequence, batch=4 * stages,
                                    rest='[shard]\nresidual_sequence = ["tp"]\n'
                                         "[zero]\nstage = 1\n")
                self.assertEqual((told["ranks"], told["programs"]), (16 * stages, stages))

    def test_a_million_tokens(self):
        """Of a sequence: its ranks have parts of it."""
        told = self.compile("million", {**ONE_B, "num_hidden_layers": LAYERS_OF_A_STAGE,
                                        "max_position_embeddings": 1 << 20},
                            ["cp=32"], 1 << 20,
                            rest='[context]\nmethod = "ring"\nlayout = "zigzag"\n')
        self.assertEqual(told["ranks"], 32)

    def test_activations_of_two_to_the_31_elements(self):
        """2 x 131072 x 8192 of a layer."""
        self.compile("long", {**ONE_B, "num_hidden_layers": LAYERS_OF_A_STAGE}, [], 131072,
                     batch=2, micro=2)

    def test_a_table_of_two_to_the_31_elements(self):
        self.compile("table", {**ONE_B, "num_hidden_layers": LAYERS_OF_A_STAGE,
                               "vocab_size": 1 << 20}, [], 1024)


if __name__ == "__main__":
    unittest.main()
