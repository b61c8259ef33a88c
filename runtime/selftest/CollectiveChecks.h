// Every collective over every group of a mesh, against what it must give.
#pragma once

#include "runtime/comm/Mesh.h"
#include "runtime/comm/Transport.h"

namespace meshwork::runtime {

struct CollectiveCheck {
  plan::CollectiveKind kind;
  plan::Reduction reduction;
  plan::DType dtype;
  std::vector<uint32_t> axes; // of the mesh
  uint32_t ranks = 0;         // of a group
  uint64_t bytes = 0;         // that a rank puts in
  double seconds = 0;         // of the slowest rank, in its second run
  /// "" when all ranks have what they should; else the lowest that has not,
  /// and the first element that is wrong.
  std::string wrong;
};

/// Sizes of a mesh of `ranks`, outermost first: up to three axes, as many as
/// their number has factors.
std::vector<uint32_t> meshToCheck(uint32_t ranks);

/// What checkCollectives() will prepare, with addresses that mean nothing.
std::vector<CollectiveRequest>
collectivesToCheck(uint32_t rank, const Mesh &mesh, uint32_t numAxes);

/// By all ranks together, with the same result on each. All inputs are whole
/// numbers that sums keep exact, so a result is right in every bit or wrong.
absl::StatusOr<std::vector<CollectiveCheck>>
checkCollectives(Transport &transport, uint32_t rank, const Mesh &mesh,
                 uint32_t numAxes);

} // namespace meshwork::runtime
