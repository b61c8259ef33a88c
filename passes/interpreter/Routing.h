// What the instructions of mixtures of experts compute (Plan.fbs), on tensors:
// for instructions, and for ops that mean the same. Each fills in `out`, or
// another tensor of zeros (or of what it says), and returns it. Numbers that
// mean no expert or no row are passed over, whatever they are.
#pragma once

#include "passes/interpreter/Tensor.h"

namespace meshwork::interpreter {

/// scores [rows..., experts], choices and out [rows..., k].
Tensor picked(const Tensor &scores, const Tensor &choices, Tensor out);
/// choices and dout [rows..., k], out [rows..., experts].
Tensor pickedGradient(const Tensor &choices, const Tensor &dout, Tensor out);

/// Choices [tokens..., k] in groups of so many tokens, of which an expert keeps
/// `most`; the others are -1.
Tensor limitedChoices(const Tensor &choices, int64_t experts, int64_t most,
                      int64_t group);

/// Choices in the order of their experts.
struct SortedRows {
  Tensor order, tokens, places, begins;
};
/// `sorted` has the shapes of the results.
SortedRows sortedRows(const Tensor &choices, int64_t firstExpert,
                      SortedRows sorted);

/// Which tokens go to which ranks; `last` is one number.
struct Slots {
  Tensor slots, ranks, places, last;
};
/// `made` has the shapes of the results; a rank has `experts` experts.
Slots assignedSlots(const Tensor &choices, int64_t experts, Slots made);

/// table [n, e...], rows [i...], out [i..., e...], filled with what stands
/// where there is no row.
Tensor takenRows(const Tensor &table, const Tensor &rows, Tensor out);
/// src [R, e...], places and choices [t..., k], out [t..., e...].
Tensor combinedRows(const Tensor &src, const Tensor &places,
                    const Tensor &choices, Tensor out);

/// lhs [R, K], rhs [E, K, N], begins [E + 1], out [R, N].
Tensor groupedProduct(const Tensor &lhs, const Tensor &rhs,
                      const Tensor &begins, Tensor out);
/// lhs [R, K], rhs [R, N], begins [E + 1], out [E, K, N].
Tensor groupedGradient(const Tensor &lhs, const Tensor &rhs,
                       const Tensor &begins, Tensor out);

} // namespace meshwork::interpreter
