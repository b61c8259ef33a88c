// What autodiff needs to know of losses.
#pragma once

#include "dialects/transformer/Transformer.h"

namespace meshwork::transformer {

/// The number that `value`, a scalar that a map makes of no more than other
/// such numbers, always is; null for anything else. Looks one map back: of a
/// long chain, each is to be made a map of nothing by who builds it.
::mlir::FloatAttr knownScalar(::mlir::Value value);

/// Puts `head_loss_grad` in the place of `op`, which nothing uses then.
HeadLossGradOp withGradients(HeadLossOp op);

} // namespace meshwork::transformer
