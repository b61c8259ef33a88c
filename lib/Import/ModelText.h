// Writes a model in the transformer dialect's text, one op a line. Types follow
// from the values; the caller names what a reader should see.
// Internal to lib/Import.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshwork::importer {

struct Dim {
  std::string name;
  int64_t size; // `open` for batch and sequence
  static constexpr int64_t open = -1;
};
using Dims = std::vector<Dim>;

/// An SSA value of float elements.
struct Value {
  std::string name; // without '%'
  Dims dims;
};

struct Init {
  bool normal;
  double value; // standard deviation, or the constant
};

/// One tensor for all: of which `shape`, and from where in it; none: all of it.
struct StackedFile {
  std::string name;
  std::vector<int64_t> shape, offset;
};

struct Attention {
  double scale = 1, cap = 0; // of scores; 0: none
  int64_t window = 0;        // 0: all before
  std::string dropoutName;   // used when rate > 0
  double rate = 0;
};

class ModelText {
public:
  /// `%tokens` and `%targets` are the arguments.
  explicit ModelText(std::string moduleName);

  /// Gives the type of these dims a short name.
  void alias(const std::string &name, const Dims &dims);
  /// Longer sequences are warned of; 0: none are.
  void maxPositions(int64_t count) { positions = count; }
  /// Of the loss for even routing of experts; 0: none.
  void balanceCoefficient(double value) { balance = value; }
  /// Kept with the model, for whoever writes its weights for others to load.
  void config(std::string json) { configText = std::move(json); }
  /// A comment line, after an empty line; parameters from here on are of
  /// `layer`.
  void section(const std::string &title,
               std::optional<int64_t> layer = std::nullopt);

  /// `fileShape` empty: as `dims`.
  Value parameter(const std::string &ssa, const std::string &fileName,
                  Init init, const Dims &dims,
                  const std::vector<int64_t> &fileShape = {});
  /// A vector of zeros without a gradient: what is kept in f32 and counts as no
  /// parameter.
  Value untrained(const std::string &ssa, const std::string &fileName,
                  const Dim &dim);
  /// What files hold in one tensor for each index of the first dim, named by
  /// `pattern` with {} for the number; or as `stacked` says.
  Value stack(const std::string &ssa, const std::string &pattern, Init init,
              const Dims &dims, const StackedFile &stacked);
  /// The row `padding`, if any, gets no gradient here.
  Value embedding(const std::string &ssa, const Value &table,
                  std::optional<int64_t> padding = std::nullopt);
  Value add(const std::string &ssa, const Value &lhs, const Value &rhs);
  Value multiply(const std::string &ssa, const Value &lhs, const Value &rhs);
  Value contract(const std::string &ssa, const std::string &equation,
                 const Value &lhs, const Value &rhs, const Dims &result);
  Value activate(const std::string &ssa, const std::string &function,
                 const Value &input);
  Value layerNorm(const std::string &ssa, const Value &input,
                  const Value &weight, const Value &bias, double epsilon);
  Value rmsNorm(const std::string &ssa, const Value &input, const Value &weight,
                double epsilon);
  /// LayerNorm of the last dim, without weight and bias.
  Value standardize(const std::string &ssa, const Value &input, double epsilon);
  /// Frequencies and a scale for rope(), which gets the number returned.
  size_t rotary(const std::vector<float> &inverseFrequencies, float scale);
  Value rope(const std::string &ssa, const Value &input, size_t rotary);
  /// `input` itself when the rate is 0.
  Value dropout(const std::string &ssa, const Value &input,
                const std::string &name, double rate);
  Value slice(const std::string &ssa, const Value &input,
              const std::string &dim, int64_t offset, const Dims &result);
  /// Along the last dim.
  Value softmax(const std::string &ssa, const Value &input);
  /// Numbers of the largest scores: what pick and experts take as `choices`.
  /// Of the `kept` groups, of `groups`, whose two best scores have the largest
  /// sum.
  Value topK(const std::string &ssa, const Value &scores, const Dims &result,
             int64_t groups = 1, int64_t kept = 1);
  /// `input` times `scale`, over its sum along the last dim if asked.
  Value scaled(const std::string &ssa, const Value &input, bool isNormalized,
               double scale);
  /// `input` times `factor`; itself when that is 1.
  Value times(const std::string &ssa, const Value &input, double factor);
  Value onePlus(const std::string &ssa, const Value &input);
  /// From -`bound` to `bound`.
  Value clip(const std::string &ssa, const Value &input, double bound);
  Value pick(const std::string &ssa, const Value &scores, const Value &choices);
  /// `projections` are gate, up and down.
  Value experts(const std::string &ssa, const std::string &function,
                const Value &x, const Value &choices, const Value &weights,
                const std::array<Value, 3> &projections);
  Value attention(const std::string &ssa, const Value &q, const Value &k,
                  const Value &v, const Attention &how);
  /// Ends the function with the loss; `cap` is of logits, 0: none.
  void headLoss(const Value &hidden, const Value &weight, double cap = 0);

  /// Elements of all parameters.
  uint64_t numParameters() const { return parameters; }
  /// The whole text; `header` holds comment lines without "// ".
  std::string finish(const std::vector<std::string> &header) const;

private:
  std::string type(const Dims &dims) const;
  std::string typeOfNumbers(const Dims &dims) const;
  void count(const Dims &dims);
  std::string declared(const std::string &name, Init init,
                       bool isUntrained = false) const;
  Value emit(const std::string &ssa, const Dims &dims, const std::string &op);
  Value map(const std::string &ssa, const Value &input,
            const std::vector<std::string> &lines);

  std::string moduleName, aliases, body, configText;
  std::vector<std::string> rotaries;
  std::map<std::string, std::string> aliasOfType;
  uint64_t parameters = 0;
  int64_t positions = 0;
  double balance = 0;
  std::optional<int64_t> layer; // of the section
};

/// Digits that read back as the same number, in MLIR's form: "1.0e-05", "0.02".
std::string mlirFloat(double value);
std::string mlirFloat(float value);
/// In quotes. `text` is on one line.
std::string mlirString(std::string_view text);

} // namespace meshwork::importer
