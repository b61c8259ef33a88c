// What the files of the check of operands share; see CheckOperands.h.
#pragma once

#include "lib/Plan/CheckOperands.h"
#include "lib/Plan/Checked.h"
#include "meshwork/Plan/Frame.h"

namespace meshwork::plan {

/// Of one rank; see plan::Instruction.
inline constexpr uint32_t maxChannels = 8;

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

inline bool isFloat(const ViewInfo &view) { return isWideFloat(view.dtype); }

absl::Status checkOp(const Operands &c, const Matmul &op);
absl::Status checkOp(const Operands &c, const Attention &op);
absl::Status checkOp(const Operands &c, const AttentionGrad &op);
absl::Status checkOp(const Operands &c, const Collective &op);
absl::Status checkOp(const Operands &c, const Wait &op);
absl::Status checkOp(const Operands &c, const Send &op);
absl::Status checkOp(const Operands &c, const Receive &op);
absl::Status checkOp(const Operands &c, const Copy &op);
/// Whether it is a channel's number, and of what one can run.
absl::Status checkChannel(const Instruction &at);

} // namespace meshwork::plan
