// CombineRows: a token's rows added up along one binary tree.
//
// The leaves are sorted by their numbers and come one after the other. Sums
// that wait for their right-hand side are on a stack, as when a binary counter
// counts up. Between two neighbours is a *gap*: the highest bit in which their
// numbers differ. Two sums are added once the gap behind them is wider than the
// one between them.
#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/types/span.h"
#include "runtime/device/cpu/Operation.h"
#include "runtime/device/cpu/Rows.h"

namespace meshwork::runtime::cpu {
namespace {

/// Columns that are added up together: a stack of them stays in the caches.
constexpr int64_t columnsAtOnce = 512;
/// Gaps on the stack become narrower upwards: one for each bit, and one of
/// width zero between equal numbers.
constexpr int64_t mostSums = 34;

struct Leaf {
  uint32_t number; // of the tree
  int32_t choice;  // of the token
  int32_t row;
  int32_t sums; // that this leaf completes
};

/// Of zero: between equal numbers.
int gapBetween(const Leaf &a, const Leaf &b) {
  return std::bit_width(a.number ^ b.number);
}

bool isBefore(const Leaf &a, const Leaf &b) {
  return a.number != b.number ? a.number < b.number : a.choice < b.choice;
}

/// Says of each leaf, in their order, how many sums it completes.
void countSums(Leaf *leaves, int64_t count) {
  int gaps[mostSums];
  int64_t waiting = 0;
  for (int64_t i = 0; i < count; ++i) {
    bool isLast = i + 1 == count;
    int behind = isLast ? mostSums : gapBetween(leaves[i], leaves[i + 1]);
    leaves[i].sums = 0;
    for (; waiting > 0 && gaps[waiting - 1] <= behind; --waiting)
      ++leaves[i].sums;
    if (!isLast)
      gaps[waiting++] = behind;
  }
}

template <typename From>
void copyTo(float *sum, const From *row, int64_t width) {
  for (int64_t i = 0; i < width; ++i)
    sum[i] = toFloat(row[i]);
}
template <typename From>
void addTo(float *sum, const From *row, int64_t width) {
  for (int64_t i = 0; i < width; ++i)
    sum[i] += toFloat(row[i]);
}

class CombineRowsOperation final : public Operation {
public:
  CombineRowsOperation(Rows src, Numbers places, Numbers choices, Rows out)
      : src(std::move(src)), places(std::move(places)),
        choices(std::move(choices)), out(std::move(out)),
        k(this->choices.count / this->out.count) {}

  uint64_t workspaceBytes() const override {
    Carver carver(nullptr);
    carve(carver);
    return carver.used();
  }

  void run(const StepState &) override {
    withTypes(src.type(), out.type(),
              [&](auto *from, auto *to) { combineAll(from, to); });
  }

private:
  struct Scratch {
    Leaf *leaves;
    float *sums;
  };
  Scratch carve(Carver &carver) const {
    Leaf *leaves = carver.take<Leaf>(k);
    int64_t width = std::min(columnsAtOnce, src.width);
    return {leaves, carver.take<float>(std::min(k, mostSums) * width)};
  }

  template <typename From, typename To> void combineAll(From *, To *) {
    team->parallelFor(out.count, [&](int64_t token, int64_t end, int thread) {
      Carver carver(workspaceOf(thread));
      Scratch scratch = carve(carver);
      for (; token < end; ++token)
        combine<From>(token, scratch, out.row<To>(arena, token));
    });
  }

  template <typename From, typename To>
  void combine(int64_t token, const Scratch &scratch, To *to) const {
    int64_t count = takeLeaves(token, scratch.leaves);
    if (count == 0)
      return (void)std::memset(to, 0, out.rowBytes());
    for (int64_t first = 0; first < src.width; first += columnsAtOnce) {
      int64_t width = std::min(columnsAtOnce, src.width - first);
      addUp<From>(scratch, count, first, width);
      for (int64_t i = 0; i < width; ++i)
        assign(to[first + i], scratch.sums[i]);
    }
  }

  /// Those that have a row, in the order of their numbers.
  int64_t takeLeaves(int64_t token, Leaf *leaves) const {
    const int32_t *place = places.in(arena) + token * k;
    const int32_t *choice = choices.in(arena) + token * k;
    int64_t count = 0;
    for (int64_t i = 0; i < k; ++i)
      if (place[i] >= 0 && place[i] < src.count)
        leaves[count++] = {static_cast<uint32_t>(choice[i]),
                           static_cast<int32_t>(i), place[i], 0};
    std::sort(leaves, leaves + count, isBefore);
    countSums(leaves, count);
    return count;
  }

  /// Leaves the sum of the columns at the start of the stack.
  template <typename From>
  void addUp(const Scratch &scratch, int64_t count, int64_t first,
             int64_t width) const {
    auto sumAt = [&](int64_t i) { return scratch.sums + i * width; };
    int64_t waiting = 0;
    for (const Leaf &leaf : absl::MakeConstSpan(scratch.leaves, count)) {
      const From *row = src.row<From>(arena, leaf.row) + first;
      if (leaf.sums == 0) {
        copyTo(sumAt(waiting++), row, width);
        continue;
      }
      addTo(sumAt(waiting - 1), row, width); // Itself is the right-hand side.
      for (int32_t i = 1; i < leaf.sums; ++i, --waiting)
        addTo(sumAt(waiting - 2), sumAt(waiting - 1), width);
    }
  }

  Rows src;
  Numbers places, choices;
  Rows out;
  int64_t k;
};
} // namespace

OperationOr make(const plan::CombineRows &op, const ProgramOnRank &program) {
  Rows src, out;
  Numbers places, choices;
  MESHWORK_ASSIGN_OR_RETURN(places, numbersOf(program, op.places(), "places"));
  MESHWORK_ASSIGN_OR_RETURN(choices,
                            numbersOf(program, op.choices(), "choices"));
  MESHWORK_RETURN_IF_ERROR(
      expectShape(places.tensor, choices.tensor.shape, "places"));
  MESHWORK_ASSIGN_OR_RETURN(src, floatRowsOf(program, op.src(), 1, "src"));
  int64_t tokenDims = choices.tensor.rank() - 1;
  if (tokenDims < 0)
    return absl::InvalidArgumentError("choices have no dims");
  MESHWORK_ASSIGN_OR_RETURN(out,
                            floatRowsOf(program, op.out(), tokenDims, "out"));
  MESHWORK_RETURN_IF_ERROR(expectCount(
      out.count, choices.count / choices.tensor.shape.back(), "rows of out"));
  MESHWORK_RETURN_IF_ERROR(
      expectCount(out.width, src.width, "elements in a row of out"));
  return std::make_unique<CombineRowsOperation>(
      std::move(src), std::move(places), std::move(choices), std::move(out));
}

} // namespace meshwork::runtime::cpu
