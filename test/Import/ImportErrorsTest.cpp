#include "test/Import/TestConfigs.h"

#include <ctime>

namespace meshwork::importer {
namespace {

using testing::HasSubstr;

std::string errorsOf(const std::string &json) {
  Result result = importConfig(json, "config.json");
  EXPECT_FALSE(result.model) << json.substr(0, 200);
  EXPECT_TRUE(hasErrors(result.diagnostics));
  return textOf(result.diagnostics);
}

void expectError(const std::string &json, const std::string &message) {
  EXPECT_THAT(errorsOf(json), HasSubstr("error: " + message))
      << json.substr(0, 300);
}

void expectLlama(const std::string &more, const std::string &message,
                 const std::string &family = "llama") {
  expectError("{" + llamaKeys(family) + ", " + more + "}", message);
}

TEST(ImportErrors, AllAreListedAtOnce) {
  EXPECT_EQ(
      errorsOf(R"({"model_type": "gpt2", "vocab_size": "many",
    "n_positions": 0, "n_embd": 25, "n_layer": 2.0, "n_head": 3,
    "attn_pdrop": 1, "activation_function": "tanh", "add_cross_attention": true})"),
      R"(config.json: error: vocab_size: found "many", expected a whole number from 1 to 2147483647
config.json: error: n_positions: found 0, expected a whole number from 1 to 2147483647
config.json: error: n_layer: found 2, expected a whole number from 1 to 2147483647
config.json: error: activation_function: found "tanh", expected one of "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python_tanh", "gelu_accurate", "gelu", "gelu_python", "silu", "swish", "relu"
config.json: error: attn_pdrop: found 1, expected a rate from 0 to below 1
config.json: error: add_cross_attention: found true, which changes the mathematics and is not supported for this model_type; expected false
config.json: error: n_embd: found 25, expected a multiple of n_head, 3, like 27
)");
}

TEST(ImportErrors, Json) {
  expectError("", "is not JSON");
  expectError("{", "is not JSON");
  EXPECT_THAT(errorsOf("{\n  \"a\": tru\n}"), HasSubstr("config.json:2:"));
  expectError("[1]", "found an array, expected an object");
  expectError("\xef\xbb\xbf{}", "starts with a byte order mark");
  expectError("{\"a\": NaN}", "is not JSON");
  expectError("{\"a\": 1e400}", "is not JSON");
  expectError("{\"a\": 99999999999999999999}",
              "has a whole number that does not");
  expectError("{\"a\": 9223372036854775808}",
              "has a whole number that does not");
  expectError(std::string("{}\0x", 4), "is not JSON: a zero byte");
  expectError("{\"a\": \"\xff\"}", "is not JSON");
  expectError("{\"a\": " + std::string(1000000, '['), "nests deeper than 64");
  expectError(std::string(17 << 20, ' '),
              "is 17825792 bytes, expected a configuration");
  std::string twice = errorsOf(R"({"a": 1, "a": 1, "b": {"c": 1, "c": 2}})");
  EXPECT_THAT(twice, HasSubstr("has key \"a\" twice"));
  EXPECT_THAT(twice, HasSubstr("has key \"c\" twice"));
}

TEST(ImportErrors, ManyKeysTakeTimeInProportion) {
  std::string keys;
  for (int i = 0; i < 200000; ++i)
    keys += ", \"key" + std::to_string(i) + "\": " + std::to_string(i);
  auto start = std::clock();
  Result result = importConfig("{" + llamaKeys("llama") + keys + "}", "c.json");
  EXPECT_FALSE(result.model);
  EXPECT_THAT(textOf(result.diagnostics), HasSubstr("199950 more unknown"));
  EXPECT_LT(std::clock() - start, 60 * CLOCKS_PER_SEC); // takes about one
}

TEST(ImportErrors, ModelType) {
  expectError("{}", "model_type: missing, expected dots1, exaone4, gemma, "
                    "gemma2, gemma3_text");
  expectError(R"({"model_type": 1})",
              "model_type: found 1, expected dots1, exaone4, gemma, gemma2");
  expectError(R"({"model_type": "lama"})", "model_type: found \"lama\"");
  EXPECT_THAT(errorsOf(R"({"model_type": "lama"})"),
              HasSubstr("qwen3_moe, seed_oss, smollm3 or starcoder2; "
                        "did you mean \"llama\"?"));
  expectError(
      R"({"model_type": "dbrx"})",
      "model_type: found \"dbrx\", a mixture of experts, not supported");
  expectLlama(R"("architectures": ["LlamaForSequenceClassification"])",
              "architectures: found \"LlamaForSequenceClassification\"");
  expectLlama(R"("architectures": "x")", "architectures: found \"x\"");
}

TEST(ImportErrors, ModelTypesOfOtherFamiliesAreTold) {
  auto typed = [](const std::string &type, const std::string &more = "") {
    return errorsOf("{\"model_type\": \"" + type + "\"" + more + "}");
  };
  for (const char *type : {"dbrx", "gpt_oss", "llama4", "llama4_text", "grok-1",
                           "qwen3_next", "deepseek_v2", "deepseek_v3", "phimoe",
                           "granitemoe", "jamba", "arctic"})
    EXPECT_THAT(typed(type), HasSubstr("a mixture of experts, not supported"));
  for (const char *type :
       {"gptj", "gpt_neo", "gpt_neox_japanese", "qwen", "phi", "vaultgemma",
        "mistral3", "llava", "llama_guard", "mpt", "olmo3", "exaone",
        "qwen2_vl"}) {
    EXPECT_THAT(typed(type), HasSubstr(", not supported by this version"));
    EXPECT_THAT(typed(type), testing::Not(HasSubstr("did you mean")));
  }
  for (const char *type : {"gpt-2", "gpt3", "llamma", "qwen33", "Mistral"})
    EXPECT_THAT(typed(type), HasSubstr("did you mean")) << type;
}

TEST(ImportErrors, TheMissingPartIsNamed) {
  expectError(R"({"model_type": "bloom"})",
              "model_type: found \"bloom\", not supported by this version "
              "(ALiBi, biases of scores by distance); expected");
  expectError(R"({"model_type": "olmo3"})",
              "model_type: found \"olmo3\", not supported by this version; ");
}

TEST(ImportErrors, KeysOfALanguageModelWithinAreToldWhere) {
  std::string errors = errorsOf(
      R"({"model_type": "llava", "text_config": {"model_type": "llama",
          "vocab_size": 7}, "vision_config": {"hidden_size": 3}})");
  EXPECT_THAT(errors, HasSubstr("error: text_config.hidden_size: missing"));
  EXPECT_EQ(errors.find("error: vision"), std::string::npos);
  expectError(R"({"model_type": "llama4", "text_config": {"model_type":
                  "llama4_text"}})",
              "text_config.model_type: found \"llama4_text\", a mixture of "
              "experts, not supported");
  expectError(R"({"llm_config": {}})", "llm_config.model_type: missing");
  std::string wrapped = "{\"quantization_config\": {}, \"text_config\": {" +
                        llamaKeys("llama") + "}}";
  expectError(wrapped, "quantization_config: found an object");
  expectError("{\"text_config\": {" + llamaKeys("llama") + ", \"zzz\": 1}}",
              "text_config.zzz: unknown key");
}

TEST(ImportErrors, MissingSizes) {
  std::string errors = errorsOf(R"({"model_type": "qwen2"})");
  for (const char *key : {"vocab_size", "hidden_size", "intermediate_size",
                          "num_hidden_layers", "num_attention_heads"})
    EXPECT_THAT(errors, HasSubstr(std::string("error: ") + key + ": missing"));
}

TEST(ImportErrors, Sizes) {
  auto change = [](const char *key, const char *value) {
    return "{" + with(llamaKeys("llama"), key, value) + "}";
  };
  expectError(change("vocab_size", "-1"), "vocab_size: found -1");
  expectError(change("vocab_size", "2147483648"),
              "vocab_size: found 2147483648");
  expectError(change("vocab_size", "null"), "vocab_size: found null");
  expectError(change("num_key_value_heads", "3"),
              "num_key_value_heads: found 3, expected a divisor of "
              "num_attention_heads, 4");
  expectError(change("num_key_value_heads", "8"),
              "num_key_value_heads: found 8");
  expectError(change("head_dim", "7"), "head_dim: gives heads of 7 elements");
  expectError(change("head_dim", "70000"),
              "head_dim: found 70000, expected at");
  expectError(
      "{" +
          with(with(llamaKeys("llama"), "head_dim", "null"), "hidden_size",
               "30") +
          "}",
      "hidden_size: found 30, expected a multiple of num_attention_heads");
  expectError(change("num_hidden_layers", "5000"),
              "num_hidden_layers: found 5000, expected at most 4096");
  expectError("{" +
                  with(with(llamaKeys("llama"), "vocab_size", "2147483647"),
                       "hidden_size", "2147483647") +
                  "}",
              "vocab_size: makes a weight of more than 1099511627776 elements");
}

TEST(ImportErrors, KeysThatChangeTheMathematics) {
  expectLlama(R"("quantization_config": {"bits": 4})",
              "quantization_config: found an object");
  expectLlama(R"("num_local_experts": 8)", "num_local_experts: found 8");
  expectLlama(R"("per_layer_config": {"0": {"num_attention_heads": 2}})",
              "per_layer_config: found an object");
  expectLlama(R"("partial_rotary_factor": 0.5)",
              "partial_rotary_factor: found 0.5");
  expectLlama(R"("final_logit_softcapping": 30.0)",
              "final_logit_softcapping: found 30");
  for (const char *key :
       {"rope_interleaved", "use_moe", "use_parallel_residual", "use_alibi",
        "qk_norm", "use_attention_sinks", "use_bias", "qkv_bias"})
    expectLlama(std::string("\"") + key + "\": true",
                std::string(key) + ": found true");
  for (const char *key :
       {"residual_multiplier", "logits_scaling", "rotary_pct", "scale_emb",
        "hidden_dropout", "resid_pdrop", "n_routed_experts", "kv_lora_rank",
        "attention_chunk_size", "num_nextn_predict_layers"})
    expectLlama(std::string("\"") + key + "\": 0.5",
                std::string(key) + ": found 0.5");
  expectLlama(R"("position_embedding_type": "alibi")",
              "position_embedding_type: found \"alibi\"");
  expectLlama(R"("qkv_bias": false)", "qkv_bias: found false, but qwen2 always",
              "qwen2");
  expectError("{" + gpt2Keys +
                  R"(, "position_embedding_type": "relative_key"})",
              "position_embedding_type: found \"relative_key\"");
  expectLlama(R"("embedding_multiplier": 12)",
              "embedding_multiplier: found 12");
  expectLlama(R"("sliding_window": 16)", "sliding_window: found 16");
  expectLlama(R"("attention_bias": true)", "attention_bias: found true",
              "mistral");
  expectLlama(R"("mlp_bias": true)", "mlp_bias: found true", "qwen3");
  expectError("{" + gpt2Keys + R"(, "pruned_heads": {"0": [1]}})",
              "pruned_heads: found an object");
  expectError("{" + gpt2Keys + R"(, "rope_scaling": {"type": "linear"}})",
              "rope_scaling: found an object");
}

TEST(ImportErrors, Values) {
  expectLlama(R"("attention_dropout": -0.1)", "attention_dropout: found -0.1");
  expectLlama(R"("rms_norm_eps": 0)", "rms_norm_eps: found 0");
  expectLlama(R"("initializer_range": -1)", "initializer_range: found -1");
  expectLlama(R"("tie_word_embeddings": "yes")",
              "tie_word_embeddings: found \"yes\"");
  expectLlama(R"("hidden_act": "relu2")", "hidden_act: found \"relu2\"");
  expectLlama(R"("rope_theta": 1)", "rope_theta: expected a number above 1");
  expectLlama(R"("layer_types": ["full_attention"])",
              "layer_types: expected an array of 2", "qwen3");
  expectLlama(R"("layer_types": ["full_attention", "linear_attention"])",
              "layer_types: found \"linear_attention\" for layer 1", "qwen3");
  expectLlama(R"("layer_types": ["full_attention", "sliding_attention"])",
              "layer_types: layer 1 slides, but there is no", "qwen3");
}

TEST(ImportErrors, ValuesOfAFamily) {
  expectLlama(R"("layer_types": ["sliding_attention", "full_attention"])",
              "layer_types: layer 1 is full, but with a sliding_window all "
              "layers of mistral slide",
              "mistral");
  for (const char *id : {"100", "-101", "\"<pad>\"", "0.5"})
    expectLlama(std::string("\"pad_token_id\": ") + id,
                std::string("pad_token_id: found ") + id +
                    ", expected null or a token below vocab_size, 100");
  std::string keys = llamaKeys("qwen2");
  size_t at = keys.find("\"num_key_value_heads\"");
  keys.erase(at, keys.find("\"head_dim\"") - at);
  expectError("{" + keys + "}",
              "num_key_value_heads: missing, so it is qwen2's default 32, "
              "expected a divisor of num_attention_heads, 4");
  expectError("{" + gpt2Keys + ", \"hidden_size\": 48}",
              "hidden_size: found 48, but n_embd is 24; they are one size");
}

// After an error in one key others may stay unread.
TEST(ImportErrors, KeysLeftUnreadAreNotUnknown) {
  EXPECT_EQ(errorsOf("{" + llamaKeys("llama") +
                     R"(, "rope_theta": 1e6, "rope_scaling": 7})"),
            "config.json: error: rope_scaling: found 7, expected an object\n");
  EXPECT_EQ(errorsOf("{" + with(llamaKeys("llama"), "head_dim", "70000") +
                     ", \"rope_theta\": 1e6}"),
            "config.json: error: head_dim: found 70000, expected at most "
            "65536\n");
}

TEST(ImportErrors, Rope) {
  auto scaling = [](const std::string &text) {
    return "\"rope_scaling\": " + text;
  };
  expectLlama(scaling("7"), "rope_scaling: found 7, expected an object");
  expectLlama(scaling(R"({"type": "dynamic", "factor": 2})"),
              "rope_scaling.type: found \"dynamic\", not supported");
  expectLlama(scaling(R"({"rope_type": "longrope"})"),
              "rope_scaling.rope_type: found \"longrope\", not supported");
  expectLlama(scaling(R"({"rope_type": 3})"),
              "rope_scaling.rope_type: found 3");
  expectLlama(
      scaling(R"({"rope_type": "linear", "type": "yarn", "factor": 2})"),
      "rope_scaling.type: found \"yarn\", but rope_type is \"linear\"");
  expectLlama(scaling(R"({"type": "linear"})"), "rope_scaling.factor: missing");
  expectLlama(scaling(R"({"type": "linear", "factor": 0})"),
              "rope_scaling.factor: found 0");
  expectLlama(scaling(R"({"type": "linear", "factor": 2, "beta_fast": 3})"),
              "rope_scaling.beta_fast: is no key of rope type \"linear\"");
  expectLlama(scaling(R"({"type": "llama3", "factor": 8, "low_freq_factor": 4,
      "high_freq_factor": 1, "original_max_position_embeddings": 64})"),
              "rope_scaling.high_freq_factor: is not above low_freq_factor");
  expectLlama(scaling(R"({"type": "yarn", "factor": 8, "beta_fast": 1,
      "beta_slow": 1})"),
              "rope_scaling.beta_fast: is not above beta_slow");
  expectLlama(scaling(R"({"type": "yarn", "factor": 8,
      "original_max_position_embeddings": 64},
      "original_max_position_embeddings": 32)"),
              "rope_scaling.original_max_position_embeddings: found 64, but "
              "outside it is 32; keep one");
  expectLlama(R"("rope_scaling": {"type": "linear", "factor": 2},
      "rope_parameters": {"rope_type": "default"})",
              "rope_scaling: stands beside rope_parameters");
  expectLlama(R"("rope_parameters": {"full_attention": {}})",
              "rope_parameters.full_attention: is no key of rope type");
}

// Every prefix and every changed byte of a configuration ends in a result.
TEST(ImportErrors, SurvivesDamage) {
  std::string text = "{" + llamaKeys("llama") +
                     R"(, "rope_scaling": {"type": "yarn", "factor": 8}})";
  ASSERT_TRUE(importConfig(text, "c").model);
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_FALSE(importConfig(text.substr(0, length), "c").model) << length;
  for (size_t place = 0; place < text.size(); ++place)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = text;
      changed[place] = static_cast<char>(changed[place] ^ (1 << bit));
      // A digit may turn 2 layers into thousands: legal, and slow to repeat.
      if (isdigit(static_cast<unsigned char>(changed[place])))
        continue;
      Result result = importConfig(changed, "c");
      EXPECT_NE(result.model.has_value(), hasErrors(result.diagnostics));
    }
}

} // namespace
} // namespace meshwork::importer
