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
        out(std::move(out)), none(this->out.type() == DType::i32 ? 0xff : 0) {}

  void run(const StepState &) override {
    const int32_t *rows = numbers.in(arena);
    team->parallelFor(numbers.count, [&](int64_t i, int64_t end, int) {
      for (; i < end; ++i)
        if (rows[i] >= 0 && rows[i] < table.count)
          take(rows[i], i);
        else
          std::memset(out.at(arena, i), none, out.rowBytes());
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
  int none; // each byte of a row that is not there: 0, or of i32 -1
};
} // namespace

/// Of i32 too.
static absl::StatusOr<Rows> anyRowsOf(const ProgramOnRank &program,
                                      uint32_t view, int64_t dims,
                                      const char *role) {
  Tensor tensor;
  MESHWORK_ASSIGN_OR_RETURN(tensor, tensorOf(program, view, role));
  if (tensor.dtype == DType::i32)
    return rowsOf(std::move(tensor), dims, role);
  return floatRowsOf(program, view, dims, role);
}

OperationOr make(const plan::TakeRows &op, const ProgramOnRank &program) {
  Rows table, out;
  Numbers rows;
  MESHWORK_ASSIGN_OR_RETURN(rows, numbersOf(program, op.rows(), "rows"));
  MESHWORK_ASSIGN_OR_RETURN(table, anyRowsOf(program, op.table(), 1, "table"));
  MESHWORK_ASSIGN_OR_RETURN(
      out, anyRowsOf(program, op.out(), rows.tensor.rank(), "out"));
  if ((table.type() == DType::i32) != (out.type() == DType::i32))
    return absl::InvalidArgumentError("one of table and out is i32");
  MESHWORK_RETURN_IF_ERROR(expectCount(out.count, rows.count, "rows of out"));
  MESHWORK_RETURN_IF_ERROR(
      expectCount(out.width, table.width, "elements in a row of out"));
  return std::make_unique<TakeRowsOperation>(std::move(table), std::move(rows),
                                             std::move(out));
}

} // namespace meshwork::runtime::cpu
