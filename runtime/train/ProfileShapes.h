// What a profile tells of the shapes that an instruction computes on.
#pragma once

#include "runtime/rank/Rank.h"
#include <string>

namespace meshwork::runtime {

/// JSON members, a comma before each: "product" for a Matmul, "attention" for
/// Attention and AttentionGrad, nothing for others. Sizes are this rank's.
///   ,"product":{"batch":1,"m":8,"n":4,"k":2,"lhs":"bf16",...}
std::string shapeMembers(const Rank &rank, const plan::Instruction &source);

} // namespace meshwork::runtime
