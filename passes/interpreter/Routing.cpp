#include "passes/interpreter/Routing.h"

#include "passes/interpreter/Evaluate.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace meshwork::interpreter {
namespace {

/// `number` when it is one of 0 to `count` - 1, else -1.
int64_t within(double number, int64_t count) {
  return number >= 0 && number < static_cast<double>(count)
             ? static_cast<int64_t>(number)
             : -1;
}

/// Calls `visit` with each choice's position and that of the chosen one's
/// score.
void forEachChoice(const Tensor &choices, int64_t experts,
                   function_ref<void(int64_t, int64_t)> visit) {
  int64_t k = choices.getShape().back();
  for (int64_t i = 0; i < choices.size(); ++i)
    if (int64_t expert = within(choices[i], experts); expert >= 0)
      visit(i, i / k * experts + expert);
}

/// The rows that `begins` gives each expert, should it fall or leave the rows.
void forEachRow(const Tensor &begins, int64_t rows,
                function_ref<void(int64_t expert, int64_t row)> visit) {
  auto most = static_cast<double>(rows);
  double begin = std::clamp(begins[0], 0.0, most);
  for (int64_t expert = 0; expert + 1 < begins.size(); ++expert) {
    double end = std::clamp(begins[expert + 1], begin, most);
    for (; begin < end; ++begin)
      visit(expert, static_cast<int64_t>(begin));
  }
}

/// A row, and the number of its leaf in the tree.
struct Leaf {
  uint32_t number;
  int64_t row;
};

/// Of leaves in the order of their numbers: how many go into the first of the
/// two sums that are added last.
size_t splitOf(ArrayRef<Leaf> leaves) {
  uint32_t differ = leaves.front().number ^ leaves.back().number;
  if (differ == 0) // Equal ones are added one after the other.
    return leaves.size() - 1;
  uint32_t bit = llvm::bit_floor(differ);
  return llvm::find_if(leaves,
                       [&](const Leaf &leaf) { return leaf.number & bit; }) -
         leaves.begin();
}

/// Element `column` of the rows' sum.
double treeSum(ArrayRef<Leaf> leaves, const Tensor &src, int64_t width,
               int64_t column) {
  if (leaves.empty())
    return 0;
  if (leaves.size() == 1)
    return src[leaves.front().row * width + column];
  size_t first = splitOf(leaves);
  return treeSum(leaves.take_front(first), src, width, column) +
         treeSum(leaves.drop_front(first), src, width, column);
}

/// The leaves of one token, whose choices are [begin, begin + k).
SmallVector<Leaf> leavesOf(const Tensor &places, const Tensor &choices,
                           int64_t begin, int64_t rows) {
  SmallVector<Leaf> leaves;
  for (int64_t i = begin; i < begin + places.getShape().back(); ++i)
    if (int64_t row = within(places[i], rows); row >= 0)
      leaves.push_back(
          {static_cast<uint32_t>(static_cast<int64_t>(choices[i])), row});
  // Rows of one expert rise with the choices.
  llvm::sort(leaves, [](const Leaf &a, const Leaf &b) {
    return std::pair(a.number, a.row) < std::pair(b.number, b.row);
  });
  return leaves;
}

/// Choices that take a row, in the order of their rows, and their experts.
std::vector<std::pair<int64_t, int64_t>>
chosenExperts(const Tensor &choices, int64_t firstExpert, int64_t experts) {
  std::vector<std::pair<int64_t, int64_t>> found; // expert, choice
  for (int64_t c = 0; c < choices.size(); ++c)
    if (int64_t expert =
            within(choices[c] - static_cast<double>(firstExpert), experts);
        expert >= 0)
      found.emplace_back(expert, c);
  llvm::sort(found);
  return found;
}
} // namespace

Tensor picked(const Tensor &scores, const Tensor &choices, Tensor out) {
  forEachChoice(choices, scores.getShape().back(),
                [&](int64_t i, int64_t score) { out[i] = scores[score]; });
  return out;
}

Tensor pickedGradient(const Tensor &choices, const Tensor &dout, Tensor out) {
  forEachChoice(choices, out.getShape().back(),
                [&](int64_t i, int64_t score) { out[score] += dout[i]; });
  return out;
}

Tensor limitedChoices(const Tensor &choices, int64_t experts, int64_t most,
                      int64_t group) {
  Tensor kept(choices.getShape().vec(), -1);
  int64_t k = choices.getShape().back(), tokens = choices.size() / k;
  for (int64_t first = 0; first < tokens; first += group) {
    std::vector<int64_t> taken(static_cast<size_t>(experts));
    for (int64_t i = 0; i < k; ++i)
      for (int64_t token = first; token < first + group; ++token)
        if (int64_t expert = within(choices[token * k + i], experts);
            expert >= 0 && taken[expert]++ < most)
          kept[token * k + i] = static_cast<double>(expert);
  }
  return kept;
}

SortedRows sortedRows(const Tensor &choices, int64_t firstExpert,
                      SortedRows sorted) {
  int64_t k = choices.getShape().back(), experts = sorted.begins.size() - 1,
          rows = sorted.order.size();
  for (Tensor *none : {&sorted.order, &sorted.tokens, &sorted.places})
    *none = Tensor(none->getShape().vec(), -1);
  auto chosen = chosenExperts(choices, firstExpert, experts);
  chosen.resize(std::min<size_t>(chosen.size(), rows));
  for (auto [row, taken] : llvm::enumerate(chosen)) {
    auto [expert, choice] = taken;
    auto at = static_cast<int64_t>(row);
    sorted.order[at] = static_cast<double>(choice);
    sorted.tokens[at] = static_cast<double>(choice / k);
    sorted.places[choice] = static_cast<double>(row);
    for (int64_t later = expert + 1; later <= experts; ++later)
      sorted.begins[later] += 1;
  }
  return sorted;
}

Tensor takenRows(const Tensor &table, const Tensor &rows, Tensor out) {
  int64_t count = table.getDimSize(0), width = table.size() / count;
  for (int64_t i = 0; i < rows.size(); ++i)
    if (int64_t row = within(rows[i], count); row >= 0)
      for (int64_t j = 0; j < width; ++j)
        out[i * width + j] = table[row * width + j];
  return out;
}

Tensor combinedRows(const Tensor &src, const Tensor &places,
                    const Tensor &choices, Tensor out) {
  int64_t rows = src.getDimSize(0), width = src.size() / rows;
  int64_t k = places.getShape().back();
  for (int64_t token = 0; token < places.size() / k; ++token) {
    auto leaves = leavesOf(places, choices, token * k, rows);
    for (int64_t j = 0; j < width; ++j)
      out[token * width + j] = treeSum(leaves, src, width, j);
  }
  return out;
}

Tensor groupedProduct(const Tensor &lhs, const Tensor &rhs,
                      const Tensor &begins, Tensor out) {
  int64_t depth = rhs.getDimSize(1), columns = rhs.getDimSize(2);
  forEachRow(begins, lhs.getDimSize(0), [&](int64_t expert, int64_t row) {
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t n = 0; n < columns; ++n)
        out[row * columns + n] +=
            lhs[row * depth + k] * rhs[(expert * depth + k) * columns + n];
  });
  return out;
}

Tensor groupedGradient(const Tensor &lhs, const Tensor &rhs,
                       const Tensor &begins, Tensor out) {
  int64_t depth = out.getDimSize(1), columns = out.getDimSize(2);
  forEachRow(begins, lhs.getDimSize(0), [&](int64_t expert, int64_t row) {
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t n = 0; n < columns; ++n)
        out[(expert * depth + k) * columns + n] +=
            lhs[row * depth + k] * rhs[row * columns + n];
  });
  return out;
}

static void run(const plan::Pick &op, Views &on) {
  on.write(op.out(), picked(on.read(op.scores()), on.read(op.choices()),
                            on.zeros(op.out())));
}

static void run(const plan::PickGrad &op, Views &on) {
  on.write(op.dscores(),
           pickedGradient(on.read(op.choices()), on.read(op.dout()),
                          on.zeros(op.dscores())));
}

static void run(const plan::LimitChoices &op, Views &on) {
  on.write(op.kept(), limitedChoices(on.read(op.choices()), op.experts(),
                                     op.most(), op.group()));
}

static void run(const plan::SortRows &op, Views &on) {
  std::optional<Tensor> first = on.readIf(op.first_expert());
  SortedRows sorted = sortedRows(
      on.read(op.choices()), first ? static_cast<int64_t>((*first)[0]) : 0,
      {on.zeros(op.order()), on.zeros(op.tokens()), on.zeros(op.places()),
       on.zeros(op.begins())});
  on.write(op.order(), sorted.order);
  on.write(op.tokens(), sorted.tokens);
  on.write(op.places(), sorted.places);
  on.write(op.begins(), sorted.begins);
}

static void run(const plan::TakeRows &op, Views &on) {
  Tensor none = on.zeros(op.out());
  if (on.typeOf(op.out()) == plan::DType::i32)
    none = Tensor(none.getShape().vec(), -1);
  on.write(op.out(), takenRows(on.read(op.table()), on.read(op.rows()), none));
}

static void run(const plan::CombineRows &op, Views &on) {
  on.write(op.out(), combinedRows(on.read(op.src()), on.read(op.places()),
                                  on.read(op.choices()), on.zeros(op.out())));
}

static void run(const plan::GroupedProduct &op, Views &on) {
  on.write(op.out(), groupedProduct(on.read(op.lhs()), on.read(op.rhs()),
                                    on.read(op.begins()), on.zeros(op.out())));
}

static void run(const plan::GroupedGradient &op, Views &on) {
  on.add(op.dst(),
         groupedGradient(on.read(op.lhs()), on.read(op.rhs()),
                         on.read(op.begins()), on.zeros(op.dst())),
         op.accumulate());
}

void addRouting(Evaluators &to) {
  to.add<plan::Pick>(run);
  to.add<plan::PickGrad>(run);
  to.add<plan::LimitChoices>(run);
  to.add<plan::SortRows>(run);
  to.add<plan::TakeRows>(run);
  to.add<plan::CombineRows>(run);
  to.add<plan::GroupedProduct>(run);
  to.add<plan::GroupedGradient>(run);
}

} // namespace meshwork::interpreter
