// Values into the blocks of a parameter that a rank holds. Internal to
// runtime/save.
#pragma once

#include "absl/functional/function_ref.h"
#include "runtime/save/GlobalTensors.h"

namespace meshwork::runtime {

/// Gives `fillOne` each block of `part`, and where the host can write it: the
/// part as the host sees it, in whose shape Block::offset counts.
absl::Status placeBlocks(
    Rank &rank, const plan::Parameter &parameter, const plan::Sharded &part,
    absl::FunctionRef<absl::Status(const Strided &, const plan::Block &)>
        fillOne);

/// What an optimizer keeps, as it begins. Behind the tensor's end it stays
/// zero.
absl::Status placeInitial(Rank &rank, const plan::Parameter &parameter,
                          const plan::State &state);

/// Values, `stride` apart, to where `run` goes in `to`, rounded to its type.
void storeRun(const float *values, int64_t stride, const Strided &to,
              const Run &run);

} // namespace meshwork::runtime
