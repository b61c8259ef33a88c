// Whether values that share bytes keep out of each other's way.
#pragma once

#include "passes/schedule/Placement.h"

namespace meshwork::schedule {

/// Fails where an op of `body` writes bytes of a value that another op reads
/// later, with an error at the writer. A value may be made in the place of
/// another one, such as the state that it is assigned to, once nobody needs
/// that one any more. Values whose place nobody asked for have no bytes.
::mlir::LogicalResult checkOverwrites(::mlir::Block &body,
                                      Placement &placement);

} // namespace meshwork::schedule
