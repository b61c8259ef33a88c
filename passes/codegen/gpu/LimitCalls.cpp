// Which choices find their expert with room left: counted in parts, added up,
// kept.
#include "passes/codegen/gpu/Calls.h"
#include "passes/codegen/gpu/StridedView.h"
#include "passes/codegen/gpu/library/ChoicesGeometry.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {
struct Limit {
  int64_t groups, tokens, k, experts, threads;

  int64_t parts() const { return choiceParts::countOf(tokens * k); }
};

FailureOr<Limit> limitOf(schedule::LimitChoicesOp op) {
  FailureOr<int64_t> choices = denseCount(op, op.getChoices(), "choices");
  if (failed(choices) || failed(denseCount(op, op.getKept(), "kept")))
    return failure();
  if (*choices > INT32_MAX)
    return op.emitOpError("has 2^31 choices, or more");
  auto experts = static_cast<int64_t>(op.getExperts()),
       tokens = static_cast<int64_t>(op.getGroup());
  int64_t k = cast<MemRefType>(op.getChoices().getType()).getShape().back();
  return Limit{*choices / k / tokens, tokens, k, experts,
               choiceParts::threadsFor(experts)};
}
} // namespace

LogicalResult addCalls(schedule::LimitChoicesOp op, DeviceCalls &result) {
  FailureOr<Limit> of = limitOf(op);
  if (failed(of))
    return failure();
  auto [groups, tokens, k, experts, threads] = *of;
  int64_t parts = of->parts();
  DeviceCall count{"meshwork_count_turns",
                   {},
                   groups * parts,
                   threads,
                   choiceParts::sharedBytes};
  count.pointer(0).workspace().integers(
      {threads, tokens, k, choiceParts::choices, parts, experts});
  DeviceCall add{"meshwork_add_turns", {}, groups, threads, 0};
  add.workspace().integers({threads, parts, experts});
  DeviceCall keep{"meshwork_keep_choices",
                  {},
                  groups * parts,
                  threads,
                  choiceParts::sharedBytes};
  keep.pointer(0).pointer(1).workspace().integers(
      {threads, tokens, k, choiceParts::choices, parts, experts,
       static_cast<int64_t>(op.getMost())});
  result.calls.append({count, add, keep});
  result.workspaceBytes = static_cast<uint64_t>(groups * parts * experts) * 4;
  return success();
}

} // namespace meshwork::codegen
