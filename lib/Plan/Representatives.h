// The ranks of which one of each kind stands for all: those with coordinate 0
// along every axis on which programs do not depend. Ranks that differ along
// such an axis alone run one program and come to everything together, so a
// group is there when its members among these are.
#pragma once

#include "lib/Plan/Programs.h"
#include "lib/Plan/Views.h"

namespace meshwork::plan {

/// Of a plan with a mesh and program numbers that have been checked.
class Representatives {
public:
  explicit Representatives(const Plan &plan) : plan(plan) {
    for (uint32_t axis : orEmpty(plan.program_axes())) {
      count *= plan.mesh()->Get(axis)->size();
      bits |= 1u << axis;
    }
  }
  uint32_t size() const { return static_cast<uint32_t>(count); }
  /// The axes on which programs depend.
  uint32_t axes() const { return bits; }
  /// Of the one with a number from 0, which is row-major along program_axes.
  uint32_t programNumber(uint32_t number) const {
    return plan::programNumber(plan, number);
  }
  const Program &program(uint32_t number) const {
    return *plan.programs()->Get(programNumber(number));
  }
  /// The rank in the whole mesh.
  uint64_t rank(uint32_t number) const {
    uint64_t stride = 1, rank = 0;
    for (uint32_t i = plan.mesh()->size(); i-- > 0;) {
      rank += coordinate(number, i) * stride;
      stride *= plan.mesh()->Get(i)->size();
    }
    return rank;
  }
  /// The one that differs in its coordinate along one axis of `axes`.
  uint32_t at(uint32_t number, uint32_t axis, uint64_t coordinate) const {
    return static_cast<uint32_t>(firstOf(number, 1u << axis) +
                                 coordinate * strideOf(axis));
  }
  /// The first member of the group along axes, given as bits, by its number.
  uint32_t firstOf(uint32_t number, uint32_t axes) const {
    uint64_t first = number;
    for (uint32_t axis : orEmpty(plan.program_axes()))
      if (axes >> axis & 1)
        first -= coordinate(number, axis) * strideOf(axis);
    return static_cast<uint32_t>(first);
  }
  uint64_t membersOf(uint32_t axes) const {
    uint64_t members = 1;
    for (uint32_t axis : orEmpty(plan.program_axes()))
      members *= axes >> axis & 1 ? plan.mesh()->Get(axis)->size() : 1;
    return members;
  }
  /// 0 along other axes.
  uint64_t coordinate(uint64_t number, uint32_t axis) const {
    return bits >> axis & 1
               ? number / strideOf(axis) % plan.mesh()->Get(axis)->size()
               : 0;
  }

private:
  uint64_t strideOf(uint32_t axis) const {
    uint64_t stride = 1;
    for (uint32_t i = orEmpty(plan.program_axes()).size(); i-- > 0;) {
      if (plan.program_axes()->Get(i) == axis)
        return stride;
      stride *= plan.mesh()->Get(plan.program_axes()->Get(i))->size();
    }
    return stride;
  }

  const Plan &plan;
  uint64_t count = 1;
  uint32_t bits = 0;
};

} // namespace meshwork::plan
