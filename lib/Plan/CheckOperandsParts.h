// What the files of the check of operands share; see CheckOperands.h.
#pragma once

#include "lib/Plan/Channels.h"
#include "lib/Plan/CheckOperands.h"
#include "lib/Plan/Checked.h"
#include "meshwork/Plan/Frame.h"
#include "meshwork/Plan/Instructions.h"

namespace meshwork::plan {

/// `status`, and the rule that it breaks.
absl::Status ruled(const char *rule, absl::Status status);

template <typename... Parts>
absl::Status misfit(const char *rule, const Parts &...parts) {
  return ruled(rule, bad(parts...));
}

/// `found` must have this type and shape.
absl::Status expectView(const ViewInfo &found, const char *role, DType dtype,
                        absl::Span<const int64_t> shape);

/// `found` must have this shape, of whatever type.
absl::Status expectShape(const ViewInfo &found, const char *role,
                         absl::Span<const int64_t> shape);
absl::Status expectDims(const ViewInfo &found, const char *role, size_t dims);
/// `found` must be one element of this type.
absl::Status expectNumber(const ViewInfo &found, const char *role, DType dtype);

/// One i32 that says where a shard begins; may be absent.
absl::Status checkIndex(const Operands &c, const char *rule, uint32_t view,
                        const char *role);

/// An operand by its name, for messages.
struct Named {
  const char *role;
  uint32_t view;
};
/// None of `written` shares bytes with another of them, or with one that is
/// read.
absl::Status checkApart(const Operands &c, const char *rule,
                        std::initializer_list<Named> read,
                        std::initializer_list<Named> written);
/// Rows of dense elements at one stride, split before dim `dims`.
absl::Status expectRows(const ViewInfo &found, const char *role, size_t dims);
absl::Status expectDense(const ViewInfo &found, const char *role);

/// i32 without gaps.
absl::Status expectNumbers(const ViewInfo &found, const char *role);
/// i32 [tokens..., k] without gaps, and what is there for each choice, alike.
absl::Status expectChoices(const ViewInfo &choices, const ViewInfo &places,
                           const char *role = "places");

inline bool isFloat(const ViewInfo &view) { return isWideFloat(view.dtype); }

// What is asked of each kind of instruction, in whichever file has it.
#define MESHWORK_CHECK_OP(Kind)                                                \
  absl::Status checkOp(const Operands &c, const Kind &op);
MESHWORK_PLAN_INSTRUCTIONS(MESHWORK_CHECK_OP)
#undef MESHWORK_CHECK_OP
/// Whether it is a channel's number, and of what one can run.
absl::Status checkChannel(const Instruction &at);

} // namespace meshwork::plan
