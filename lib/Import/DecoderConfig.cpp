// Defaults of missing keys are those of the families' classes in Hugging Face's
// Transformers, as their documentation gives them.
#include "lib/Import/DecoderConfig.h"
#include "lib/Import/Keys.h"
#include "meshwork/Text/Counted.h"

#include <algorithm>
#include <cmath>

namespace meshwork::importer {
namespace {

/// null stands for as many as queries have; what absence stands for depends on
/// the family.
void readKeyHeads(Config &config, const Family &family, Decoder &m) {
  m.kvHeads = m.heads;
  if (!family.groupsHeads)
    return;
  const char *key = "num_key_value_heads";
  bool isDefault = !config.find(key) && family.keyHeads > 0;
  if (isDefault)
    m.kvHeads = family.keyHeads;
  else
    m.kvHeads = config.sizeOr(key, m.heads);
  if (m.heads % m.kvHeads != 0)
    config.error(key, (isDefault ? "missing, so it is " +
                                       std::string(family.type) + "'s default "
                                 : "found ") +
                          std::to_string(m.kvHeads) +
                          ", expected a divisor of num_attention_heads, " +
                          std::to_string(m.heads));
}

/// Whether a head's size follows from the other sizes.
bool derivesHeadDim(Config &config, const Family &family) {
  return config.isNull("head_dim") &&
         (family.headDim == 0 || config.find("head_dim"));
}

/// 0: there is no default.
int64_t sizeOf(Config &config, const char *key, int64_t fallback) {
  return fallback > 0 ? config.sizeOr(key, fallback) : config.size(key);
}

void readHeads(Config &config, const Family &family, Decoder &m) {
  m.heads = sizeOf(config, "num_attention_heads", family.heads);
  readKeyHeads(config, family, m);
  bool derived = derivesHeadDim(config, family);
  m.headDim =
      derived ? m.embed / m.heads : config.sizeOr("head_dim", family.headDim);
  if (!family.hasHeadDim && !derived && m.headDim * m.heads != m.embed)
    config.error("head_dim", "found " + std::to_string(m.headDim) + ", but " +
                                 std::string(family.type) +
                                 " has hidden_size / num_attention_heads; "
                                 "leave it out");
  if (derived && m.embed % m.heads != 0)
    config.error("hidden_size",
                 "found " + std::to_string(m.embed) +
                     ", expected a multiple of num_attention_heads, " +
                     std::to_string(m.heads) + ", or a key head_dim");
  else if (m.headDim % 2 != 0 && !m.names->positions)
    config.error(derived ? "num_attention_heads" : "head_dim",
                 "gives heads of " + counted(m.headDim, "element") +
                     ", expected an even number to rotate");
}

bool readFlag(Config &config, const FlagKey &flag) {
  return flag.key ? config.boolean(flag.key, flag.fallback) : flag.fallback;
}

void readBiases(Config &config, const Family &family, Decoder &m) {
  m.qkvBias = readFlag(config, family.qkvBias);
  m.outputBias = family.outputBiasKey
                     ? config.boolean(family.outputBiasKey, family.outputBias)
                     : m.qkvBias && family.outputBias;
  m.mlpBias = readFlag(config, family.mlpBias);
}

/// Names that other families have for biases, of which this one has its own.
void checkOtherBiases(Config &config, const Family &family) {
  for (const char *key :
       {"use_bias", "attn_bias", "qkv_bias", "use_mlp_bias"}) {
    if (family.qkvBias.key && std::string_view(key) == family.qkvBias.key)
      continue; // a key of its own
    bool has = !family.qkvBias.key && family.qkvBias.fallback &&
               std::string_view(key) == "qkv_bias";
    if (config.boolean(key, has) != has)
      config.error(key, std::string("found ") + (has ? "false" : "true") +
                            ", but " + std::string(family.type) +
                            (has ? " always has biases of q, k and v; expected "
                                   "true"
                                 : " knows no such key; expected false"));
  }
}

void checkSizes(Config &config, const Family &family, const Decoder &m) {
  checkElements(config, "vocab_size", {m.vocabulary, m.embed});
  checkElements(config, family.ffnKey, {m.ffn, m.embed});
  if (m.names->positions)
    checkElements(config, "max_position_embeddings",
                  {m.maxPositions + m.firstPosition, m.embed});
  if (m.mixture)
    checkElements(config,
                  config.find("moe_intermediate_size") ? "moe_intermediate_size"
                                                       : "intermediate_size",
                  {m.mixture->experts, m.mixture->ffn, m.embed, 2});
  if (m.mixture && m.mixture->isBiased)
    checkElements(config, "n_shared_experts", {m.mixture->shared, m.embed});
  checkElements(config, "num_attention_heads", {m.heads, m.headDim, m.embed});
}

/// How many elements of a head turn: all, or the part that a key says, which
/// Transformers 5 keeps in rope_parameters.
int64_t readRotated(Config &config, const Family &family, int64_t headDim) {
  if (!family.rotatedKey)
    return std::max<int64_t>(2, headDim / 2 * 2); // an odd one has been told
  std::string key = family.rotatedKey;
  double part = config.positive(key, family.rotated);
  if (const Json *inner = config.find("rope_parameters"))
    for (size_t i = 0; i < inner->keys.size(); ++i)
      if (inner->keys[i] == "partial_rotary_factor" &&
          inner->items[i].isNumber()) {
        key = "rope_parameters.partial_rotary_factor";
        part = inner->items[i].number;
      }
  auto rotated = static_cast<int64_t>(std::clamp(part, 0.0, 1.0) *
                                      static_cast<double>(headDim));
  if (part <= 1 && rotated >= 2 && rotated % 2 == 0)
    return rotated;
  config.error(key, "turns " + counted(rotated, "element") + " of a head's " +
                        std::to_string(headDim) +
                        ", expected a part from 0 to 1 that makes an even "
                        "number of them");
  return 2;
}

/// The frequencies that turn a part of a head, of layers that `more` does not
/// change. Learned positions turn none.
void readRopes(const Source &source, Config &config, const Family &family,
               Decoder &m) {
  m.ropeOf.assign(static_cast<size_t>(m.layers), m.names->positions ? -1 : 0);
  if (m.names->positions)
    return;
  // Frequencies are a list in the model's text.
  constexpr int64_t largestHead = 65536;
  if (m.headDim > largestHead) {
    config.error("head_dim", "found " + std::to_string(m.headDim) +
                                 ", expected at most " +
                                 std::to_string(largestHead));
    m.headDim = largestHead;
  }
  int64_t rotated = readRotated(config, family, m.headDim);
  m.ropes = {readRope(config, source, rotated, family.thetaKey, family.theta)};
}

void readNumbers(Config &config, const Family &family, Decoder &m) {
  constexpr double most = 1e30; // of an f32 much is left
  for (const NumberKey &one : family.numbers) {
    double &value = m.*one.value;
    bool isRate = one.range == NumberKey::Range::rate;
    value = isRate ? config.rate(one.key, one.fallback)
                   : config.positive(one.key, one.fallback);
    if (!isRate && value != one.fallback && (value > most || value < 1 / most))
      config.error(one.key, "found " + config.find(one.key)->found() +
                                ", expected a number from 1e-30 to 1e30");
  }
  m.attentionRate = config.rate("attention_dropout", family.attentionRate);
  m.epsilon = family.epsilonKey
                  ? config.positive(family.epsilonKey, family.epsilon)
                  : family.epsilon;
  m.deviation = config.notNegative(family.deviationKey, family.deviation);
  const char *positions = "max_position_embeddings";
  bool isOpen = config.isNull(positions) && !m.names->positions;
  m.maxPositions = isOpen ? 0 : config.size(positions);
  m.firstPosition = family.firstPosition;
}

void readSizes(Config &config, const Family &family, Decoder &m) {
  m.vocabulary = sizeOf(config, "vocab_size", family.vocabulary);
  m.embed = config.size("hidden_size");
  m.ffn = config.size(family.ffnKey);
  m.layers = config.size("num_hidden_layers");
  if (m.layers > maxLayers) {
    config.error("num_hidden_layers", "found " + std::to_string(m.layers) +
                                          ", expected at most " +
                                          std::to_string(maxLayers));
    m.layers = 1;
  }
  if (family.mixture)
    m.mixture = readMixture(config, *family.mixture, m.layers, m.ffn);
  readHeads(config, family, m);
}

constexpr Names llamaNames;

} // namespace

Decoder readDecoder(const Source &source, Config &config) {
  const Family &family = source.family;
  Decoder m;
  m.names = family.names ? family.names : &llamaNames;
  m.norm = family.norm;
  m.qkNorm = family.qkNorm;
  m.qkv = family.qkv;
  m.feedForward = family.feedForward;
  readSizes(config, family, m);
  readBiases(config, family, m);
  checkOtherBiases(config, family);
  m.isParallel = readFlag(config, family.parallel);
  (void)config.choice("position_embedding_type",
                      m.names->positions
                          ? std::vector<std::string>{"absolute", "learned"}
                          : std::vector<std::string>{"rope", "rotary"});
  readWindows(config, family, m);
  m.activation =
      readActivation(config, family.activationKey, family.activation);
  m.tied = config.boolean("tie_word_embeddings", family.tied);
  readPadding(config, family, m);
  readNumbers(config, family, m);
  if (family.scalesEmbedding)
    m.embeddingScale = std::sqrt(static_cast<double>(m.embed));
  checkSizes(config, family, m);
  readRopes(source, config, family, m);
  if (family.more)
    family.more(source, config, m);
  return m;
}

} // namespace meshwork::importer
