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

/// Chooses the sequences per microbatch, a divisor of `most`: the sequences of
/// a step that a data-parallel rank has. Of those that fit
/// cost::memoryLimit(spec), takes the one whose step should take least on the
/// spec's machine; on a tie the smaller. The other "auto" keys are chosen for
/// each. If none fits, takes the smallest that has a spec, usually 1. If one
/// fails to compile, and not by an error of the spec, takes that one: compiling
/// with it tells why. Each is compiled without code.
uint32_t fitMicro(const Model &model, uint32_t most,
                  const SpecWithMicro &specWith);

} // namespace meshwork::driver
