// Models of real families, small enough for hundreds of runs, and what a spec
// says of a strategy.
#pragma once

#include "Partitioned.h"

namespace meshwork::interpreter {

struct TinySizes {
  int64_t keyHeads = 0; // Llama alone
  bool tied = false;    // GPT-2 always is
  int64_t vocabulary = 12, ffn = 8, hidden = 8, heads = 4, layers = 1;
  int64_t positions = 8; // GPT-2's table
  int64_t window = 0;    // Llama alone: keys that a query sees; 0: all
  bool drops = true;     // GPT-2 alone: dropout in each place
};
/// GPT-2, with dropout in each place or without.
std::string tinyGpt2(const TinySizes &sizes = {});
/// Llama with grouped queries: the heads share `keyHeads`.
std::string tinyLlama(const TinySizes &sizes);
/// Mixtral, where two of four experts are chosen; or Qwen3-MoE, whose weights
/// of choices do not add up to 1 and whose second layer has no experts.
std::string tinyMixture(const TinySizes &sizes, bool isQwen = false);

/// All keys of [batch] about documents.
inline constexpr const char *allOfDocuments =
    "documents = \"separate\"\npositions = \"document\"\n"
    "document_end_loss = false";

struct Strategy {
  int64_t dp = 1, fsdp = 1, tp = 1;
  bool sequenceParallel = false;
  unsigned zero = 0;
  std::vector<std::string> zeroAxes = {};
  int64_t sequence = 4;
  /// Keys of [batch] about documents.
  std::string documents = {};
  /// Of [precision]. Only stochastic rounding rounds here, storage does not.
  std::string precision = "compute = \"f32\"";
  /// Ranks of a pipeline, and keys of [pipeline].
  int64_t pp = 1;
  std::string pipeline = {};
  /// Ranks that share experts, each with samples of its own; and what stands in
  /// [shard] beside that.
  int64_t ep = 1;
  std::string rules = {};
  std::string experts = {}; // keys of [experts]

  /// The spec of a step of two microbatches with eight samples over all ranks.
  std::string spec() const;
  std::string name() const;
};

/// What one rank computes, on whole tensors; kept, since many ask.
const StepResult &expectedStep(const std::string &model,
                               const Strategy &strategy, int64_t vocabulary);

/// Compiles for all ranks, runs a step, compares with one rank.
void checkStrategy(const std::string &model, const Strategy &strategy,
                   int64_t vocabulary = 12, int64_t headChunk = 256);

} // namespace meshwork::interpreter
