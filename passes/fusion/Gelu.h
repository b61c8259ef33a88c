// Whether a map is GELU in its form with tanh, or that function's gradient.
#pragma once

#include "dialects/transformer/Transformer.h"

namespace meshwork::fusion {

/// gelu(x) of one input.
bool isGelu(transformer::MapOp map);

/// The number of the input x of gradient * gelu'(x), of two inputs; none of
/// another function.
std::optional<unsigned> inputOfGeluGradient(transformer::MapOp map);

} // namespace meshwork::fusion
