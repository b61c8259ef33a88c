// SortRows: a counting sort. Each part of the choices is counted by itself;
// sums of the counts, expert by expert and in an expert part by part, say where
// each part's choices go. So the result is the same for any number of parts.
#include <algorithm>
#include <optional>
#include <utility>

#include "meshwork/Plan/Frame.h"
#include "runtime/device/cpu/Operation.h"
#include "runtime/device/cpu/Rows.h"

namespace meshwork::runtime::cpu {
namespace {

/// Fewer choices take a thread less time than two threads need to meet.
constexpr int64_t choicesOfPart = 4096;

struct Sorting {
  Numbers choices, order, tokens, places, begins;
  std::optional<Numbers> first;
  int64_t k = 1;

  int64_t experts() const { return begins.count - 1; }
  int64_t rows() const { return order.count; }
};

class SortRowsOperation final : public Operation {
public:
  explicit SortRowsOperation(Sorting sorting) : sorting(std::move(sorting)) {}

  uint64_t workspaceBytes() const override {
    return static_cast<uint64_t>(sorting.experts()) * sizeof(int32_t);
  }

  void run(const StepState &) override {
    first = sorting.first ? *sorting.first->in(arena) : 0;
    parts = std::clamp<int64_t>(sorting.choices.count / choicesOfPart, 1,
                                team->size());
    forEachPart([this](int64_t part) { count(part); });
    int64_t taken = addUp();
    forEachPart([this](int64_t part) { place(part); });
    for (const Numbers *list : {&sorting.order, &sorting.tokens})
      std::fill(list->in(arena) + taken, list->in(arena) + sorting.rows(), -1);
  }

private:
  template <typename Function> void forEachPart(Function function) {
    team->parallelFor(parts, [&](int64_t part, int64_t end, int) {
      for (; part < end; ++part)
        function(part);
    });
  }

  /// Of a part: its experts' counts, later the row that each goes on at.
  int32_t *countsOf(int64_t part) const {
    return reinterpret_cast<int32_t *>(workspaceOf(static_cast<int>(part)));
  }
  int64_t beginOf(int64_t part) const {
    return sorting.choices.count / parts * part +
           std::min(part, sorting.choices.count % parts);
  }
  /// -1: it takes no row.
  int64_t expertOf(int64_t choice) const {
    int64_t expert = sorting.choices.in(arena)[choice] - first;
    return expert >= 0 && expert < sorting.experts() ? expert : -1;
  }

  void count(int64_t part) const {
    int32_t *counts = countsOf(part);
    std::fill_n(counts, sorting.experts(), 0);
    for (int64_t c = beginOf(part); c < beginOf(part + 1); ++c)
      if (int64_t expert = expertOf(c); expert >= 0)
        ++counts[expert];
  }

  /// How many rows are taken.
  int64_t addUp() const {
    int32_t *begins = sorting.begins.in(arena);
    int64_t sum = 0;
    auto atMostRows = [&] {
      return static_cast<int32_t>(std::min(sum, sorting.rows()));
    };
    for (int64_t expert = 0; expert < sorting.experts(); ++expert) {
      begins[expert] = atMostRows();
      for (int64_t part = 0; part < parts; ++part)
        sum += std::exchange(countsOf(part)[expert], static_cast<int32_t>(sum));
    }
    return begins[sorting.experts()] = atMostRows();
  }

  void place(int64_t part) const {
    int32_t *rows = countsOf(part);
    for (int64_t c = beginOf(part); c < beginOf(part + 1); ++c) {
      int64_t expert = expertOf(c);
      sorting.places.in(arena)[c] = expert < 0 ? -1 : take(c, rows[expert]++);
    }
  }
  int32_t take(int64_t choice, int32_t row) const {
    if (row >= sorting.rows())
      return -1;
    sorting.order.in(arena)[row] = static_cast<int32_t>(choice);
    sorting.tokens.in(arena)[row] = static_cast<int32_t>(choice / sorting.k);
    return row;
  }

  Sorting sorting;
  int64_t first = 0, parts = 1; // of this run
};

absl::Status check(const Sorting &sorting) {
  MESHWORK_RETURN_IF_ERROR(
      expectCount(sorting.tokens.count, sorting.order.count, "tokens"));
  MESHWORK_RETURN_IF_ERROR(
      expectCount(sorting.places.count, sorting.choices.count, "places"));
  if (sorting.choices.tensor.rank() == 0 || sorting.begins.count < 2 ||
      std::max(sorting.choices.count, sorting.order.count) > INT32_MAX)
    return absl::InvalidArgumentError(
        "expected choices with a dim, an expert, and fewer than 2^31 of all");
  return absl::OkStatus();
}
} // namespace

OperationOr make(const plan::SortRows &op, const ProgramOnRank &program) {
  Sorting sorting;
  for (auto [numbers, view, role] :
       {std::tuple(&sorting.choices, op.choices(), "choices"),
        {&sorting.order, op.order(), "order"},
        {&sorting.tokens, op.tokens(), "tokens"},
        {&sorting.places, op.places(), "places"},
        {&sorting.begins, op.begins(), "begins"}})
    MESHWORK_ASSIGN_OR_RETURN(*numbers, numbersOf(program, view, role));
  MESHWORK_RETURN_IF_ERROR(check(sorting));
  sorting.k = sorting.choices.tensor.shape.back();
  if (op.first_expert() != plan::noView) {
    Numbers first;
    MESHWORK_ASSIGN_OR_RETURN(
        first, numbersOf(program, op.first_expert(), "first_expert"));
    sorting.first = std::move(first);
  }
  return std::make_unique<SortRowsOperation>(std::move(sorting));
}

} // namespace meshwork::runtime::cpu
