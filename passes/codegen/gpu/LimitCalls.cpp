// Which choices find their expert with room left: counted in parts, added up,
// kept.
#include "passes/codegen/gpu/Calls.h"
#include "passes/codegen/gpu/StridedView.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {
constexpr int64_t choicesOfPart = 1024, lanes = 32, mostThreads = 1024;

struct Limit {
  int64_t groups, tokens, k, experts, threads;

  int64_t parts() const { return llvm::divideCeil(tokens * k, choicesOfPart); }
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
               std::min<int64_t>(llvm::alignTo(experts, lanes), mostThreads)};
}
} // namespace

LogicalResult addCalls(schedule::LimitChoicesOp op, DeviceCalls &result) {
  FailureOr<Limit> of = limitOf(op);
  if (failed(of))
    return failure();
  auto [groups, tokens, k, experts, threads] = *of;
  int64_t parts = of->parts();
  // A block keeps some choices in shared memory.
  DeviceCall count{
      "meshwork_count_turns", {}, groups * parts, threads, choicesOfPart * 4};
  count.pointer(0).workspace().integers(
      {threads, tokens, k, choicesOfPart, parts, experts});
  DeviceCall add{"meshwork_add_turns", {}, groups, threads, 0};
  add.workspace().integers({threads, parts, experts});
  DeviceCall keep{
      "meshwork_keep_choices", {}, groups * parts, threads, choicesOfPart * 4};
  keep.pointer(0).pointer(1).workspace().integers(
      {threads, tokens, k, choicesOfPart, parts, experts,
       static_cast<int64_t>(op.getMost())});
  result.calls.append({count, add, keep});
  result.workspaceBytes = static_cast<uint64_t>(groups * parts * experts) * 4;
  return success();
}

} // namespace meshwork::codegen
