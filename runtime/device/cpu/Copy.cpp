// Copy: a tensor as it is, without gaps.
#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/Operation.h"

namespace meshwork::runtime::cpu {
namespace {

class CopyOperation final : public Operation {
public:
  CopyOperation(Tensor src, Tensor dst, int64_t bytes)
      : src(std::move(src)), dst(std::move(dst)), bytes(bytes) {}

  void run(const StepState &state) override {
    if (state.isAlone)
      return copy(0, bytes);
    team->parallelFor(ceilDiv(bytes, atOnce),
                      [&](int64_t begin, int64_t end, int) {
                        copy(begin * atOnce, std::min(end * atOnce, bytes));
                      });
  }

private:
  static constexpr int64_t atOnce = 64 << 10; // bytes; a few page walks

  void copy(int64_t begin, int64_t end) const {
    std::memcpy(dst.in(arena) + begin, src.in(arena) + begin,
                static_cast<size_t>(end - begin));
  }

  Tensor src, dst;
  int64_t bytes;
};

} // namespace

OperationOr make(const plan::Copy &op, const ProgramOnRank &program) {
  Tensor src, dst;
  MESHWORK_ASSIGN_OR_RETURN(src, tensorOf(program, op.src(), "src"));
  MESHWORK_ASSIGN_OR_RETURN(dst, tensorOf(program, op.dst(), "dst"));
  MESHWORK_RETURN_IF_ERROR(expectType(dst, src.dtype, "dst"));
  MESHWORK_RETURN_IF_ERROR(expectShape(dst, src.shape, "dst"));
  int64_t count = 0;
  MESHWORK_ASSIGN_OR_RETURN(count, denseCount(src, "src"));
  MESHWORK_RETURN_IF_ERROR(denseCount(dst, "dst").status());
  return std::make_unique<CopyOperation>(src, dst, count * src.bytes());
}

} // namespace meshwork::runtime::cpu
