// Models of real families, small enough for hundreds of runs, and what a spec
// says of a strategy.
#pragma once

#include "Partitioned.h"

namespace meshwork::interpreter {

/// GPT-2 with dropout in each place and a tied head; 12 tokens.
std::string tinyGpt2(int64_t vocabulary = 12, int64_t ffn = 8);
/// Llama with grouped queries: 4 heads share `keyHeads`.
std::string tinyLlama(int64_t keyHeads, bool tied, int64_t vocabulary = 12,
                      int64_t ffn = 8, int64_t layers = 1);

struct Strategy {
  int64_t dp = 1, fsdp = 1, tp = 1;
  bool sequenceParallel = false;
  unsigned zero = 0;
  std::vector<std::string> zeroAxes = {};
  int64_t sequence = 4;

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
