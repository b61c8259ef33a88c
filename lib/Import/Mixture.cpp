// Mixtures of experts as Hugging Face's classes have them: a router without a
// bias, the largest scores' experts, gated projections without biases. Defaults
// of missing keys are those of the families' classes.
#include "lib/Import/Mixture.h"

#include "lib/Import/Hub.h"

#include <algorithm>

namespace meshwork::importer {
namespace {

/// What a bias that chooses experts is called in files, behind its block's
/// name.
constexpr std::string_view biasOfChoices = "gate.e_score_correction_bias";

void readSizes(Config &config, const MixtureFamily &family, int64_t ffn,
               Mixture &m) {
  std::string key = family.isBiased
                        ? family.count
                        : config.either(family.count, family.otherCount);
  auto size = [&](const char *name, int64_t usual) {
    return usual ? config.sizeOr(name, usual) : config.size(name);
  };
  m.experts = size(key.c_str(), family.experts);
  m.choices = size("num_experts_per_tok", family.choices);
  m.ffn =
      family.width ? config.sizeOr("moe_intermediate_size", family.width) : ffn;
  if (family.shared)
    m.shared = config.sizeOr("shared_expert_intermediate_size", family.shared);
  if (m.choices > m.experts)
    config.error("num_experts_per_tok", "found " + std::to_string(m.choices) +
                                            ", expected at most " + key + ", " +
                                            std::to_string(m.experts));
}

/// Groups of which the best are chosen from, and what stands beside them. Two
/// scores of each are added up.
void readBiased(Config &config, Mixture &m) {
  m.isBiased = true;
  m.isShare = false;
  m.shared = m.ffn * config.size("n_shared_experts");
  m.groups = config.sizeOr("n_group", 1);
  m.keptGroups = config.sizeOr("topk_group", 1);
  m.scale = config.positive("routed_scaling_factor", 1);
  if (int64_t every = config.sizeOr("moe_layer_freq", 1); every != 1)
    config.error("moe_layer_freq",
                 "found " + std::to_string(every) + ", expected 1");
  if (m.groups > 1 && (m.experts % m.groups != 0 || m.experts / m.groups < 2))
    return config.error("n_group", "found " + std::to_string(m.groups) +
                                       ", expected a divisor of "
                                       "n_routed_experts, " +
                                       std::to_string(m.experts) +
                                       ", that leaves two in each group");
  if (m.keptGroups > m.groups)
    config.error("topk_group", "found " + std::to_string(m.keptGroups) +
                                   ", expected at most n_group, " +
                                   std::to_string(m.groups));
  else if (int64_t most = m.experts / m.groups * m.keptGroups;
           m.choices > most && m.choices <= m.experts)
    config.error("num_experts_per_tok",
                 "found " + std::to_string(m.choices) +
                     ", expected at most what topk_group groups have, " +
                     std::to_string(most));
}

/// The first ones have none.
void readFirstDense(Config &config, Mixture &m) {
  const char *key = "first_k_dense_replace";
  if (config.isNull(key))
    return;
  const Json &found = *config.find(key);
  if (found.kind != Json::Kind::integer || found.integer < 0)
    return config.error(key, "found " + found.found() +
                                 ", expected 0 or a positive integer");
  for (size_t i = 0; i < m.layers.size(); ++i)
    m.layers[i] = static_cast<int64_t>(i) >= found.integer;
}

/// Layer i has experts if it is not listed and i + 1 is a multiple of the step.
void readLayers(Config &config, Mixture &m) {
  int64_t step = config.sizeOr("decoder_sparse_step", 1);
  for (size_t i = 0; i < m.layers.size(); ++i)
    m.layers[i] = (static_cast<int64_t>(i) + 1) % step == 0;
  if (config.isNull("mlp_only_layers"))
    return;
  const Json &dense = *config.find("mlp_only_layers");
  auto isLayer = [&](const Json &one) {
    return one.kind == Json::Kind::integer && one.integer >= 0 &&
           one.integer < static_cast<int64_t>(m.layers.size());
  };
  if (dense.kind != Json::Kind::array ||
      !std::all_of(dense.items.begin(), dense.items.end(), isLayer))
    return config.error("mlp_only_layers",
                        "found " + dense.found() +
                            ", expected an array of layers, from 0 to " +
                            std::to_string(m.layers.size() - 1) +
                            ", as num_hidden_layers says");
  for (const Json &one : dense.items)
    m.layers[static_cast<size_t>(one.integer)] = false;
}

/// The coefficient counts only with output_router_logits.
void readLosses(Config &config, const MixtureFamily &family, Mixture &m) {
  constexpr const char *key = "router_aux_loss_coef";
  constexpr double most = 1e30; // of an f32 much is left
  double coefficient = config.notNegative(key, family.coefficient);
  if (coefficient > most)
    config.error(key, "found a number above 1e30, expected one from 0 to 1e30");
  if (config.boolean("output_router_logits", false))
    m.balanceCoefficient = coefficient;
  if (config.notNegative("router_jitter_noise", 0) != 0)
    config.error("router_jitter_noise",
                 "found a number above 0; noise of the router's input is not "
                 "supported, expected 0");
}
} // namespace

uint64_t Mixture::idle(int64_t embed) const {
  return static_cast<uint64_t>(std::count(layers.begin(), layers.end(), true)) *
         3 * static_cast<uint64_t>(experts - choices) *
         static_cast<uint64_t>(ffn) * static_cast<uint64_t>(embed);
}

Mixture readMixture(Config &config, const MixtureFamily &family, int64_t layers,
                    int64_t ffn) {
  Mixture m;
  m.layers.assign(static_cast<size_t>(layers), true);
  readSizes(config, family, ffn, m);
  m.isNormalized =
      family.alwaysNormalizes || config.boolean("norm_topk_prob", false);
  if (family.someLayers)
    readLayers(config, m);
  if (family.isBiased) {
    readBiased(config, m);
    readFirstDense(config, m);
  } else {
    readLosses(config, family, m);
  }
  m.block = family.block;
  m.gate = family.gate;
  m.up = family.up;
  m.down = family.down;
  return m;
}

namespace {
/// The three projections of all experts, and the block that they are of.
class Experts {
public:
  Experts(ModelText &text, const Mixture &mixture, const BlockText &block,
          const Dim &embed)
      : text(text), m(mixture), block(block), embed(embed) {}

  /// Files have one tensor for each expert, or, as Transformers 5 keeps them in
  /// memory, one for all, where gate and up are one tensor's two halves.
  Value gate() { return projection("gate", m.gate, {experts, ffn, embed}, 0); }
  Value up() { return projection("up", m.up, {experts, ffn, embed}, m.ffn); }
  Value down() {
    StackedFile stacked{"experts.down_proj", {}, {}};
    return stack("down", m.down, {experts, embed, ffn}, stacked);
  }

private:
  Value projection(const char *name, const std::string &file, const Dims &dims,
                   int64_t offset) {
    StackedFile stacked{"experts.gate_up_proj",
                        {m.experts, 2 * m.ffn, embed.size},
                        {0, offset, 0}};
    return stack(name, file, dims, stacked);
  }
  Value stack(const char *name, const std::string &file, const Dims &dims,
              StackedFile stacked) {
    std::string prefix = block.file + m.block;
    stacked.name = prefix + stacked.name;
    return text.stack(block.ssa + "experts_" + name,
                      prefix + "experts.{}." + file + ".weight", block.init,
                      dims, stacked);
  }

  ModelText &text;
  const Mixture &m;
  const BlockText &block;
  Dim embed, experts{"experts", m.experts}, ffn{"expert_ffn", m.ffn};
};
} // namespace

/// What the router makes of a token's scores: experts, and their weights.
static std::pair<Value, Value> choose(ModelText &text, const Mixture &m,
                                      const std::string &ssa,
                                      const Value &logits,
                                      const Dims &choices) {
  Value all = m.isNormalized ? logits : text.softmax(ssa + "scores", logits);
  Value chosen = text.topK(ssa + "choices", all, choices);
  Value weights = text.pick(ssa + "chosen", all, chosen);
  // Of the chosen ones alone: what the others' scores add to both sums cancels.
  if (m.isNormalized)
    weights = text.softmax(ssa + "weights", weights);
  return {chosen, weights};
}

bool staysF32(const std::string &parameter) {
  return parameter.ends_with(biasOfChoices);
}

/// The bias is added where experts are chosen alone (arXiv 2412.19437).
static std::pair<Value, Value> chooseBiased(ModelText &text, const Mixture &m,
                                            const BlockText &block,
                                            const Value &logits,
                                            const Dims &choices) {
  const std::string &ssa = block.ssa;
  Value scores = text.activate(ssa + "scores", "sigmoid", logits);
  Value bias = text.untrained(ssa + "router_bias",
                              block.file + m.block + std::string(biasOfChoices),
                              logits.dims.back());
  Value biased = text.add(ssa + "biased_scores", scores, bias);
  Value chosen =
      text.topK(ssa + "choices", biased, choices, m.groups, m.keptGroups);
  Value weights = text.pick(ssa + "chosen", scores, chosen);
  return {chosen,
          text.scaled(ssa + "weights", weights, m.isNormalized, m.scale)};
}

Value mixtureText(ModelText &text, const Mixture &m, const BlockText &block,
                  const Value &x) {
  const std::string &ssa = block.ssa;
  // The dims of tokens, then one that no rule for "experts" splits: a token's
  // scores are compared with one another.
  Dims scores = x.dims, choices = x.dims;
  scores.back() = {"routed", m.experts};
  choices.back() = {"choices", m.choices};
  Value router = text.parameter(ssa + "router_weight",
                                block.file + m.block + "gate.weight",
                                block.init, {scores.back(), x.dims.back()});
  Value logits =
      text.contract(ssa + "router", "bse,re->bsr", x, router, scores);
  auto [chosen, weights] = m.isBiased
                               ? chooseBiased(text, m, block, logits, choices)
                               : choose(text, m, ssa, logits, choices);
  Experts experts(text, m, block, x.dims.back());
  Value gate = experts.gate(), up = experts.up(), down = experts.down();
  return text.experts(ssa + "experts", block.activation, x, chosen, weights,
                      {gate, up, down});
}

} // namespace meshwork::importer
