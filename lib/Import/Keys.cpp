#include "lib/Import/Keys.h"

#include <algorithm>

namespace meshwork::importer {
namespace {

// Keys of tokenizers, generation, other heads, storage and bookkeeping: none of
// them changes the training loss as a function of weights and tokens.
constexpr const char *harmless[] = {"_attn_implementation_autoset",
                                    "_commit_hash",
                                    "_name_or_path",
                                    "auto_map",
                                    "begin_suppress_tokens",
                                    "bos_token_id",
                                    "chunk_size_feed_forward",
                                    "cross_attention_hidden_size",
                                    "decoder_start_token_id",
                                    "diversity_penalty",
                                    "do_sample",
                                    "dtype",
                                    "early_stopping",
                                    "encoder_no_repeat_ngram_size",
                                    "eos_token_id",
                                    "exponential_decay_length_penalty",
                                    "finetuning_task",
                                    "forced_bos_token_id",
                                    "forced_eos_token_id",
                                    "gradient_checkpointing",
                                    "id2label",
                                    "is_decoder",
                                    "keys_to_ignore_at_inference",
                                    "label2id",
                                    "length_penalty",
                                    "max_length",
                                    "max_position_embeddings",
                                    "min_length",
                                    "n_ctx",
                                    "name_or_path",
                                    "no_repeat_ngram_size",
                                    "num_beam_groups",
                                    "num_beams",
                                    "num_return_sequences",
                                    "original_max_position_embeddings",
                                    "output_attentions",
                                    "output_hidden_states",
                                    "output_past",
                                    "output_scores",
                                    "pad_token_id",
                                    "prefix",
                                    "pretraining_tp",
                                    "problem_type",
                                    "remove_invalid_values",
                                    "reorder_and_upcast_attn",
                                    "repetition_penalty",
                                    "return_dict",
                                    "return_dict_in_generate",
                                    "sep_token_id",
                                    "summary_activation",
                                    "summary_first_dropout",
                                    "summary_proj_to_labels",
                                    "summary_type",
                                    "summary_use_proj",
                                    "suppress_tokens",
                                    "task_specific_params",
                                    "temperature",
                                    "tf_legacy_loss",
                                    "tokenizer_class",
                                    "top_k",
                                    "top_p",
                                    "torch_dtype",
                                    "torchscript",
                                    "transformers_version",
                                    "typical_p",
                                    "unk_token_id",
                                    "use_bfloat16",
                                    "use_cache"};

// Keys that change the mathematics, harmless only with a neutral value (or
// null).
struct MathKey {
  const char *name;
  Json::Kind kind; // of the neutral value
  double neutral;  // its value, 0 for false, "nothing in it" for a container
};
constexpr MathKey mathKeys[] = {
    {"add_cross_attention", Json::Kind::boolean, 0},
    {"alibi", Json::Kind::boolean, 0},
    {"attention_bias", Json::Kind::boolean, 0},
    {"attention_multiplier", Json::Kind::null, 0},
    {"attn_logit_softcapping", Json::Kind::null, 0},
    {"attn_temperature_tuning", Json::Kind::boolean, 0},
    {"clip_qkv", Json::Kind::null, 0},
    {"embedding_multiplier", Json::Kind::number, 1},
    {"final_logit_softcapping", Json::Kind::null, 0},
    {"is_encoder_decoder", Json::Kind::boolean, 0},
    {"logit_scale", Json::Kind::number, 1},
    {"logits_scaling", Json::Kind::number, 1},
    {"mlp_bias", Json::Kind::boolean, 0},
    {"multi_query", Json::Kind::boolean, 0},
    {"no_rope_layers", Json::Kind::array, 0},
    {"num_experts", Json::Kind::integer, 0},
    {"num_experts_per_tok", Json::Kind::integer, 0},
    {"num_local_experts", Json::Kind::integer, 0},
    {"parallel_attn", Json::Kind::boolean, 0},
    {"partial_rotary_factor", Json::Kind::number, 1},
    {"per_layer_config", Json::Kind::object, 0},
    {"pruned_heads", Json::Kind::object, 0},
    {"qk_layernorm", Json::Kind::boolean, 0},
    {"quantization_config", Json::Kind::null, 0},
    {"query_pre_attn_scalar", Json::Kind::null, 0},
    {"residual_multiplier", Json::Kind::number, 1},
    {"rope_parameters", Json::Kind::null, 0},
    {"rope_scaling", Json::Kind::null, 0},
    {"scale_embedding", Json::Kind::boolean, 0},
    {"sliding_window", Json::Kind::null, 0},
    {"tie_encoder_decoder", Json::Kind::boolean, 0},
    {"use_mrope", Json::Kind::boolean, 0},
    {"use_qk_norm", Json::Kind::boolean, 0},
    {"use_sliding_window", Json::Kind::boolean, 0},
};

bool isNeutral(const MathKey &key, const Json &value) {
  if (value.kind == Json::Kind::null)
    return true;
  switch (key.kind) {
  case Json::Kind::boolean:
    return value.kind == Json::Kind::boolean && !value.boolean;
  case Json::Kind::integer:
  case Json::Kind::number:
    return value.isNumber() && value.number == key.neutral;
  case Json::Kind::array:
  case Json::Kind::object:
    return value.kind == key.kind && value.items.empty();
  default:
    return false;
  }
}

std::string neutralText(const MathKey &key) {
  switch (key.kind) {
  case Json::Kind::boolean:
    return "false";
  case Json::Kind::integer:
  case Json::Kind::number:
    return key.neutral == 0 ? "0" : "1";
  case Json::Kind::array:
  case Json::Kind::object:
    return "nothing in it";
  default:
    return "null";
  }
}

} // namespace

void checkOtherKeys(Config &config, const std::vector<std::string> &readKeys) {
  constexpr size_t mostNamed = 50; // A wrong file has any number of them.
  size_t unknown = 0;
  for (const std::string &key : config.unread()) {
    auto sameName = [&](const MathKey &known) { return key == known.name; };
    auto math =
        std::find_if(std::begin(mathKeys), std::end(mathKeys), sameName);
    const Json *value = config.find(key);
    if (math != std::end(mathKeys)) {
      if (!isNeutral(*math, *value))
        config.error(key, "found " + value->found() +
                              ", which changes the mathematics and is not "
                              "supported for this model_type; expected " +
                              neutralText(*math));
      continue;
    }
    bool known = std::find(std::begin(harmless), std::end(harmless), key) !=
                 std::end(harmless);
    // A key of the family is unread only where an error stopped the reading.
    known |= std::find(readKeys.begin(), readKeys.end(), key) != readKeys.end();
    if (!known && ++unknown <= mostNamed)
      config.warning(key, "unknown key, ignored" + suggestion(key, readKeys));
  }
  if (unknown > mostNamed)
    config.warning("...", std::to_string(unknown - mostNamed) +
                              " more unknown keys, ignored");
}

} // namespace meshwork::importer
