// What is known of keys that no family reads.
#include "lib/Import/KeyLists.h"

#include <algorithm>
#include <iterator>

namespace meshwork::importer {
namespace {

// Keys of tokenizers, generation, other heads, storage and bookkeeping: none of
// them changes the training loss as a function of weights and tokens.
constexpr std::string_view harmless =
    "_attn_implementation _attn_implementation_autoset "
    "_attn_implementation_internal _commit_hash _flash_attn_2_enabled "
    "_name_or_path _num_labels add_bos_token add_eos_token "
    "attention_softmax_in_fp32 attn_implementation auto_map bad_words_ids "
    "begin_suppress_tokens bos_token_id cache_implementation chat_template "
    "chunk_size_feed_forward classifier_dropout cross_attention_hidden_size "
    "decoder_start_token_id diversity_penalty do_sample dtype "
    "early_stopping encoder_no_repeat_ngram_size eos_token_id "
    "exponential_decay_length_penalty finetuning_task forced_bos_token_id "
    "forced_eos_token_id gradient_checkpointing id2label is_decoder "
    "is_llama_config keys_to_ignore_at_inference label2id length_penalty "
    "mask_token_id max_length max_new_tokens max_position_embeddings "
    "max_window_layers "
    "max_sequence_length min_length min_p model_max_length n_ctx n_special "
    "name_or_path no_repeat_ngram_size num_beam_groups num_beams num_labels "
    "num_return_sequences original_max_position_embeddings "
    "output_attentions output_hidden_states output_past output_scores "
    "pad_token_id penalty_alpha predict_special_tokens prefix "
    "pretraining_tp problem_type remove_invalid_values renormalize_logits "
    "reorder_and_upcast_attn repetition_penalty return_dict "
    "return_dict_in_generate scale_attention_softmax_in_fp32 sep_token_id "
    "seq_length summary_activation summary_first_dropout "
    "summary_proj_to_labels summary_type summary_use_proj suppress_tokens "
    "task_specific_params temperature tf_legacy_loss tokenizer_class top_k "
    "top_p torch_dtype torchscript transformers.js_config "
    "transformers_version trust_remote_code typical_p unk_token_id "
    "unsloth_fixed unsloth_version use_bfloat16 use_cache "
    "use_flash_attention use_flash_attention_2 use_flash_attn "
    "use_return_dict ";

// In the order of the alphabet.
constexpr MathKey mathKeys[] = {
    {"activation_dropout", Json::Kind::number, 0},
    {"add_cross_attention", Json::Kind::boolean, 0},
    {"alibi", Json::Kind::boolean, 0},
    {"alibi_bias_max", Json::Kind::null, 0},
    {"attention_bias", Json::Kind::boolean, 0},
    {"attention_chunk_size", Json::Kind::null, 0},
    {"attention_layers", Json::Kind::null, 0},
    {"attention_multiplier", Json::Kind::null, 0},
    {"attention_probs_dropout_prob", Json::Kind::number, 0},
    {"attention_scale", Json::Kind::null, 0},
    {"attention_sink", Json::Kind::boolean, 0},
    {"attention_sinks", Json::Kind::boolean, 0},
    {"attention_types", Json::Kind::null, 0},
    {"attention_window_size", Json::Kind::null, 0},
    {"attn_config", Json::Kind::null, 0},
    {"attn_dropout_prob", Json::Kind::number, 0},
    {"attn_logit_softcapping", Json::Kind::null, 0},
    {"attn_output_gate", Json::Kind::boolean, 0},
    {"attn_pdrop", Json::Kind::number, 0},
    {"attn_scale", Json::Kind::null, 0},
    {"attn_temperature_tuning", Json::Kind::boolean, 0},
    {"clip_qkv", Json::Kind::null, 0},
    {"dim_model_base", Json::Kind::null, 0},
    {"dropout", Json::Kind::number, 0},
    {"emb_dropout_prob", Json::Kind::number, 0},
    {"embd_pdrop", Json::Kind::number, 0},
    {"embedding_dropout", Json::Kind::number, 0},
    {"embedding_multiplier", Json::Kind::number, 1},
    {"embedding_scale", Json::Kind::number, 1},
    {"ffn_config", Json::Kind::null, 0},
    {"ffn_dropout", Json::Kind::number, 0},
    {"final_logit_softcapping", Json::Kind::null, 0},
    {"first_k_dense_replace", Json::Kind::number, 0},
    {"full_attn_mod", Json::Kind::number, 1},
    {"gated_attention", Json::Kind::boolean, 0},
    {"global_attn_every_n_layers", Json::Kind::null, 0},
    {"hidden_dropout", Json::Kind::number, 0},
    {"hidden_dropout_prob", Json::Kind::number, 0},
    {"interpolate_factor", Json::Kind::number, 1},
    {"is_encoder_decoder", Json::Kind::boolean, 0},
    {"kv_lora_rank", Json::Kind::null, 0},
    {"label_smoothing", Json::Kind::number, 0},
    {"layer_types", Json::Kind::array, 0},
    {"layerdrop", Json::Kind::number, 0},
    {"lm_head_bias", Json::Kind::boolean, 0},
    {"lm_head_multiplier", Json::Kind::number, 1},
    {"local_rope_theta", Json::Kind::null, 0},
    {"logit_scale", Json::Kind::number, 1},
    {"logit_soft_cap", Json::Kind::null, 0},
    {"logit_softcapping", Json::Kind::null, 0},
    {"logits_scaling", Json::Kind::number, 1},
    {"logits_soft_cap", Json::Kind::null, 0},
    {"mlp_bias", Json::Kind::boolean, 0},
    {"mlp_only_layers", Json::Kind::array, 0},
    {"moe_intermediate_size", Json::Kind::null, 0},
    {"moe_layer_freq", Json::Kind::null, 0},
    {"moe_layers", Json::Kind::null, 0},
    {"moe_num_experts", Json::Kind::number, 0},
    {"multi_query", Json::Kind::boolean, 0},
    {"multi_query_attention", Json::Kind::boolean, 0},
    {"mup_scale_factor", Json::Kind::null, 0},
    {"n_experts", Json::Kind::number, 0},
    {"n_routed_experts", Json::Kind::number, 0},
    {"n_shared_experts", Json::Kind::number, 0},
    {"neftune_noise_alpha", Json::Kind::number, 0},
    {"new_decoder_architecture", Json::Kind::boolean, 0},
    {"no_rope_layer_interval", Json::Kind::null, 0},
    {"no_rope_layers", Json::Kind::array, 0},
    {"nope_layer_interval", Json::Kind::null, 0},
    {"normalize_embedding", Json::Kind::boolean, 0},
    {"num_experts", Json::Kind::integer, 0},
    {"num_experts_per_tok", Json::Kind::integer, 0},
    {"num_experts_per_token", Json::Kind::null, 0},
    {"num_kv_shared_layers", Json::Kind::number, 0},
    {"num_local_experts", Json::Kind::integer, 0},
    {"num_moe_experts", Json::Kind::number, 0},
    {"num_nextn_predict_layers", Json::Kind::number, 0},
    {"num_shared_experts", Json::Kind::number, 0},
    {"num_sink_tokens", Json::Kind::number, 0},
    {"output_multiplier_scale", Json::Kind::number, 1},
    {"parallel_attn", Json::Kind::boolean, 0},
    {"parallel_attn_mlp", Json::Kind::boolean, 0},
    {"parallel_residual", Json::Kind::boolean, 0},
    {"partial_rotary_factor", Json::Kind::number, 1},
    {"per_layer_config", Json::Kind::object, 0},
    {"post_norm", Json::Kind::boolean, 0},
    {"pruned_heads", Json::Kind::object, 0},
    {"q_lora_rank", Json::Kind::null, 0},
    {"qk_layernorm", Json::Kind::boolean, 0},
    {"qk_norm", Json::Kind::boolean, 0},
    {"quantization_config", Json::Kind::null, 0},
    {"query_key_norm", Json::Kind::boolean, 0},
    {"query_pre_attn_scalar", Json::Kind::null, 0},
    {"resid_dropout", Json::Kind::number, 0},
    {"resid_pdrop", Json::Kind::number, 0},
    {"residual_dropout", Json::Kind::number, 0},
    {"residual_multiplier", Json::Kind::number, 1},
    {"residual_scale", Json::Kind::number, 1},
    {"rope_interleaved", Json::Kind::boolean, 0},
    {"rope_local_base_freq", Json::Kind::null, 0},
    {"rope_parameters", Json::Kind::null, 0},
    {"rope_pct", Json::Kind::number, 1},
    {"rope_scaling", Json::Kind::null, 0},
    {"rotary_dim", Json::Kind::null, 0},
    {"rotary_interleaved", Json::Kind::boolean, 0},
    {"rotary_pct", Json::Kind::number, 1},
    {"rotary_percentage", Json::Kind::number, 1},
    {"scale_depth", Json::Kind::null, 0},
    {"scale_emb", Json::Kind::number, 1},
    {"scale_embedding", Json::Kind::boolean, 0},
    {"shared_expert_intermediate_size", Json::Kind::number, 0},
    {"sliding_window", Json::Kind::null, 0},
    {"sliding_window_pattern", Json::Kind::number, 0},
    {"tie_encoder_decoder", Json::Kind::boolean, 0},
    {"use_alibi", Json::Kind::boolean, 0},
    {"use_alibi_embeddings", Json::Kind::boolean, 0},
    {"use_attention_sink", Json::Kind::boolean, 0},
    {"use_attention_sinks", Json::Kind::boolean, 0},
    {"use_bidirectional_attention", Json::Kind::boolean, 0},
    {"use_differential_attention", Json::Kind::boolean, 0},
    {"use_gated_attention", Json::Kind::boolean, 0},
    {"use_interleaved_rope", Json::Kind::boolean, 0},
    {"use_mla", Json::Kind::boolean, 0},
    {"use_moe", Json::Kind::boolean, 0},
    {"use_mrope", Json::Kind::boolean, 0},
    {"use_mup", Json::Kind::boolean, 0},
    {"use_nope", Json::Kind::boolean, 0},
    {"use_parallel_residual", Json::Kind::boolean, 0},
    {"use_post_attention_norm", Json::Kind::boolean, 0},
    {"use_post_norm", Json::Kind::boolean, 0},
    {"use_qk_layernorm", Json::Kind::boolean, 0},
    {"use_qk_norm", Json::Kind::boolean, 0},
    {"use_sliding_window", Json::Kind::boolean, 0},
    {"window_size", Json::Kind::null, 0},
};

} // namespace

bool isWordOf(std::string_view words, std::string_view name) {
  if (name.empty() || name.find(' ') != std::string_view::npos)
    return false;
  for (size_t at = words.find(name); at != std::string_view::npos;
       at = words.find(name, at + 1)) {
    size_t end = at + name.size();
    if ((at == 0 || words[at - 1] == ' ') && end < words.size() &&
        words[end] == ' ')
      return true;
  }
  return false;
}

bool isHarmless(const std::string &key) {
  return key.starts_with('_') || isWordOf(harmless, key);
}

const MathKey *findMathKey(const std::string &key) {
  const MathKey *found =
      std::find_if(std::begin(mathKeys), std::end(mathKeys),
                   [&](const MathKey &known) { return key == known.name; });
  return found == std::end(mathKeys) ? nullptr : found;
}

} // namespace meshwork::importer
