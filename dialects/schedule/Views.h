// Views of instructions, as verifiers look at them.
#pragma once

#include "dialects/schedule/Schedule.h"
#include "meshwork/Plan/Plan.h"

namespace meshwork::schedule {

/// Whether it is a view of a buffer, with static sizes: what verifiers of its
/// users rely on, which may run before its own.
bool isView(::mlir::Value value);

/// What a plan calls an element type; nothing for those it has no word for.
std::optional<plan::DType> elementTypeOf(::mlir::Type element);

} // namespace meshwork::schedule
