#include "TinyConfigs.h"

#include "lib/Import/Import.h"

namespace meshwork::interpreter {
namespace {

std::string imported(const std::string &config) {
  importer::Result result = importer::importConfig(config, "config.json");
  EXPECT_TRUE(result.model) << textOf(result.diagnostics);
  return result.model.value_or("module {}");
}

std::string key(const char *name, int64_t value) {
  return std::string(", \"") + name + "\": " + std::to_string(value);
}

std::string quotedList(const std::vector<std::string> &items) {
  std::string text;
  for (const std::string &item : items)
    text += (text.empty() ? "\"" : ", \"") + item + "\"";
  return "[" + text + "]";
}

constexpr int64_t batch = 8;
} // namespace

std::string tinyGpt2(const TinySizes &sizes) {
  return imported(
      R"({"model_type": "gpt2", "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
    "initializer_range": 0.02, "tie_word_embeddings": true, )" +
      std::string(
          sizes.drops
              ? R"("resid_pdrop": 0.2, "embd_pdrop": 0.1, "attn_pdrop": 0.25)"
              : R"("resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0)") +
      key("vocab_size", sizes.vocabulary) + key("n_inner", sizes.ffn) +
      key("n_embd", sizes.hidden) + key("n_head", sizes.heads) +
      key("n_layer", sizes.layers) + key("n_positions", sizes.positions) + "}");
}

std::string tinyLlama(const TinySizes &sizes) {
  return imported(
      R"({"model_type": ")" + std::string(sizes.window ? "mistral" : "llama") +
      R"(", "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "pad_token_id": 1, "max_position_embeddings": 16, "initializer_range": 0.02, "tie_word_embeddings": )" +
      std::string(sizes.tied ? "true" : "false") +
      key("vocab_size", sizes.vocabulary) +
      key("intermediate_size", sizes.ffn) + key("hidden_size", sizes.hidden) +
      key("num_attention_heads", sizes.heads) +
      key("num_key_value_heads", sizes.keyHeads) +
      key("num_hidden_layers", sizes.layers) +
      (sizes.window ? key("sliding_window", sizes.window) : "") + "}");
}

std::string tinyMixture(const TinySizes &sizes, bool isQwen) {
  return imported(
      R"({"model_type": ")" + std::string(isQwen ? "qwen3_moe" : "mixtral") +
      R"(", "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "initializer_range": 0.02, "tie_word_embeddings": )" +
      std::string(sizes.tied ? "true" : "false") +
      (isQwen ? R"(, "num_experts": 4, "mlp_only_layers": [1])"
              : R"(, "num_local_experts": 4)") +
      key("vocab_size", sizes.vocabulary) +
      key("intermediate_size", sizes.ffn) +
      (isQwen ? key("moe_intermediate_size", sizes.ffn) +
                    key("head_dim", sizes.hidden / sizes.heads)
              : "") +
      key("num_experts_per_tok", 2) + key("hidden_size", sizes.hidden) +
      key("num_attention_heads", sizes.heads) +
      key("num_key_value_heads", sizes.keyHeads) +
      key("num_hidden_layers", sizes.layers) + "}");
}

std::string Strategy::spec() const {
  std::vector<std::string> axes;
  for (auto [axis, size] :
       {std::pair("pp", pp), {"dp", dp}, {"fsdp", fsdp}, {"tp", tp}})
    axes.push_back(axis + ("=" + std::to_string(size)));
  if (ep > 1)
    axes.push_back("ep=" + std::to_string(ep));
  std::string text = "[mesh]\naxes = " + quotedList(axes) +
                     "\n[batch]\nglobal = 16\nmicro = " +
                     std::to_string(batch / (dp * fsdp * ep)) +
                     "\nsequence = " + std::to_string(sequence) + "\n" +
                     documents + "\n[precision]\n" + precision +
                     "\n[optimizer]\n"
                     "clip_grad_norm = 0.5\n";
  if (!experts.empty())
    text += "[experts]\n" + experts + "\n";
  if (!pipeline.empty())
    text += "[pipeline]\n" + pipeline + "\n";
  if (sequenceParallel || !rules.empty())
    text += "[shard]\n" + rules + "\n";
  if (sequenceParallel)
    text += "residual_sequence = [\"tp\"]\n";
  if (zero > 0)
    text += "[zero]\nstage = " + std::to_string(zero) +
            "\naxes = " + quotedList(zeroAxes) + "\n";
  return text;
}

std::string Strategy::name() const {
  std::string text = "dp" + std::to_string(dp) + " fsdp" +
                     std::to_string(fsdp) + " tp" + std::to_string(tp);
  if (pp > 1)
    text = "pp" + std::to_string(pp) + " (" + pipeline + ") " + text;
  if (ep > 1)
    text += " ep" + std::to_string(ep);
  text += rules + experts;
  if (sequenceParallel)
    text += " sp";
  if (zero > 0) {
    text += " zero" + std::to_string(zero) + " over";
    for (const std::string &axis : zeroAxes)
      text += " " + axis;
  }
  return text;
}

const StepResult &expectedStep(const std::string &model,
                               const Strategy &strategy, int64_t vocabulary) {
  static std::map<std::tuple<std::string, int64_t, std::string, std::string>,
                  StepResult>
      known;
  auto [entry, isNew] = known.try_emplace(
      {model, strategy.sequence, strategy.documents, strategy.precision});
  if (isNew) {
    Strategy alone;
    alone.sequence = strategy.sequence;
    alone.documents = strategy.documents;
    alone.precision = strategy.precision;
    Compiled one(model, alone.spec(), 256, "step");
    EXPECT_TRUE(one.program) << one.diagnostics;
    if (one.program)
      entry->second = runStep(one, randomStep(one, vocabulary));
  }
  return entry->second;
}

void checkStrategy(const std::string &model, const Strategy &strategy,
                   int64_t vocabulary, int64_t headChunk) {
  Compiled many(model, strategy.spec(), headChunk);
  ASSERT_TRUE(many.program) << strategy.name() << "\n" << many.diagnostics;
  ASSERT_EQ(many.numRanks(), strategy.pp * strategy.dp * strategy.fsdp *
                                 strategy.tp * strategy.ep);
  StepData data = randomStep(many, vocabulary);
  StepResult result = runStep(many, data);
  EXPECT_EQ(compareSteps(result, expectedStep(model, strategy, vocabulary)), "")
      << strategy.name();
  EXPECT_EQ(many.runAsPlan(vocabulary), "") << strategy.name();
}

} // namespace meshwork::interpreter
