// `batch.micro = "auto"`.
#pragma once

#include "lib/Spec/Spec.h"
#include "tools/meshwork/driver/Model.h"

#include <functional>
#include <optional>

namespace meshwork::driver {

/// The spec with that many sequences a microbatch, or nothing where that is
/// none.
using SpecWithMicro = std::function<std::optional<spec::Spec>(uint32_t micro)>;

/// Of the divisors of `most`, the sequences of a step that a data-parallel rank
/// has, the one whose step should take least on the spec's machine and that
/// fits cost::memoryLimit(spec), with what else is "auto" chosen for it; the
/// smaller of two that take the same. 1 when none fits, and the first that has
/// a fault: compiling with it tells why. Each is compiled without code.
uint32_t fitMicro(const Model &model, uint32_t most,
                  const SpecWithMicro &specWith);

} // namespace meshwork::driver
