// `batch.micro = "auto"`.
#pragma once

#include "tools/meshwork/driver/search/Search.h"

#include <functional>
#include <string>

namespace meshwork::driver {

/// The user's spec with more `--set`, the files that it names read; nothing
/// where that is refused.
using SpecWith = std::function<std::optional<spec::Spec>(
    const std::vector<std::string> &more)>;

/// The sequences per microbatch with which a step of `model`, as it is before
/// all phases, should take least of those that fit cost::memoryLimit(spec); on
/// a tie the smaller. `more` is set too. They divide `most`, the sequences that
/// a data-parallel rank has of a step. The other "auto" keys are chosen for
/// each. If none fits, the smallest that has a spec, usually 1. Without a trial
/// if that is refused, or if there is a fault of the compiler: compiling with
/// that number tells why. Says nothing.
Tried<uint32_t> bestMicro(mlir::ModuleOp model, uint32_t most,
                          const SpecWith &specWith,
                          const std::vector<std::string> &more = {});

} // namespace meshwork::driver
