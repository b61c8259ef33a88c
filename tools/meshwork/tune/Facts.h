// What the search knows of a model before it compiles anything.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace meshwork::tune {

struct Facts {
  std::string text; // the model in the transformer dialect
  /// The same with fewer layers, by how many; of what has enough, all alike.
  std::map<int64_t, std::string> shallow;
  /// Of one sequence, forward and backward, over all ranks: products and all
  /// else but attention; and attention, as plans count it.
  double flops = 0, attentionFlops = 0;
  double parameters = 0;        // trained elements, tied ones once
  double parametersOfLayer = 0; // of the largest one
  double leastOfLayer = 0;      // parameters of the smallest one
  /// Model flops of each layer, of one sequence, with the head in the last one:
  /// what balances stages (passes/pipeline/Stages.h).
  std::vector<double> flopsOfLayers;
  int64_t layers = 0; // that the model declares
  int64_t kinds = 0;  // of layers; 0: they are no chain
  bool hasExperts = false, hasAttention = false;
};

/// JSON, both ways; what is read was written by this process.
std::string toJson(const Facts &facts);
Facts factsFromJson(const std::string &json);

} // namespace meshwork::tune
