// Defaults of missing keys are those of the families' classes in Hugging Face's
// Transformers, as their documentation gives them.
#include "lib/Import/LlamaConfig.h"
#include "meshwork/Text/Counted.h"

#include <algorithm>

namespace meshwork::importer {
namespace {

constexpr int64_t usualWindow = 4096, qwen3HeadDim = 128;

/// Which layers of a class look back no further than a window.
enum class Sliding { never, always, asked }; // asked: use_sliding_window says

/// What a family's class does, and has where keys are missing.
struct Family {
  std::string_view name;
  int64_t keyHeads; // 0: as many as queries have
  QkNorm norm;
  Sliding sliding;
  int64_t window;     // 0: none
  int64_t fullLayers; // the first ones, which do not slide; 0: all may
  bool mixes;         // some layers slide and others do not
};
constexpr Family families[] = {
    {"llama", 0, QkNorm::none, Sliding::never, 0, 0, false},
    {"olmoe", 0, QkNorm::all, Sliding::never, 0, 0, false},
    {"mistral", 8, QkNorm::none, Sliding::always, usualWindow, 0, false},
    {"mixtral", 8, QkNorm::none, Sliding::always, 0, 0, false},
    {"qwen2", 32, QkNorm::none, Sliding::asked, usualWindow, 28, true},
    {"qwen3", 32, QkNorm::head, Sliding::asked, usualWindow, 28, true},
    {"qwen2_moe", 16, QkNorm::none, Sliding::asked, usualWindow, 0, true},
    {"qwen3_moe", 4, QkNorm::head, Sliding::asked, usualWindow, 0, true},
    {"dots1", 32, QkNorm::head, Sliding::always, usualWindow, 62, true}};

/// Of a family that is read here.
const Family &familyOf(const std::string &name) {
  return *std::find_if(
      std::begin(families), std::end(families) - 1,
      [&](const Family &family) { return family.name == name; });
}

bool isQwen2(const std::string &family) {
  return family == "qwen2" || family == "qwen2_moe";
}

/// null stands for as many as queries have; what absence stands for depends on
/// the family.
void readKeyHeads(Config &config, const std::string &family, Llama &m) {
  const char *key = "num_key_value_heads";
  int64_t usual = familyOf(family).keyHeads;
  bool isDefault = !config.find(key) && usual > 0;
  if (isDefault)
    m.kvHeads = usual;
  else
    m.kvHeads = config.sizeOr(key, m.heads);
  if (m.heads % m.kvHeads != 0)
    config.error(key, (isDefault ? "missing, so it is " + family + "'s default "
                                 : "found ") +
                          std::to_string(m.kvHeads) +
                          ", expected a divisor of num_attention_heads, " +
                          std::to_string(m.heads));
}

void readHeads(Config &config, const std::string &family, Llama &m) {
  m.heads = config.size("num_attention_heads");
  readKeyHeads(config, family, m);
  bool derived = config.isNull("head_dim") &&
                 (family != "qwen3" || config.find("head_dim"));
  m.headDim =
      derived ? m.embed / m.heads : config.sizeOr("head_dim", qwen3HeadDim);
  bool hasNoKey = family == "qwen2_moe" || family == "olmoe";
  if (hasNoKey && !derived && m.headDim * m.heads != m.embed)
    config.error("head_dim", "found " + std::to_string(m.headDim) + ", but " +
                                 family +
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

void readBiases(Config &config, const std::string &family, Llama &m) {
  m.qkNorm = familyOf(family).norm;
  if (isQwen2(family)) { // and never of the output
    m.qkvBias = family == "qwen2" || config.boolean("qkv_bias", true);
    m.outputBias = false;
  } else {
    bool key = family == "llama" || m.qkNorm != QkNorm::none;
    m.qkvBias = m.outputBias = key && config.boolean("attention_bias", false);
  }
  m.mlpBias = family == "llama" && config.boolean("mlp_bias", false);
}

/// Names that other families have for biases, of which this one has its own.
void checkOtherBiases(Config &config, const std::string &family) {
  for (const char *key :
       {"use_bias", "attn_bias", "qkv_bias", "use_mlp_bias"}) {
    if (family == "qwen2_moe" && std::string_view(key) == "qkv_bias")
      continue; // a key of its own
    bool has = family == "qwen2" && std::string_view(key) == "qkv_bias";
    if (config.boolean(key, has) != has)
      config.error(key, std::string("found ") + (has ? "false" : "true") +
                            ", but " + family +
                            (has ? " always has biases of q, k and v; expected "
                                   "true"
                                 : " knows no such key; expected false"));
  }
}

/// The window that sliding layers use; 0 when the family or file has none.
int64_t readWindow(Config &config, const std::string &family) {
  const Family &of = familyOf(family);
  if (of.sliding == Sliding::never)
    return 0;
  if (family == "qwen2_moe" && config.boolean("use_sliding_window", false))
    config.error("use_sliding_window",
                 "found true, but ways to compute attention in this family's "
                 "class disagree on which layers slide; expected false");
  int64_t window = config.find("sliding_window")
                       ? config.sizeOr("sliding_window", 0)
                       : of.window;
  bool slides = of.sliding == Sliding::always ||
                config.boolean("use_sliding_window", false);
  return slides ? window : 0;
}

void readLayerTypes(Config &config, const Json &types, int64_t window,
                    const std::string &family, Llama &m) {
  if (types.kind != Json::Kind::array ||
      static_cast<int64_t>(types.items.size()) != m.layers) {
    config.error("layer_types", "expected an array of " +
                                    counted(m.layers, "name") +
                                    ", one for each layer");
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
                       " slides, but there is no sliding_window");
    else if (!sliding && window > 0 && !familyOf(family).mixes)
      config.error("layer_types", "layer " + std::to_string(i) +
                                      " is full, but with a sliding_window all "
                                      "layers of " +
                                      family + " slide");
    m.windows[i] = sliding ? window : 0;
  }
}

void readWindows(Config &config, const std::string &family, Llama &m) {
  int64_t window = readWindow(config, family);
  int64_t fullLayers = 0;
  if (int64_t usual = familyOf(family).fullLayers; usual > 0) {
    const Json *given = config.find("max_window_layers");
    bool none =
        given && given->kind == Json::Kind::integer && given->integer == 0;
    fullLayers = none ? 0 : config.sizeOr("max_window_layers", usual);
  }
  for (int64_t layer = 0; layer < m.layers; ++layer)
    m.windows.push_back(layer >= fullLayers ? window : 0);
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
void warnOfPadding(Config &config, const Llama &m) {
  for (const char *key : {"eos_token_id", "bos_token_id"})
    if (!m.tied && isToken(config, key, *m.padding))
      config.warning("pad_token_id",
                     "is " + std::to_string(*m.padding) + ", and so is " + key +
                         ": the embedding of this token gets no gradient and "
                         "does not learn; set pad_token_id to null if the "
                         "data holds the token");
}

/// As PyTorch's padding_idx: negative ones count from the end.
void readPadding(Config &config, const std::string &family, Llama &m) {
  if (family == "olmoe" && !config.find("pad_token_id"))
    m.padding = 1; // of its class
  if (config.isNull("pad_token_id"))
    return;
  const Json *id = config.find("pad_token_id");
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

void checkSizes(Config &config, const Llama &m) {
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

} // namespace

Llama readLlama(const Source &source, Config &config,
                const std::string &family) {
  Llama m;
  m.vocabulary = config.size("vocab_size");
  m.embed = config.size("hidden_size");
  m.ffn = config.size("intermediate_size");
  m.layers = config.size("num_hidden_layers");
  if (m.layers > maxLayers) {
    config.error("num_hidden_layers", "found " + std::to_string(m.layers) +
                                          ", expected at most " +
                                          std::to_string(maxLayers));
    m.layers = 1;
  }
  m.mixture = readMixture(config, family, m.layers, m.ffn);
  readHeads(config, family, m);
  readBiases(config, family, m);
  checkOtherBiases(config, family);
  (void)config.choice("position_embedding_type", {"rope", "rotary"});
  readWindows(config, family, m);
  m.activation = readActivation(config, "hidden_act", "silu");
  m.epsilon = config.positive(
      "rms_norm_eps", family == "mixtral" || family == "olmoe" ? 1e-5 : 1e-6);
  m.deviation = config.notNegative("initializer_range", 0.02);
  m.attentionRate = config.rate("attention_dropout", 0);
  m.tied = config.boolean("tie_word_embeddings", false);
  readPadding(config, family, m);
  m.maxPositions = config.isNull("max_position_embeddings")
                       ? 0
                       : config.size("max_position_embeddings");
  checkSizes(config, m);
  // Frequencies are a list in the model's text.
  constexpr int64_t largestHead = 65536;
  if (m.headDim > largestHead)
    config.error("head_dim", "found " + std::to_string(m.headDim) +
                                 ", expected at most " +
                                 std::to_string(largestHead));
  else
    m.rope = readRope(config, source.object, source.filename, m.headDim,
                      family == "mixtral" ? 1e6 : 1e4, source.diagnostics);
  return m;
}

} // namespace meshwork::importer
