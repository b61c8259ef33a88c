// Fill: one value everywhere.
#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/Bf16.h"
#include "runtime/device/cpu/Operation.h"

namespace meshwork::runtime::cpu {
namespace {

class FillOperation final : public Operation {
public:
  FillOperation(const Tensor &dst, Run rows, int64_t count, float value)
      : dst(dst), rows(rows), count(count), value(value) {}

  void run(const StepState &) override {
    if (rows.count == 1)
      return team->parallelFor(count, [&](int64_t begin, int64_t end, int) {
        fillRow(0, begin, end);
      });
    team->parallelFor(rows.count, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row)
        fillRow(row, 0, count);
    });
  }

private:
  void fillRow(int64_t row, int64_t begin, int64_t end) const {
    std::byte *base = dst.in(arena) + row * rows.stride * dst.bytes();
    if (dst.dtype == DType::f32)
      fill(reinterpret_cast<float *>(base), begin, end, value);
    else if (dst.dtype == DType::bf16)
      fill(reinterpret_cast<Bf16 *>(base), begin, end, toBf16(value));
    else
      fill(reinterpret_cast<int32_t *>(base), begin, end,
           static_cast<int32_t>(value));
  }

  template <typename T>
  static void fill(T *base, int64_t begin, int64_t end, T element) {
    std::fill(base + begin, base + end, element);
  }

  Tensor dst;
  Run rows;
  int64_t count; // of a row
  float value;
};

} // namespace

OperationOr make(const plan::Fill &op, const ProgramOnRank &program) {
  Tensor dst;
  MESHWORK_ASSIGN_OR_RETURN(dst, tensorOf(program, op.dst(), "dst"));
  Run rows, row;
  bool hasRows = dst.rank() == 2;
  MESHWORK_ASSIGN_OR_RETURN(rows, collapse(dst, 0, hasRows, "dst"));
  MESHWORK_ASSIGN_OR_RETURN(row, collapse(dst, hasRows, dst.rank(), "dst"));
  if (row.count > 1 && row.stride != 1)
    return absl::UnimplementedError(absl::StrCat(
        "dst is ", dst.describe(), ", expected dense elements or rows"));
  bool fits = op.value() >= -2147483648.0f && op.value() < 2147483648.0f;
  if (dst.dtype == DType::i32 && !fits)
    return absl::InvalidArgumentError("value does not fit i32");
  return std::make_unique<FillOperation>(dst, rows, row.count, op.value());
}

} // namespace meshwork::runtime::cpu
