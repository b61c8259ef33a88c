// Layers whose feed-forward block is a mixture of experts. Internal to
// lib/Import.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/Import/Config.h"
#include "lib/Import/ModelText.h"

namespace meshwork::importer {

struct Mixture {
  int64_t experts, choices, ffn;
  int64_t shared = 0;  // width of the expert that has all tokens; 0: none
  bool isShare = true; // of which a token gets as much as a router says
  bool isNormalized;   // the weights of a token's choices add up to 1
  /// Scores are sigmoids, to which a bias that is not trained is added where
  /// experts are chosen: those of the best groups.
  bool isBiased = false;
  int64_t groups = 1, keptGroups = 1;
  double scale = 1;              // of the weights, then
  double balanceCoefficient = 0; // of the loss for even routing
  std::vector<bool> layers;      // that have one
  // Names in files: of the block, and of an expert's projections.
  std::string block, gate, up, down;

  bool has(int64_t layer) const { return layers[static_cast<size_t>(layer)]; }
  /// Elements of weights that a token does not use.
  uint64_t idle(int64_t embed) const;
};

/// What a family's class has where keys are missing, and how files name it.
struct MixtureFamily {
  const char *count, *otherCount;   // keys: how many experts there are
  int64_t experts = 0, choices = 0; // 0: a key must say
  int64_t width = 0;                // of an expert; 0: intermediate_size
  double coefficient = 0.001;       // of the loss for even routing
  bool alwaysNormalizes = false;    // else norm_topk_prob says
  bool someLayers = false; // decoder_sparse_step and mlp_only_layers say which
  int64_t shared = 0;      // width of the shared expert; 0: it has none
  bool isBiased = false;   // it chooses as DeepSeek-V3 does
  const char *block = "mlp.", *gate = "gate_proj", *up = "up_proj",
             *down = "down_proj"; // in files
};

/// `ffn` is the width that a family has where experts have none of their own.
Mixture readMixture(Config &config, const MixtureFamily &family, int64_t layers,
                    int64_t ffn);

/// What a block is made of, beside the mixture.
struct BlockText {
  Init init;
  std::string activation, file, ssa; // "model.layers.3.", "l3_"
};
/// The sum of the chosen experts' results for `x`.
Value mixtureText(ModelText &text, const Mixture &mixture,
                  const BlockText &block, const Value &x);

} // namespace meshwork::importer
