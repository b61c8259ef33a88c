// Defaults of missing keys are those of the families' classes in Hugging Face's
// Transformers, as their documentation gives them.
#include "lib/Import/Family.h"
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
  else if (m.headDim % 2 != 0)
    config.error(derived ? "num_attention_heads" : "head_dim",
                 "gives heads of " + counted(m.headDim, "element") +
                     ", expected an even number to rotate");
}

bool readFlag(Config &config, const FlagKey &flag) {
  return flag.key ? config.boolean(flag.key, flag.fallback) : flag.fallback;
}

void readBiases(Config &config, const Family &family, Decoder &m) {
  m.qkvBias = readFlag(config, family.qkvBias);
  m.outputBias = m.qkvBias && family.outputBias;
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

/// The window that sliding layers use; 0 when the family or file has none.
int64_t readWindow(Config &config, const Windows &of) {
  if (of.sliding == Sliding::never)
    return 0;
  int64_t window = config.find("sliding_window")
                       ? config.sizeOr("sliding_window", 0)
                       : of.size;
  bool slides = of.sliding == Sliding::always ||
                config.boolean("use_sliding_window", false);
  return slides ? window : 0;
}

void readLayerTypes(Config &config, const Json &types, int64_t window,
                    const Family &family, Decoder &m) {
  if (types.kind != Json::Kind::array ||
      static_cast<int64_t>(types.items.size()) != m.layers) {
    config.error("layer_types", "expected an array of " +
                                    counted(m.layers, "name") +
                                    ", as many as num_hidden_layers");
    return;
  }
  for (size_t i = 0; i < types.items.size(); ++i) {
    const Json &type = types.items[i];
    bool sliding = type.text == "sliding_attention";
    if (!sliding && type.text != "full_attention")
      config.error("layer_types", "found " + type.found() + " for layer " +
                                      std::to_string(i) +
                                      ", expected \"full_attention\" or "
                                      "\"sliding_attention\"");
    else if (sliding && window == 0)
      config.error("layer_types",
                   "layer " + std::to_string(i) +
                       " slides, but there is no sliding_window" +
                       (family.windows.sliding == Sliding::asked
                            ? ", or use_sliding_window is false"
                            : ""));
    else if (!sliding && window > 0 && !family.windows.mixes)
      config.error("layer_types", "layer " + std::to_string(i) +
                                      " is full, but with a sliding_window all "
                                      "layers of " +
                                      std::string(family.type) + " slide");
    m.windows[i] = sliding ? window : 0;
  }
}

void readWindows(Config &config, const Family &family, Decoder &m) {
  int64_t window = readWindow(config, family.windows);
  int64_t fullLayers = 0;
  if (int64_t usual = family.windows.fullLayers; usual > 0) {
    const Json *given = config.find("max_window_layers");
    bool none =
        given && given->kind == Json::Kind::integer && given->integer == 0;
    fullLayers = none ? 0 : config.sizeOr("max_window_layers", usual);
  }
  int64_t every = 0;
  if (family.windows.fullEvery > 0)
    every = config.sizeOr("sliding_window_pattern", family.windows.fullEvery);
  for (int64_t layer = 0; layer < m.layers; ++layer) {
    bool isFull = layer < fullLayers || (every > 0 && (layer + 1) % every == 0);
    m.windows.push_back(isFull ? 0 : window);
  }
  if (!config.isNull("layer_types"))
    readLayerTypes(config, *config.find("layer_types"), window, family, m);
}

/// Whether `id` is the token, or one of the tokens, of this key.
bool isToken(Config &config, const char *key, int64_t id) {
  const Json *found = config.find(key);
  auto isId = [&](const Json &one) {
    return one.kind == Json::Kind::integer && one.integer == id;
  };
  return found && (isId(*found) || (found->kind == Json::Kind::array &&
                                    std::any_of(found->items.begin(),
                                                found->items.end(), isId)));
}

/// A token of the data that is the padding too never learns, unless the head
/// shares its row.
void warnOfPadding(Config &config, const Decoder &m) {
  for (const char *key : {"eos_token_id", "bos_token_id"})
    if (!m.tied && isToken(config, key, *m.padding))
      config.warning("pad_token_id",
                     "is " + std::to_string(*m.padding) + ", and so is " + key +
                         ": the embedding of this token gets no gradient and "
                         "does not learn; set pad_token_id to null if the "
                         "data holds the token");
}

/// Of a class that has one where the key is missing.
void readClassPadding(Config &config, const Family &family, Decoder &m) {
  m.padding = family.padding;
  if (*m.padding >= m.vocabulary)
    config.error("pad_token_id",
                 "missing, so it is " + std::string(family.type) +
                     "'s default " + std::to_string(*m.padding) +
                     ", expected null or a token below vocab_size, " +
                     std::to_string(m.vocabulary));
}

/// As PyTorch's padding_idx: negative ones count from the end.
void readPadding(Config &config, const Family &family, Decoder &m) {
  if (!family.pads)
    return;
  const Json *id = config.find("pad_token_id");
  if (!id && family.padding)
    return readClassPadding(config, family, m);
  if (config.isNull("pad_token_id"))
    return;
  if (id->kind != Json::Kind::integer || id->integer < -m.vocabulary ||
      id->integer >= m.vocabulary) {
    config.error("pad_token_id", "found " + id->found() +
                                     ", expected null or a token below "
                                     "vocab_size, " +
                                     std::to_string(m.vocabulary));
    return;
  }
  m.padding = id->integer < 0 ? id->integer + m.vocabulary : id->integer;
  if (id->integer < 0)
    config.warning("pad_token_id",
                   "found " + id->found() + ", taken as token " +
                       std::to_string(*m.padding) +
                       ", whose embedding gets no gradient; PyTorch counts "
                       "from the end; expected null if there is none");
  warnOfPadding(config, m);
}

void checkSizes(Config &config, const Decoder &m) {
  checkElements(config, "vocab_size", {m.vocabulary, m.embed});
  checkElements(config, "intermediate_size", {m.ffn, m.embed});
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
/// change.
void readRopes(const Source &source, Config &config, const Family &family,
               Decoder &m) {
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
  m.ropeOf.assign(static_cast<size_t>(m.layers), 0);
}

void readNumbers(Config &config, const Family &family, Decoder &m) {
  for (const NumberKey &one : family.numbers)
    m.*one.value = one.range == NumberKey::Range::rate
                       ? config.rate(one.key, one.fallback)
                       : config.positive(one.key, one.fallback);
  m.attentionRate = config.rate("attention_dropout", 0);
  m.epsilon = family.epsilonKey
                  ? config.positive(family.epsilonKey, family.epsilon)
                  : family.epsilon;
  m.deviation = config.notNegative("initializer_range", 0.02);
  m.maxPositions = config.isNull("max_position_embeddings")
                       ? 0
                       : config.size("max_position_embeddings");
}

void readSizes(Config &config, const Family &family, Decoder &m) {
  m.vocabulary = sizeOf(config, "vocab_size", family.vocabulary);
  m.embed = config.size("hidden_size");
  m.ffn = config.size("intermediate_size");
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
  (void)config.choice("position_embedding_type", {"rope", "rotary"});
  readWindows(config, family, m);
  m.activation =
      readActivation(config, family.activationKey, family.activation);
  m.tied = config.boolean("tie_word_embeddings", family.tied);
  readPadding(config, family, m);
  readNumbers(config, family, m);
  if (family.scalesEmbedding)
    m.embeddingScale = std::sqrt(static_cast<double>(m.embed));
  checkSizes(config, m);
  readRopes(source, config, family, m);
  if (family.more)
    family.more(source, config, m);
  return m;
}

} // namespace meshwork::importer
