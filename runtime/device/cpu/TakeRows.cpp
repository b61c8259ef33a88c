// TakeRows: copies of a table's rows.
#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/Operation.h"
#include "runtime/device/cpu/Rows.h"

namespace meshwork::runtime::cpu {
namespace {

template <typename From, typename To>
void copyRow(const From *from, int64_t width, To *to) {
  for (int64_t i = 0; i < width; ++i)
    assign(to[i], toFloat(from[i]));
}

class TakeRowsOperation final : public Operation {
public:
  TakeRowsOperation(Rows table, Numbers numbers, Rows out)
      : table(std::move(table)), numbers(std::move(numbers)),
        out(std::move(out)) {}

  void run(const StepState &) override {
    const int32_t *rows = numbers.in(arena);
    team->parallelFor(numbers.count, [&](int64_t i, int64_t end, int) {
      for (; i < end; ++i)
        if (rows[i] >= 0 && rows[i] < table.count)
          take(rows[i], i);
        else
          std::memset(out.at(arena, i), 0, out.rowBytes());
    });
  }

private:
  void take(int64_t row, int64_t to) const {
    if (table.type() == out.type())
      return (void)std::memcpy(out.at(arena, to), table.at(arena, row),
                               out.rowBytes());
    withTypes(table.type(), out.type(),
              [&]<typename From, typename To>(From *, To *) {
                copyRow(table.row<From>(arena, row), table.width,
                        out.row<To>(arena, to));
              });
  }

  Rows table;
  Numbers numbers;
  Rows out;
};
} // namespace

OperationOr make(const plan::TakeRows &op, const ProgramOnRank &program) {
  Rows table, out;
  Numbers rows;
  MESHWORK_ASSIGN_OR_RETURN(rows, numbersOf(program, op.rows(), "rows"));
  MESHWORK_ASSIGN_OR_RETURN(table,
                            floatRowsOf(program, op.table(), 1, "table"));
  MESHWORK_ASSIGN_OR_RETURN(
      out, floatRowsOf(program, op.out(), rows.tensor.rank(), "out"));
  MESHWORK_RETURN_IF_ERROR(expectCount(out.count, rows.count, "rows of out"));
  MESHWORK_RETURN_IF_ERROR(
      expectCount(out.width, table.width, "elements in a row of out"));
  return std::make_unique<TakeRowsOperation>(std::move(table), std::move(rows),
                                             std::move(out));
}

} // namespace meshwork::runtime::cpu
