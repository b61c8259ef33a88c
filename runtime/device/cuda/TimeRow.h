// How long work takes by the GPU's own clock.
#pragma once

#include "absl/functional/function_ref.h"
#include "runtime/device/cuda/Queue.h"

namespace meshwork::runtime::cuda {

/// Seconds of one call of `put`, which puts work into the queue's stream: the
/// mean of `length` calls in a row. Waits for their end. Never 0.
absl::StatusOr<double> secondsInRow(const Gpu &gpu, Queue &queue, int length,
                                    absl::FunctionRef<absl::Status()> put);

/// The mean over a row of about 20 ms, after a call that warms up.
absl::StatusOr<double> meanSeconds(const Gpu &gpu, Queue &queue,
                                   absl::FunctionRef<absl::Status()> put);

/// The fastest of some rows, after a call that warms up: of what is short other
/// work on the machine only ever makes one slower.
absl::StatusOr<double> fastestRow(const Gpu &gpu, Queue &queue, int length,
                                  absl::FunctionRef<absl::Status()> put);

/// How many calls a row of meanSeconds has, when one takes so long.
int rowLength(double seconds);

} // namespace meshwork::runtime::cuda
