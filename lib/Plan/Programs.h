// Which program of a plan a rank runs: a function of its coordinates along a
// few axes, so that a plan does not grow with the ranks that differ otherwise.
#pragma once

#include "meshwork/Plan/Plan.h"

namespace meshwork::plan {

/// The row-major index of coordinates along Plan.program_axes.
///   coordinateOf  the coordinate along an axis, an index into Plan.mesh
template <typename CoordinateOf>
uint64_t programIndex(const Plan &plan, CoordinateOf coordinateOf) {
  uint64_t index = 0;
  if (plan.program_axes())
    for (uint32_t axis : *plan.program_axes())
      index = index * plan.mesh()->Get(axis)->size() + coordinateOf(axis);
  return index;
}

/// The program at such an index.
inline uint32_t programNumber(const Plan &plan, uint64_t index) {
  return plan.program_numbers() && plan.program_numbers()->size() > 0
             ? plan.program_numbers()->Get(static_cast<uint32_t>(index))
             : 0;
}

/// Ranks are row-major over the mesh.
inline uint32_t coordinateOf(const Plan &plan, uint64_t rank, uint32_t axis) {
  for (uint32_t i = plan.mesh()->size() - 1; i > axis; --i)
    rank /= plan.mesh()->Get(i)->size();
  return static_cast<uint32_t>(rank % plan.mesh()->Get(axis)->size());
}

inline uint32_t programOf(const Plan &plan, uint64_t rank) {
  return programNumber(plan, programIndex(plan, [&](uint32_t axis) {
                         return coordinateOf(plan, rank, axis);
                       }));
}

} // namespace meshwork::plan
