// Tables of rows: embedding, its gradient, and what rope reads; and the numbers
// of a row's largest elements.
#include "passes/interpreter/Evaluate.h"

#include <cmath>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {

//===-- embedding -----------------------------------------------------------//

/// The row of `rows` that `id` names, counted from `firstRow` on; -1 on a rank
/// that does not have it. An id outside the whole table is an error at `op`; a
/// rank with a part cannot tell, save for negative ones.
static FailureOr<int64_t> rowOf(Operation *op, double id, int64_t rows,
                                ArrayRef<Tensor> firstRow) {
  double row = firstRow.empty() ? id : id - firstRow[0][0];
  if (row >= 0 && row < static_cast<double>(rows))
    return static_cast<int64_t>(row);
  if (!firstRow.empty() && id >= 0)
    return -1;
  return op->emitOpError("id ")
         << id << " is outside the table of " << rows << " rows";
}

static Results evaluate(EmbeddingOp op, ArrayRef<Tensor> operands) {
  const Tensor &table = operands[0], &ids = operands[1];
  Tensor result = Tensor::zeros(op.getType());
  int64_t width = table.size() / table.getDimSize(0);
  for (int64_t i = 0; i < ids.size(); ++i) {
    FailureOr<int64_t> row =
        rowOf(op, ids[i], table.getDimSize(0), operands.drop_front(2));
    if (failed(row))
      return failure();
    for (int64_t j = 0; *row >= 0 && j < width; ++j)
      result[i * width + j] = table[*row * width + j];
  }
  return Tensors{result};
}

static Results evaluate(EmbeddingGradOp op, ArrayRef<Tensor> operands) {
  const Tensor &ids = operands[0], &gradient = operands[1];
  Tensor result = Tensor::zeros(op.getType());
  int64_t width = result.size() / result.getDimSize(0);
  for (int64_t i = 0; i < ids.size(); ++i) {
    FailureOr<int64_t> row =
        rowOf(op, ids[i], result.getDimSize(0), operands.drop_front(2));
    if (failed(row))
      return failure();
    for (int64_t j = 0; *row >= 0 && j < width; ++j)
      result[*row * width + j] += gradient[i * width + j];
  }
  return Tensors{result};
}

/// The row of the rank's table that an id means; -1: another rank's.
static int64_t ownRow(double id, double first, int64_t rows) {
  double row = id - first;
  return row >= 0 && row < static_cast<double>(rows) ? static_cast<int64_t>(row)
                                                     : -1;
}

static void run(const plan::Embedding &op, Views &on) {
  Tensor table = on.read(op.table()), ids = on.read(op.ids());
  std::optional<Tensor> first = on.readIf(op.first_row());
  Tensor out = on.zeros(op.out());
  int64_t rows = table.getDimSize(0), width = table.size() / rows;
  for (int64_t i = 0; i < ids.size(); ++i) {
    int64_t row = ownRow(ids[i], first ? (*first)[0] : 0, rows);
    for (int64_t j = 0; j < width; ++j)
      out[i * width + j] = row >= 0 ? table[row * width + j]
                           : first  ? 0
                                    : std::nan("");
  }
  on.write(op.out(), out);
}

static void run(const plan::EmbeddingGrad &op, Views &on) {
  Tensor ids = on.read(op.ids()), gradient = on.read(op.dout());
  std::optional<Tensor> first = on.readIf(op.first_row());
  Tensor sum = on.zeros(op.dtable());
  int64_t rows = sum.getDimSize(0), width = sum.size() / rows;
  for (int64_t i = 0; i < ids.size(); ++i) {
    int64_t row = ownRow(ids[i], first ? (*first)[0] : 0, rows);
    for (int64_t j = 0; row >= 0 && j < width; ++j)
      sum[row * width + j] += gradient[i * width + j];
  }
  on.add(op.dtable(), sum, op.accumulate());
}

//===-- rotary_table --------------------------------------------------------//

/// [rows, 2 x frequencies] each. A row is at its number, or in `positions`.
static Tensors rotaryTables(ArrayRef<float> inverseFrequencies, double scale,
                            int64_t rows, const Tensor *positions) {
  auto half = static_cast<int64_t>(inverseFrequencies.size());
  Tensor cosine(std::vector<int64_t>{rows, 2 * half}), sine = cosine;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t d = 0; d < 2 * half; ++d) {
      double p = positions ? (*positions)[row] : static_cast<double>(row);
      if (p < 0)
        continue;
      // The angle is a float by definition, here as in every framework: at
      // position p its rounding moves it by up to p * 2^-24 radians.
      float angle = static_cast<float>(p) * inverseFrequencies[d % half];
      double sign = d < half ? -1 : 1;
      cosine.at({row, d}) = scale * std::cos(static_cast<double>(angle));
      sine.at({row, d}) = sign * scale * std::sin(static_cast<double>(angle));
    }
  return {cosine, sine};
}

static Results evaluate(RotaryTableOp op, ArrayRef<Tensor> operands) {
  return rotaryTables(op.getInverseFrequencies(),
                      op.getScale().convertToDouble(),
                      tensorType(op.getCosine()).getDimSize(0),
                      operands.empty() ? nullptr : operands.data());
}

static void run(const plan::RotaryTable &op, Views &on) {
  std::optional<Tensor> positions = on.readIf(op.positions());
  const auto &frequencies = *op.inverse_frequencies();
  Tensors tables = rotaryTables({frequencies.data(), frequencies.size()},
                                op.scale(), on.zeros(op.cos()).getDimSize(0),
                                positions ? &*positions : nullptr);
  on.write(op.cos(), tables[0]);
  on.write(op.sin(), tables[1]);
}

//===-- top_k ---------------------------------------------------------------//

namespace {
/// Numbers of elements, or of groups of them.
using Numbers = SmallVector<int64_t>;

/// NaN is above all.
bool isBetter(float a, float b) {
  return std::isnan(a) ? !std::isnan(b) : a > b;
}

/// The `k` best of `among`, best first; of equal ones the lower number.
Numbers bestOf(Numbers among, ArrayRef<float> scores, int64_t k) {
  llvm::sort(among, [&](int64_t a, int64_t b) {
    bool isEqual =
        !isBetter(scores[a], scores[b]) && !isBetter(scores[b], scores[a]);
    return isEqual ? a < b : isBetter(scores[a], scores[b]);
  });
  among.resize(k);
  return among;
}

struct Choice {
  int64_t groups, kept;
  bool addsTwo;

  /// The elements of that group.
  Numbers membersOf(int64_t group, int64_t experts) const {
    return llvm::to_vector(
        llvm::seq(group * experts / groups, (group + 1) * experts / groups));
  }
  float scoreOf(int64_t group, ArrayRef<float> scores) const {
    Numbers best =
        bestOf(membersOf(group, scores.size()), scores, addsTwo ? 2 : 1);
    return addsTwo ? scores[best[0]] + scores[best[1]] : scores[best[0]];
  }
  Numbers of(ArrayRef<float> scores, int64_t k) const {
    SmallVector<float> ofGroups;
    for (int64_t group = 0; group < groups; ++group)
      ofGroups.push_back(scoreOf(group, scores));
    Numbers kept =
        bestOf(llvm::to_vector(llvm::seq(groups)), ofGroups, this->kept);
    llvm::sort(kept);
    Numbers among;
    for (int64_t group : kept)
      llvm::append_range(among, membersOf(group, scores.size()));
    return bestOf(among, scores, k);
  }
};

/// Scores are f32 by definition: those that are equal then are equal here.
Tensor chosen(const Choice &choice, const Tensor &scores, const Tensor *valid,
              Tensor choices) {
  int64_t experts = scores.getShape().back(), k = choices.getShape().back();
  for (int64_t row = 0; row < scores.size() / experts; ++row) {
    bool isPadding = valid && (*valid)[row] == 0;
    auto values = llvm::map_to_vector(
        scores.getElements().slice(row * experts, experts),
        [](double value) { return static_cast<float>(value); });
    Numbers numbers = isPadding ? Numbers(k, -1) : choice.of(values, k);
    for (auto [i, number] : llvm::enumerate(numbers))
      choices[row * k + static_cast<int64_t>(i)] = static_cast<double>(number);
  }
  return choices;
}
} // namespace

static Results evaluate(TopKOp op, ArrayRef<Tensor> operands) {
  Choice choice{static_cast<int64_t>(op.getGroups()),
                static_cast<int64_t>(op.getKeptGroups()),
                op.getGroupScore() == GroupScore::two_best};
  return Tensors{chosen(choice, operands[0],
                        op.getValid() ? &operands[1] : nullptr,
                        Tensor::zeros(op.getType()))};
}

static void run(const plan::TopK &op, Views &on) {
  std::optional<Tensor> valid = on.readIf(op.valid());
  Choice choice{op.groups(), op.kept_groups(),
                op.group_score() == plan::GroupScore::two_best};
  on.write(op.choices(),
           chosen(choice, on.read(op.scores()), valid ? &*valid : nullptr,
                  on.zeros(op.choices())));
}

void addTables(Evaluators &to) {
  to.add<EmbeddingOp>(evaluate);
  to.add<EmbeddingGradOp>(evaluate);
  to.add<RotaryTableOp>(evaluate);
  to.add<TopKOp>(evaluate);
  to.add<plan::Embedding>(run);
  to.add<plan::EmbeddingGrad>(run);
  to.add<plan::RotaryTable>(run);
  to.add<plan::TopK>(run);
}

} // namespace meshwork::interpreter
