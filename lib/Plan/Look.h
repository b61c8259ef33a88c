// Where a step stops until all ranks have looked at what it found.
#pragma once

#include "absl/types/span.h"
#include "lib/Plan/Views.h"

namespace meshwork::plan {

/// Whether a later step finds what is in the buffer: weights, optimizer state.
/// All else is made anew in each step, before it is read, or never changes.
bool outlivesStep(const Buffer &buffer);

/// Index in the list of the step's last action. There the loss and the gradient
/// norm are known and no channel is at work. No weight and no optimizer state
/// has changed, so the step could be repeated. It is the last such place from
/// loss_known on. `views` are the program's.
uint32_t lookPoint(const Program &program, absl::Span<const ViewInfo> views);

} // namespace meshwork::plan
