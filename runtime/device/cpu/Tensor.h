// Views of a plan as the operations of this folder read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "meshwork/Plan/Types.h"
#include "runtime/device/cpu/Prepare.h"

namespace meshwork::runtime::cpu {

using plan::DType;

using plan::bytesOf;
const char *nameOf(DType type);

/// A strided tensor at a fixed place in the arenas.
struct Tensor {
  uint64_t offset = 0; // its place; see lib/Plan/Spaces.h
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides; // in elements

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t bytes() const { return bytesOf(dtype); }
  std::byte *in(std::byte *arena) const { return arena + offset; }
  /// "f32[4, 8] with strides [8, 1]", for messages.
  std::string describe() const;
};

/// A run of dims seen as one: `count` elements, `stride` apart.
struct Run {
  int64_t count = 1;
  int64_t stride = 1;
};

/// View `index` of the program, where the rank has it. `role` names it in
/// messages.
absl::StatusOr<Tensor> tensorOf(const ProgramOnRank &program, uint32_t index,
                                const char *role);

/// Dims [first, last) as one run, or an error when their strides do not nest.
absl::StatusOr<Run> collapse(const Tensor &tensor, int64_t first, int64_t last,
                             const char *role);

/// The whole tensor as one dense run of elements, or an error.
absl::StatusOr<int64_t> denseCount(const Tensor &tensor, const char *role);

absl::Status expectRank(const Tensor &tensor, int64_t rank, const char *role);
absl::Status expectType(const Tensor &tensor, DType type, const char *role);
absl::Status expectShape(const Tensor &tensor,
                         const std::vector<int64_t> &shape, const char *role);

} // namespace meshwork::runtime::cpu
