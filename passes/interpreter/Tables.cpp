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

/// The rows of all ids.
static FailureOr<std::vector<int64_t>> rowsOf(Operation *op, const Tensor &ids,
                                              int64_t rows,
                                              ArrayRef<Tensor> firstRow) {
  std::vector<int64_t> found;
  for (double id : ids.getElements()) {
    FailureOr<int64_t> row = rowOf(op, id, rows, firstRow);
    if (failed(row))
      return failure();
    found.push_back(*row);
  }
  return found;
}

/// Rows of `table`; `none` where the rank has not the row.
static Tensor lookedUp(const Tensor &table, ArrayRef<int64_t> rows, double none,
                       Tensor result) {
  int64_t width = table.size() / table.getDimSize(0);
  for (auto [i, row] : llvm::enumerate(rows))
    for (int64_t j = 0; j < width; ++j)
      result[static_cast<int64_t>(i) * width + j] =
          row >= 0 ? table[row * width + j] : none;
  return result;
}

/// What `gradient` adds to the rows of a table.
static Tensor addedUp(const Tensor &gradient, ArrayRef<int64_t> rows,
                      Tensor result) {
  int64_t width = result.size() / result.getDimSize(0);
  for (auto [i, row] : llvm::enumerate(rows))
    for (int64_t j = 0; row >= 0 && j < width; ++j)
      result[row * width + j] += gradient[static_cast<int64_t>(i) * width + j];
  return result;
}

static Results evaluate(EmbeddingOp op, ArrayRef<Tensor> operands) {
  const Tensor &table = operands[0];
  auto rows =
      rowsOf(op, operands[1], table.getDimSize(0), operands.drop_front(2));
  if (failed(rows))
    return failure();
  return Tensors{lookedUp(table, *rows, 0, Tensor::zeros(op.getType()))};
}

static Results evaluate(EmbeddingGradOp op, ArrayRef<Tensor> operands) {
  Tensor result = Tensor::zeros(op.getType());
  auto rows =
      rowsOf(op, operands[0], result.getDimSize(0), operands.drop_front(2));
  if (failed(rows))
    return failure();
  return Tensors{addedUp(operands[1], *rows, std::move(result))};
}

/// Rows of the rank's table that ids mean; -1: another rank's.
static std::vector<int64_t>
ownRows(const Tensor &ids, const std::optional<Tensor> &first, int64_t rows) {
  std::vector<int64_t> own;
  for (double id : ids.getElements()) {
    double row = first ? id - (*first)[0] : id;
    bool isOwn = row >= 0 && row < static_cast<double>(rows);
    own.push_back(isOwn ? static_cast<int64_t>(row) : -1);
  }
  return own;
}

static void run(const plan::Embedding &op, Views &on) {
  Tensor table = on.read(op.table());
  std::optional<Tensor> first = on.readIf(op.first_row());
  auto rows = ownRows(on.read(op.ids()), first, table.getDimSize(0));
  double none = first ? 0 : std::nan("");
  on.write(op.out(), lookedUp(table, rows, none, on.zeros(op.out())));
}

static void run(const plan::EmbeddingGrad &op, Views &on) {
  Tensor sum = on.zeros(op.dtable());
  auto rows =
      ownRows(on.read(op.ids()), on.readIf(op.first_row()), sum.getDimSize(0));
  on.add(op.dtable(), addedUp(on.read(op.dout()), rows, sum), op.accumulate());
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
