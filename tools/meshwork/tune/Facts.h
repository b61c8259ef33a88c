// What the search knows of a model before it compiles anything.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace meshwork::tune {

/// Layers that are alike but for their weights: of one model with windows that
/// alternate there are two.
struct LayerKind {
  int64_t layers = 0;  // of the model
  int64_t shallow = 0; // of these, in Facts::shallow
  std::string deeper;  // shallow, with layersMore of it more; "": has no more
};

/// By so many layers of a kind one text differs from another.
inline constexpr int64_t layersMore = 2;

struct Facts {
  std::string text; // the model in the transformer dialect
  /// The same with fewer layers: the last one and the first ones of each kind,
  /// and then with some more of one kind. None of what has few layers.
  std::string shallow;
  std::vector<LayerKind> kinds;
  /// Of one sequence, forward and backward, over all ranks: products and all
  /// else but attention; and attention, as plans count it.
  double flops = 0, attentionFlops = 0;
  double parameters = 0; // trained elements, tied ones once
  /// Elements of each parameter, and how many have as many.
  std::map<double, int64_t> sizes, sizesOfLayer; // the latter of the smallest
  double leastOfLayer = 0; // parameters of the smallest one
  /// What divides this divides a dim of each parameter; 0: there is none.
  int64_t dimOfAll = 0;
  /// Parameters of no layer: what the first stage of a pipeline has, like
  /// embeddings, and what the last one alone has, like a head that is not tied.
  double ofFirstStage = 0, ofLastStage = 0;
  /// Model flops of each layer, of one sequence, with the head in the last one:
  /// what balances stages (passes/pipeline/Stages.h).
  std::vector<double> flopsOfLayers;
  double crossing = 0; // elements that one layer hands to the next, at least
  uint32_t vocabulary = 1;
  int64_t layers = 0;               // that the model declares
  std::vector<int64_t> kindOfLayer; // numbers in `kinds`
  bool hasExperts = false, hasAttention = false;
};

/// JSON, both ways; what is read was written by this process.
std::string toJson(const Facts &facts);
Facts factsFromJson(const std::string &json);

} // namespace meshwork::tune
