// Writes a decoder's model: a block at a time, in the order of the computation.
// Internal to lib/Import.
#pragma once

#include "lib/Import/Decoder.h"
#include "lib/Import/ModelText.h"

namespace meshwork::importer {

class DecoderText {
public:
  DecoderText(const Decoder &m, const std::string &family,
              const std::string &config);
  /// The whole text; `filename` is quoted.
  std::string run(const std::string &family, const std::string &filename);

private:
  /// A tensor of a layer, named in files and in the text.
  struct Place {
    std::string file, ssa; // "model.layers.3.", "l3_"
    int64_t layer;
  };

  std::string activeText() const;
  Init normal() const { return {true, m.deviation}; }
  Value parameterOfRows(const std::string &ssa, const std::string &file,
                        Init init, const Dims &dims, size_t rows);

  // DecoderText.cpp
  Value embedded(const Value &table);
  Value norm(const std::string &ssa, const std::string &file, const Value &x,
             const Dims &dims);
  Value maybeNorm(const char *name, const Value &x, const Place &at);
  Value added(const char *name, const char *branch, const char *dropout,
              const Value &x, Value y, const Place &at);
  Value block(const Value &x, int64_t layer);

  // DecoderAttention.cpp
  std::array<Value, 3> projections(const Value &x, const Place &at);
  Value project(const Value &x, const char *which, const char *file,
                const Dim &head, const Place &at);
  std::array<Value, 3> stackedProjections(const Value &x, const Place &at);
  std::array<Value, 3> projectionsOfHeads(const Value &x, const Place &at);
  Value biased(const Value &x, const std::string &ssa, const std::string &file,
               const Dims &dims);
  Value normOfHeads(const char *which, const char *file, const Value &x,
                    const Place &at);
  Value attention(const Value &x, const Place &at);
  double scoreScale() const;

  // DecoderFeedForward.cpp
  Value dense(const Value &x, const char *which, const char *file,
              const char *equation, const Dim &to, const Place &at);
  Value feedForward(const Value &x, const Dim &width, const Place &at);
  std::array<Value, 2> fusedGateAndUp(const Value &x, const Place &at);
  Value mixture(const Value &x, const Place &at);
  Value sharedExpert(const Value &x, const Place &at);

  const Decoder &m;
  const Names &names;
  ModelText text;
  std::vector<size_t> rotary; // of each of m.ropes
  Dim batch{"batch", Dim::open}, sequence{"sequence", Dim::open};
  Dim embed{"embed", m.embed}, heads{"heads", m.heads},
      headDim{"head_dim", m.headDim}, ffn{"ffn", m.ffn};
  // With as many key heads as query heads they are the same dim.
  Dim kvHeads{m.kvHeads == m.heads ? "heads" : "kv_heads", m.kvHeads};
  Dims hidden{batch, sequence, embed};
  Dims queries{batch, sequence, heads, headDim};
  Dims keys{batch, sequence, kvHeads, headDim};
  Dims inner{batch, sequence, ffn};
};

} // namespace meshwork::importer
