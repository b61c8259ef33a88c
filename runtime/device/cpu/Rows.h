// Tensors as rows of dense elements, and lists of numbers.
#pragma once

#include "runtime/device/cpu/Bf16.h"
#include "runtime/device/cpu/Tensor.h"

namespace meshwork::runtime::cpu {

/// `count` rows of `width` dense elements, `stride` elements apart.
struct Rows {
  Tensor tensor;
  int64_t count = 0, width = 0, stride = 0;

  DType type() const { return tensor.dtype; }
  std::byte *at(std::byte *arena, int64_t index) const {
    return tensor.in(arena) + index * stride * tensor.bytes();
  }
  template <typename T> T *row(std::byte *arena, int64_t index) const {
    return reinterpret_cast<T *>(at(arena, index));
  }
  int64_t rowBytes() const { return width * tensor.bytes(); }
};

/// `tensor` split before dim `dims`, counted from the end when negative.
absl::StatusOr<Rows> rowsOf(Tensor tensor, int64_t dims, const char *role);
/// The same of a view that must have this type.
absl::StatusOr<Rows> rowsOf(const ProgramOnRank &program, uint32_t view,
                            DType type, int64_t dims, const char *role);
/// Of a view of f32 or bf16.
absl::StatusOr<Rows> floatRowsOf(const ProgramOnRank &program, uint32_t view,
                                 int64_t dims, const char *role);

/// i32 without gaps.
struct Numbers {
  Tensor tensor;
  int64_t count = 0;

  int32_t *in(std::byte *arena) const {
    return reinterpret_cast<int32_t *>(tensor.in(arena));
  }
};
absl::StatusOr<Numbers> numbersOf(const ProgramOnRank &program, uint32_t view,
                                  const char *role);

/// An error where `found` is not `expected`; `what` names both.
absl::Status expectCount(int64_t found, int64_t expected, const char *what);

/// Calls `function` with a null pointer of each of the two element types.
template <typename Function>
void withTypes(DType a, DType b, Function function) {
  auto second = [&](auto *first) {
    if (b == DType::bf16)
      function(first, static_cast<Bf16 *>(nullptr));
    else
      function(first, static_cast<float *>(nullptr));
  };
  if (a == DType::bf16)
    second(static_cast<Bf16 *>(nullptr));
  else
    second(static_cast<float *>(nullptr));
}

} // namespace meshwork::runtime::cpu
