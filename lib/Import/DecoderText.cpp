#include "lib/Import/DecoderText.h"

#include "lib/Import/Family.h"
#include "lib/Import/Keys.h"
#include "lib/Spec/FilePath.h"
#include "meshwork/Text/Counted.h"

namespace meshwork::importer {

DecoderText::DecoderText(const Decoder &m, const std::string &family,
                         const std::string &config)
    : m(m), names(*m.names), text(family) {
  text.config(config);
  text.alias("hidden", hidden);
  text.alias("heads", queries);
  text.alias("kv_heads", keys);
  text.alias("lse", {batch, heads, sequence});
  text.alias("ffn", inner);
  if (!names.positions) // a table's end is an error
    text.maxPositions(m.maxPositions);
  if (m.mixture)
    text.balanceCoefficient(m.mixture->balanceCoefficient);
  for (const Rope &rope : m.ropes)
    rotary.push_back(text.rotary(rope.inverseFrequencies, rope.scale));
}

std::string DecoderText::run(const std::string &family,
                             const std::string &filename) {
  Dims tableDims = {{"vocab", m.vocabulary}, embed};
  Value table =
      text.parameter("embed_tokens", std::string(names.embedding) + ".weight",
                     normal(), tableDims);
  Value x = embedded(table);
  for (int64_t layer = 0; layer < m.layers; ++layer)
    x = block(x, layer);
  text.section("head");
  x = norm("norm", names.norm, x, {embed});
  x = text.times("head_input", x, 1 / m.logitsDivisor);
  Value head =
      m.tied ? table
             : text.parameter("lm_head", std::string(names.head) + ".weight",
                              normal(), tableDims);
  text.headLoss(x, head, m.logitCap);
  return text.finish({family + ", imported from " + filename + ": " +
                      counted(m.layers, "layer") + ", " +
                      counted(text.numParameters(), "parameter") +
                      activeText() + "."});
}

std::string DecoderText::activeText() const {
  if (!m.mixture)
    return "";
  return ", of which each token uses " +
         std::to_string(text.numParameters() - m.mixture->idle(m.embed));
}

Value DecoderText::embedded(const Value &table) {
  Value x = text.embedding("embedded", table, m.padding);
  x = text.times("embedded_scaled", x, m.embeddingScale);
  if (names.positions) {
    Value rows = text.parameter(
        "embed_positions", std::string(names.positions) + ".weight", normal(),
        {{"positions", m.maxPositions + m.firstPosition}, embed});
    x = text.add("placed", x,
                 text.slice("position", rows, "positions", m.firstPosition,
                            {sequence, embed}));
  }
  return text.dropout("start", x,
                      names.embeddingDropout ? names.embeddingDropout : "",
                      m.embeddingRate);
}

/// A parameter whose first dims, `rows` of them, are one dim in files; the
/// others are another, if there are any.
Value DecoderText::parameterOfRows(const std::string &ssa,
                                   const std::string &file, Init init,
                                   const Dims &dims, size_t rows) {
  std::vector<int64_t> shape{1};
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i == rows)
      shape.push_back(1);
    shape.back() *= dims[i].size;
  }
  return text.parameter(ssa, file, init, dims,
                        shape.size() == dims.size() ? std::vector<int64_t>{}
                                                    : shape);
}

/// Over `dims`, the last ones of `x`, which are one dim in files.
Value DecoderText::norm(const std::string &ssa, const std::string &file,
                        const Value &x, const Dims &dims) {
  if (m.norm == Norm::plain)
    return text.standardize(ssa, x, m.epsilon);
  bool isOffset = m.norm == Norm::rmsPlusOne;
  Value weight =
      parameterOfRows(ssa + "_weight", file + ".weight",
                      {false, isOffset ? 0.0 : 1.0}, dims, dims.size());
  if (isOffset)
    weight = text.onePlus(ssa + "_factor", weight);
  if (m.norm != Norm::layer)
    return text.rmsNorm(ssa, x, weight, m.epsilon);
  Value bias = parameterOfRows(ssa + "_bias", file + ".bias", {false, 0}, dims,
                               dims.size());
  return text.layerNorm(ssa, x, weight, bias, m.epsilon);
}

/// `x` itself where the block has no norm of this name.
Value DecoderText::maybeNorm(const char *name, const Value &x,
                             const Place &at) {
  if (!name)
    return x;
  std::string ssa = name;
  if (size_t end = ssa.find("layernorm"); end != std::string::npos)
    ssa.replace(end, std::string::npos, "norm");
  return norm(at.ssa + ssa, at.file + name, x, {embed});
}

/// The residual stream `x` with what a branch of the block adds to it.
Value DecoderText::added(const char *name, const char *branch,
                         const char *dropout, const Value &x, Value y,
                         const Place &at) {
  y = text.dropout(at.ssa + branch + "_dropped", y,
                   at.file + (dropout ? dropout : ""), m.residualRate);
  y = text.times(at.ssa + branch + "_scaled", y, m.residualScale);
  return text.add(at.ssa + name, x, y);
}

Value DecoderText::block(const Value &x, int64_t layer) {
  std::string number = std::to_string(layer);
  Place at{names.layers + number + ".", "l" + number + "_", layer};
  text.section("layer " + number, layer);
  Value y = attention(maybeNorm(names.beforeAttention, x, at), at);
  y = maybeNorm(names.afterAttention, y, at);
  Value middle = added("middle", "attn", names.attentionDropout, x, y, at);
  y = maybeNorm(names.beforeFeedForward, m.isParallel ? x : middle, at);
  if (m.mixture && m.mixture->has(layer))
    y = mixture(y, at);
  else
    y = feedForward(y, ffn, {at.file + names.feedForward, at.ssa, layer});
  y = maybeNorm(names.afterFeedForward, y, at);
  return added("out", "mlp", names.feedForwardDropout, middle, y, at);
}

namespace {
/// Of dropout. A key with two places is there once.
std::vector<std::pair<std::string, double>> ratesOf(const Family &family,
                                                    const Decoder &m) {
  std::vector<std::pair<std::string, double>> rates{
      {"attention_dropout", m.attentionRate}};
  for (const NumberKey &one : family.numbers)
    if (one.range == NumberKey::Range::rate && rates.back().first != one.key)
      rates.emplace_back(one.key, m.*one.value);
  return rates;
}
} // namespace

std::optional<std::string> importDecoder(const Source &source, Config &config) {
  Decoder model = readDecoder(source, config);
  checkOtherKeys(config, source.family.harmless);
  if (hasErrors(source.diagnostics))
    return std::nullopt;
  tellDropout(config, ratesOf(source.family, model));
  std::string type(source.family.type);
  return DecoderText(model, type, source.text)
      .run(type, quote(spec::nameOf(source.filename)));
}

} // namespace meshwork::importer
