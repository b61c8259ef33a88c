// The attention of a decoder's block. Projections are stored as [out, in].
#include <cmath>

#include "lib/Import/DecoderText.h"

namespace meshwork::importer {

/// `x` with a bias of its last dims, which are one dim in files.
Value DecoderText::biased(const Value &x, const std::string &ssa,
                          const std::string &file, const Dims &dims) {
  if (!m.qkvBias)
    return x;
  Value b = parameterOfRows(ssa + "_bias", file + ".bias", {false, 0}, dims,
                            dims.size());
  return text.add(ssa + "_biased", x, b);
}

/// q, k or v: [batch, sequence, head, head_dim].
Value DecoderText::project(const Value &x, const char *which, const char *file,
                           const Dim &head, const Place &at) {
  std::string name = at.ssa + which;
  Value w = parameterOfRows(name + "_weight", at.file + file + ".weight",
                            normal(), {head, headDim, embed}, 2);
  Value y = text.contract(name + "_proj", "bse,hde->bshd", x, w,
                          {batch, sequence, head, headDim});
  return biased(y, name, at.file + file, {head, headDim});
}

/// One matrix: all rows of q, then of k, then of v. With equal numbers of heads
/// they are three of a kind, which heads can be split over ranks of.
std::array<Value, 3> DecoderText::stackedProjections(const Value &x,
                                                     const Place &at) {
  bool isEven = m.heads == m.kvHeads;
  Dim three{"qkv", 3}, all{"qkv_heads", m.heads + 2 * m.kvHeads};
  Dims rows = isEven ? Dims{three, heads, headDim} : Dims{all, headDim};
  Dims weight = rows, result = rows;
  weight.push_back(embed);
  result.insert(result.begin(), {batch, sequence});
  std::string name = at.ssa + "qkv", file = at.file + names.qkv;
  Value w = parameterOfRows(name + "_weight", file + ".weight", normal(),
                            weight, rows.size());
  Value y =
      text.contract(name + "_proj",
                    isEven ? "bse,qhde->bsqhd" : "bse,nde->bsnd", x, w, result);
  y = biased(y, name, file, rows);
  auto part = [&](const char *which, int64_t first, int64_t row,
                  const Dims &dims) {
    return text.slice(at.ssa + which + "_proj", y, rows[0].name,
                      isEven ? first : row, dims);
  };
  return {part("q", 0, 0, queries), part("k", 1, m.heads, keys),
          part("v", 2, m.heads + m.kvHeads, keys)};
}

/// One matrix: of each head the rows of q, then of k, then of v.
std::array<Value, 3> DecoderText::projectionsOfHeads(const Value &x,
                                                     const Place &at) {
  Dim three{"qkv", 3};
  std::string name = at.ssa + "qkv", file = at.file + names.qkv;
  Value w = parameterOfRows(name + "_weight", file + ".weight", normal(),
                            {heads, three, headDim, embed}, 3);
  Value y = text.contract(name + "_proj", "bse,hqde->bshqd", x, w,
                          {batch, sequence, heads, three, headDim});
  y = biased(y, name, file, {heads, three, headDim});
  auto part = [&](const char *which, int64_t offset) {
    return text.slice(at.ssa + which + "_proj", y, "qkv", offset, queries);
  };
  return {part("q", 0), part("k", 1), part("v", 2)};
}

std::array<Value, 3> DecoderText::projections(const Value &x, const Place &at) {
  switch (m.qkv) {
  case Qkv::stacked:
    return stackedProjections(x, at);
  case Qkv::perHead:
    return projectionsOfHeads(x, at);
  case Qkv::apart:
    break;
  }
  Value q = project(x, "q", names.q, heads, at);
  Value k = project(x, "k", names.k, kvHeads, at);
  return {q, k, project(x, "v", names.v, kvHeads, at)};
}

/// Of queries or keys, each head's or all of them.
Value DecoderText::normOfHeads(const char *which, const char *file,
                               const Value &x, const Place &at) {
  Dims dims{headDim};
  if (m.qkNorm == QkNorm::all)
    dims.insert(dims.begin(), x.dims[2]);
  return norm(at.ssa + which + "_norm", at.file + file, x, dims);
}

double DecoderText::scoreScale() const {
  if (m.scoreScale > 0)
    return m.scoreScale;
  return 1 / std::sqrt(m.queryScalar > 0 ? m.queryScalar
                                         : static_cast<double>(m.headDim));
}

Value DecoderText::attention(const Value &x, const Place &block) {
  Place at{block.file + names.attention, block.ssa, block.layer};
  auto [q, k, v] = projections(x, at);
  if (m.clip > 0) {
    q = text.clip(at.ssa + "q_clipped", q, m.clip);
    k = text.clip(at.ssa + "k_clipped", k, m.clip);
    v = text.clip(at.ssa + "v_clipped", v, m.clip);
  }
  if (m.qkNorm != QkNorm::none) {
    q = normOfHeads("q", names.qNorm, q, at);
    k = normOfHeads("k", names.kNorm, k, at);
  }
  auto layer = static_cast<size_t>(at.layer);
  if (int rope = m.ropeOf[layer]; rope >= 0) {
    q = text.rope(at.ssa + "q", q, rotary[static_cast<size_t>(rope)]);
    k = text.rope(at.ssa + "k", k, rotary[static_cast<size_t>(rope)]);
  }
  Attention how;
  how.scale = scoreScale();
  how.cap = m.scoreCap;
  how.window = m.windows[layer];
  how.dropoutName = at.file + "attention_dropout";
  how.rate = m.attentionRate;
  Value o = text.attention(at.ssa + "attn", q, k, v, how);
  std::string file = at.file + names.o;
  Value w =
      text.parameter(at.ssa + "o_weight", file + ".weight", normal(),
                     {embed, heads, headDim}, {m.embed, m.heads * m.headDim});
  Value y = text.contract(at.ssa + "o_proj", "bshd,ehd->bse", o, w, hidden);
  if (!m.outputBias)
    return y;
  Value b =
      text.parameter(at.ssa + "o_bias", file + ".bias", {false, 0}, {embed});
  return text.add(at.ssa + "o_biased", y, b);
}

} // namespace meshwork::importer
