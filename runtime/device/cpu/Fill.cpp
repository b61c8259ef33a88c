// Fill: one value everywhere.
#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/Bf16.h"
#include "runtime/device/cpu/Operation.h"

namespace meshwork::runtime::cpu {
namespace {

class FillOperation final : public Operation {
public:
  FillOperation(const Tensor &dst, int64_t count, float value)
      : dst(dst), count(count), value(value) {}

  void run(const StepState &) override {
    std::byte *base = dst.in(arena);
    team->parallelFor(count, [&](int64_t begin, int64_t end, int) {
      if (dst.dtype == DType::f32)
        fill(reinterpret_cast<float *>(base), begin, end, value);
      else if (dst.dtype == DType::bf16)
        fill(reinterpret_cast<Bf16 *>(base), begin, end, toBf16(value));
      else
        fill(reinterpret_cast<int32_t *>(base), begin, end,
             static_cast<int32_t>(value));
    });
  }

private:
  template <typename T>
  static void fill(T *base, int64_t begin, int64_t end, T element) {
    std::fill(base + begin, base + end, element);
  }

  Tensor dst;
  int64_t count;
  float value;
};

} // namespace

OperationOr make(const plan::Fill &op, const ProgramOnRank &program) {
  Tensor dst;
  MESHWORK_ASSIGN_OR_RETURN(dst, tensorOf(program, op.dst(), "dst"));
  int64_t count;
  MESHWORK_ASSIGN_OR_RETURN(count, denseCount(dst, "dst"));
  bool fits = op.value() >= -2147483648.0f && op.value() < 2147483648.0f;
  if (dst.dtype == DType::i32 && !fits)
    return absl::InvalidArgumentError("value does not fit i32");
  return std::make_unique<FillOperation>(dst, count, op.value());
}

} // namespace meshwork::runtime::cpu
