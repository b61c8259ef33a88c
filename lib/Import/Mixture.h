// Layers whose feed-forward block is a mixture of experts. Internal to
// lib/Import.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/Import/Families.h"
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

/// None of a family without experts. `ffn` is the width that a family has where
/// experts have none of their own.
std::optional<Mixture> readMixture(Config &config, const std::string &family,
                                   int64_t layers, int64_t ffn);
/// The keys of `config.json` that it reads.
std::vector<std::string> mixtureKeys(const std::string &family);

/// What a block is made of, beside the mixture.
struct BlockText {
  Init init;
  std::string activation, file, ssa; // "model.layers.3.", "l3_"
};
/// The sum of the chosen experts' results for `x`.
Value mixtureText(ModelText &text, const Mixture &mixture,
                  const BlockText &block, const Value &x);

} // namespace meshwork::importer
