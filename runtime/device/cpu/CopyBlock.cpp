// CopyBlock: a rank's part of a dim, with zeros behind its end.
#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/Operation.h"

namespace meshwork::runtime::cpu {
namespace {

/// A tensor as [outer, dim, inner].
struct Slab {
  Tensor tensor;
  Run outer, inner;
  int64_t count = 1, stride = 1; // along the dim
};

absl::StatusOr<Slab> slabOf(const Tensor &tensor, int64_t dim,
                            const char *role) {
  if (dim < 0 || dim >= tensor.rank())
    return absl::InvalidArgumentError("dim is none of its tensors'");
  Slab slab{tensor, {}, {}, tensor.shape[dim], tensor.strides[dim]};
  MESHWORK_ASSIGN_OR_RETURN(slab.outer, collapse(tensor, 0, dim, role));
  MESHWORK_ASSIGN_OR_RETURN(slab.inner,
                            collapse(tensor, dim + 1, tensor.rank(), role));
  return slab;
}

template <typename T>
void copyRow(const T *src, int64_t srcStride, T *dst, int64_t dstStride,
             int64_t count) {
  if (srcStride == 1 && dstStride == 1)
    std::copy_n(src, count, dst);
  else
    for (int64_t i = 0; i < count; ++i)
      dst[i * dstStride] = src[i * srcStride];
}

class CopyBlockOperation final : public Operation {
public:
  CopyBlockOperation(const Slab &src, const Slab &dst, const Tensor &first)
      : src(src), dst(dst), first(first) {}

  void run(const StepState &) override {
    int32_t begin;
    std::memcpy(&begin, first.in(arena), sizeof(begin));
    if (begin < 0) // No plan of ours; nothing is there.
      begin = INT32_MAX;
    if (src.tensor.bytes() == 4)
      copy<uint32_t>(begin);
    else if (src.tensor.bytes() == 2)
      copy<uint16_t>(begin);
    else
      copy<uint8_t>(begin);
  }

private:
  template <typename T> void copy(int64_t begin) {
    const T *from = reinterpret_cast<const T *>(src.tensor.in(arena));
    T *to = reinterpret_cast<T *>(dst.tensor.in(arena));
    auto copyRows = [&](int64_t row, int64_t end, int) {
      for (; row < end; ++row) {
        int64_t outer = row / dst.count, at = row % dst.count;
        T *target = to + outer * dst.outer.stride + at * dst.stride;
        if (begin + at < src.count)
          copyRow(from + outer * src.outer.stride + (begin + at) * src.stride,
                  src.inner.stride, target, dst.inner.stride, dst.inner.count);
        else
          for (int64_t i = 0; i < dst.inner.count; ++i)
            target[i * dst.inner.stride] = 0;
      }
    };
    team->parallelFor(dst.outer.count * dst.count, copyRows);
  }

  Slab src, dst;
  Tensor first;
};

} // namespace

OperationOr make(const plan::CopyBlock &op, const ProgramOnRank &program) {
  Tensor whole, block, first;
  MESHWORK_ASSIGN_OR_RETURN(whole, tensorOf(program, op.src(), "src"));
  MESHWORK_ASSIGN_OR_RETURN(block, tensorOf(program, op.dst(), "dst"));
  MESHWORK_ASSIGN_OR_RETURN(first, tensorOf(program, op.first(), "first"));
  MESHWORK_RETURN_IF_ERROR(expectType(block, whole.dtype, "dst"));
  MESHWORK_RETURN_IF_ERROR(expectType(first, DType::i32, "first"));
  Slab src, dst;
  MESHWORK_ASSIGN_OR_RETURN(src, slabOf(whole, op.dim(), "src"));
  MESHWORK_ASSIGN_OR_RETURN(dst, slabOf(block, op.dim(), "dst"));
  std::vector<int64_t> shape = whole.shape;
  shape[static_cast<size_t>(op.dim())] = dst.count;
  MESHWORK_RETURN_IF_ERROR(expectShape(block, shape, "dst"));
  return std::make_unique<CopyBlockOperation>(src, dst, first);
}

} // namespace meshwork::runtime::cpu
