// Which instructions of a list run beside collectives.
#pragma once

#include "runtime/machine/Executor.h"

namespace meshwork::runtime::cuda {

/// For each instruction of `list`: on how many channels a collective that
/// started before may still run when it begins.
std::vector<uint32_t> channelsBeside(const plan::Instructions &list);

} // namespace meshwork::runtime::cuda
