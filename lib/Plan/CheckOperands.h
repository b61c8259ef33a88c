// Whether the operands of one instruction have the types and shapes that
// Plan.fbs asks for. The instruction and its views alone decide, so the check
// of a plan and the dialect's verifiers both ask this.
//
//   absl::Status found = checkOperands(instruction, {views, nameOf});
//   if (!found.ok())
//     error << "(" << ruleOf(found) << ") " << found.message();
#pragma once

#include "absl/functional/function_ref.h"
#include "lib/Plan/Actions.h"
#include "lib/Plan/Views.h"
#include <string>

namespace meshwork::plan {

struct Operands {
  absl::Span<const ViewInfo> views; // as the instruction numbers them
  /// Of a buffer, for messages.
  absl::FunctionRef<std::string(uint32_t buffer)> nameOf;
  int64_t ranks = 0; // of a collective's group; 0: not known
};

/// Views that are not absent exist, and have been decoded. What depends on the
/// mesh, on kernels or on other instructions is checked elsewhere.
absl::Status checkOperands(const Instruction &instruction,
                           const Operands &operands);

/// Whether it may stand in such a list: what sends or receives, alone in one of
/// its direction. NONE: nothing is there.
absl::Status checkPlace(Operation operation, const ListShape &list);

/// Whether it may stand in a repeat: nothing may that the first or last turn,
/// or the microbatch, would do otherwise. On channels it may run, and wait,
/// where all repeats around it are counted.
absl::Status checkInRepeat(const Instruction &instruction, bool areCounted);

/// Whether a state, or a metric, may be called so.
bool isStateName(const flatbuffers::String *name);
/// What an input or a result, of a known kind, says of its own view.
absl::Status checkInput(const Input &input, const ViewInfo &view);
absl::Status checkResult(const Result &result, const ViewInfo &view);

/// The rule of the op that a status breaks, as the schedule dialect numbers
/// them: "C2". Empty where there is none.
std::string ruleOf(const absl::Status &status);

} // namespace meshwork::plan
