#include "runtime/selftest/PlanTexts.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace meshwork::runtime {

uint32_t sharersOf(uint32_t ranks) {
  for (uint32_t divisor = 8; divisor > 1; --divisor)
    if (ranks % divisor == 0)
      return divisor;
  return 1;
}

std::vector<PlanText> planTexts(uint32_t ranks) {
  uint32_t sharers = sharersOf(ranks);
  auto with = [&](const char *axis) {
    std::vector<std::string> axes = {absl::StrCat(axis, "=", sharers)};
    if (ranks > sharers)
      axes.insert(axes.begin(), absl::StrCat("dp=", ranks / sharers));
    return axes;
  };
  return {
      {"zero-3", false, {absl::StrCat("dp=", ranks)}, "[zero]\nstage = 3\n"},
      {"tensor and sequence parallel", false, with("tp"),
       "[shard]\nresidual_sequence = [\"tp\"]\n"},
      {"pipeline", false, with("pp"), "[pipeline]\nschedule = \"1f1b\"\n"},
      {"context parallel ring", false, with("cp"),
       "[context]\nmethod = \"ring\"\nlayout = \"zigzag\"\n"},
      {"experts", true, with("ep"), "[experts]\nexchange = \"all_to_all\"\n"}};
}

std::string specText(const PlanText &text, uint32_t ranks, bool onOneRank,
                     const std::string &arch) {
  std::string axes = absl::StrJoin(text.axes, "\", \"");
  std::string target =
      arch.empty() ? "device = \"cpu\"\n"
                   : absl::StrCat("device = \"cuda\"\narch = \"", arch, "\"\n");
  return absl::StrCat(
      "[mesh]\naxes = [", onOneRank ? "" : "\"" + axes + "\"", "]\n[batch]\n",
      "global = ", 2 * ranks, "\nmicro = 1\nsequence = 64\n",
      "[precision]\ncompute = \"f32\"\n[optimizer]\nkind = \"sgd\"\n[target]\n",
      target, onOneRank ? "" : text.keys);
}

std::string modelText(bool hasExperts, uint32_t ranks) {
  constexpr uint32_t headSize = 16;
  constexpr uint32_t vocabulary = 840; // any number up to 8 divides it
  uint32_t sharers = sharersOf(ranks), width = 2 * sharers * headSize;
  std::string mixture = absl::StrCat(R"("num_local_experts": )", 2 * sharers,
                                     R"(, "num_experts_per_tok": 2, )");
  return absl::StrCat(
      R"({"architectures": [")", hasExperts ? "Mixtral" : "Llama",
      R"(ForCausalLM"], "model_type": ")", hasExperts ? "mixtral" : "llama",
      R"(", "vocab_size": )", vocabulary, R"(, "hidden_size": )", width,
      R"(, "intermediate_size": )", 2 * width, R"(, "num_hidden_layers": )",
      hasExperts ? 2 : 8, R"(, "num_attention_heads": )", 2 * sharers,
      R"(, "num_key_value_heads": )", sharers, ", ", hasExperts ? mixture : "",
      R"("hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 10000.0,)",
      R"( "max_position_embeddings": 64, "initializer_range": 0.02,)",
      R"( "tie_word_embeddings": false})");
}

} // namespace meshwork::runtime
