// GPT-2 (Radford et al. 2019), as Hugging Face's GPT2LMHeadModel: learned
// positions, norms before each block, one matrix for q, k and v, projections
// stored as [in, out].
#include <cmath>

#include "lib/Import/Keys.h"
#include "lib/Import/ModelText.h"
#include "lib/Import/families/Families.h"
#include "lib/Spec/FilePath.h"
#include "meshwork/Text/Counted.h"

namespace meshwork::importer {
namespace {

/// The names that the file has for sizes with two.
struct Gpt2Keys {
  std::string positions, embed, layers, heads;
};

struct Gpt2 {
  Gpt2Keys keys;
  int64_t vocabulary, positions, embed, layers, heads, headDim, ffn;
  std::string activation;
  double residualRate, embeddingRate, attentionRate;
  double epsilon, deviation;
  bool scaleScores, scaleByLayer, tied;
};

Gpt2 read(Config &config) {
  Gpt2 m;
  m.keys = {config.either("n_positions", "max_position_embeddings"),
            config.either("n_embd", "hidden_size"),
            config.either("n_layer", "num_hidden_layers"),
            config.either("n_head", "num_attention_heads")};
  m.vocabulary = config.size("vocab_size");
  m.positions = config.size(m.keys.positions);
  m.embed = config.size(m.keys.embed);
  m.layers = config.size(m.keys.layers);
  m.heads = config.size(m.keys.heads);
  m.ffn = config.sizeOr("n_inner", 4 * m.embed);
  m.headDim = m.embed / m.heads;
  m.activation = readActivation(config, "activation_function", "gelu_new");
  m.residualRate = config.rate("resid_pdrop", 0.1);
  m.embeddingRate = config.rate("embd_pdrop", 0.1);
  m.attentionRate = config.rate("attn_pdrop", 0.1);
  m.epsilon = config.positive("layer_norm_epsilon", 1e-5);
  m.deviation = config.notNegative("initializer_range", 0.02);
  m.scaleScores = config.boolean("scale_attn_weights", true);
  m.scaleByLayer = config.boolean("scale_attn_by_inverse_layer_idx", false);
  m.tied = config.boolean("tie_word_embeddings", true);
  (void)config.choice("position_embedding_type", {"absolute"});
  return m;
}

void check(Config &config, const Gpt2 &m) {
  if (m.embed % m.heads != 0)
    config.error(m.keys.embed,
                 "found " + std::to_string(m.embed) +
                     ", expected a multiple of " + m.keys.heads + ", " +
                     std::to_string(m.heads) + ", like " +
                     std::to_string((m.embed / m.heads + 1) * m.heads));
  if (m.layers > maxLayers)
    config.error(m.keys.layers, "found " + std::to_string(m.layers) +
                                    ", expected at most " +
                                    std::to_string(maxLayers));
  checkElements(config, "vocab_size", {m.vocabulary, m.embed});
  checkElements(config, m.keys.positions, {m.positions, m.embed});
  checkElements(config, m.keys.embed, {m.embed, m.embed, 3});
  checkElements(config, "n_inner", {m.embed, m.ffn});
}

class Gpt2Text {
public:
  Gpt2Text(const Gpt2 &m, const std::string &config) : m(m), text("gpt2") {
    text.config(config);
    text.alias("hidden", hidden);
    text.alias("qkv", fused);
    text.alias("heads", split);
    text.alias("lse", {batch, {"heads", m.heads}, sequence});
    text.alias("ffn", inner);
  }

  std::string run(const std::string &filename) {
    Value table = text.parameter("wte", "wte.weight", normal(m.deviation),
                                 {{"vocab", m.vocabulary}, embed});
    Value x = embeddings(table);
    for (int64_t layer = 0; layer < m.layers; ++layer)
      x = block(x, layer);
    text.section("head");
    x = norm("ln_f", "ln_f", x);
    Value head = m.tied ? table
                        : text.parameter("lm_head", "lm_head.weight",
                                         normal(m.deviation),
                                         {{"vocab", m.vocabulary}, embed});
    text.headLoss(x, head);
    return text.finish({"GPT-2, imported from " + filename + ": " +
                        counted(m.layers, "layer") + ", " +
                        counted(text.numParameters(), "parameter") + "."});
  }

private:
  static Init normal(double deviation) { return {true, deviation}; }
  static constexpr Init zero = {false, 0}, one = {false, 1};

  Value embeddings(const Value &table) {
    Value positions = text.parameter("wpe", "wpe.weight", normal(m.deviation),
                                     {{"positions", m.positions}, embed});
    Value x = text.embedding("embedded", table);
    Value p =
        text.slice("position", positions, "positions", 0, {sequence, embed});
    x = text.add("placed", x, p);
    return text.dropout("start", x, "drop", m.embeddingRate);
  }

  Value norm(const std::string &ssa, const std::string &name, const Value &x) {
    Value weight =
        text.parameter(ssa + "_weight", name + ".weight", one, {embed});
    Value bias = text.parameter(ssa + "_bias", name + ".bias", zero, {embed});
    return text.layerNorm(ssa, x, weight, bias, m.epsilon);
  }

  Value block(const Value &x, int64_t layer) {
    std::string name = "h." + std::to_string(layer);
    std::string ssa = "h" + std::to_string(layer) + "_";
    text.section("layer " + std::to_string(layer), layer);
    Value y =
        attention(norm(ssa + "ln_1", name + ".ln_1", x), layer, name, ssa);
    y = text.dropout(ssa + "attn_dropped", y, name + ".attn.resid_dropout",
                     m.residualRate);
    Value middle = text.add(ssa + "middle", x, y);
    y = feedForward(norm(ssa + "ln_2", name + ".ln_2", middle), name, ssa);
    y = text.dropout(ssa + "mlp_dropped", y, name + ".mlp.dropout",
                     m.residualRate);
    return text.add(ssa + "out", middle, y);
  }

  Value attention(const Value &x, int64_t layer, const std::string &name,
                  const std::string &ssa) {
    std::string file = name + ".attn.";
    Dim three = {"qkv", 3};
    Value w = text.parameter(
        ssa + "c_attn_weight", file + "c_attn.weight", normal(m.deviation),
        {embed, three, heads, headDim}, {m.embed, 3 * m.embed});
    Value b = text.parameter(ssa + "c_attn_bias", file + "c_attn.bias", zero,
                             {three, heads, headDim}, {3 * m.embed});
    Value qkv = text.contract(ssa + "c_attn", "bse,eqhd->bsqhd", x, w, fused);
    qkv = text.add(ssa + "qkv", qkv, b);
    Value q = text.slice(ssa + "q", qkv, "qkv", 0, split);
    Value k = text.slice(ssa + "k", qkv, "qkv", 1, split);
    Value v = text.slice(ssa + "v", qkv, "qkv", 2, split);
    Attention how;
    if (m.scaleScores)
      how.scale /= std::sqrt(static_cast<double>(m.headDim));
    if (m.scaleByLayer)
      how.scale /= static_cast<double>(layer + 1);
    how.dropoutName = file + "attn_dropout";
    how.rate = m.attentionRate;
    Value o = text.attention(ssa + "attn", q, k, v, how);
    Value pw = text.parameter(ssa + "attn_c_proj_weight",
                              file + "c_proj.weight", residualInit(),
                              {heads, headDim, embed}, {m.embed, m.embed});
    Value pb = text.parameter(ssa + "attn_c_proj_bias", file + "c_proj.bias",
                              zero, {embed});
    Value y =
        text.contract(ssa + "attn_c_proj", "bshd,hde->bse", o, pw, hidden);
    return text.add(ssa + "attn_out", y, pb);
  }

  Value feedForward(const Value &x, const std::string &name,
                    const std::string &ssa) {
    std::string file = name + ".mlp.";
    Value w = text.parameter(ssa + "c_fc_weight", file + "c_fc.weight",
                             normal(m.deviation), {embed, ffn});
    Value b =
        text.parameter(ssa + "c_fc_bias", file + "c_fc.bias", zero, {ffn});
    Value y = text.contract(ssa + "c_fc", "bse,ef->bsf", x, w, inner);
    y = text.add(ssa + "c_fc_out", y, b);
    y = text.activate(ssa + "act", m.activation, y);
    Value pw = text.parameter(ssa + "mlp_c_proj_weight", file + "c_proj.weight",
                              residualInit(), {ffn, embed});
    Value pb = text.parameter(ssa + "mlp_c_proj_bias", file + "c_proj.bias",
                              zero, {embed});
    y = text.contract(ssa + "mlp_c_proj", "bsf,fe->bse", y, pw, hidden);
    return text.add(ssa + "mlp_out", y, pb);
  }

  /// What is added to the residual stream starts smaller, so that the stream's
  /// variance does not grow with depth (the GPT-2 report, section 2.3).
  Init residualInit() const {
    return normal(m.deviation / std::sqrt(2.0 * static_cast<double>(m.layers)));
  }

  const Gpt2 &m;
  ModelText text;
  Dim batch{"batch", Dim::open}, sequence{"sequence", Dim::open};
  Dim embed{"embed", m.embed}, heads{"heads", m.heads},
      headDim{"head_dim", m.headDim}, ffn{"ffn", m.ffn};
  Dims hidden{batch, sequence, embed};
  Dims fused{batch, sequence, {"qkv", 3}, heads, headDim};
  Dims split{batch, sequence, heads, headDim};
  Dims inner{batch, sequence, ffn};
};

std::optional<std::string> importGpt2(const Source &source, Config &config) {
  Gpt2 model = read(config);
  checkOtherKeys(config, source.family.harmless);
  check(config, model);
  if (hasErrors(source.diagnostics))
    return std::nullopt;
  tellDropout(config, {{"resid_pdrop", model.residualRate},
                       {"embd_pdrop", model.embeddingRate},
                       {"attn_pdrop", model.attentionRate}});
  return Gpt2Text(model, source.text).run(quote(spec::nameOf(source.filename)));
}

} // namespace

const Family gpt2 = {.type = "gpt2",
                     .causal = "GPT2LMHeadModel",
                     .bare = "GPT2Model",
                     .prefix = "transformer.",
                     .import = importGpt2};

} // namespace meshwork::importer
