// The numbers of a Llama-style model. Internal to lib/Import.
#pragma once

#include <string>
#include <vector>

#include "lib/Import/Mixture.h"
#include "lib/Import/Rope.h"

namespace meshwork::importer {

/// What norms of queries and keys average over.
enum class QkNorm { none, head, all };

struct Llama {
  int64_t vocabulary, embed, ffn, layers, heads, kvHeads, headDim;
  std::string activation;
  double epsilon, deviation, attentionRate;
  bool qkvBias, outputBias, mlpBias, tied;
  QkNorm qkNorm;
  std::vector<int64_t> windows;   // of each layer; 0 sees all before
  std::optional<int64_t> padding; // a row of the embedding without gradient
  Rope rope;
  int64_t maxPositions; // that it is made for; 0: not said
  std::optional<Mixture> mixture;
};

Llama readLlama(const Source &source, Config &config,
                const std::string &family);

} // namespace meshwork::importer
