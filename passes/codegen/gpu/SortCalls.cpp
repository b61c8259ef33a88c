// Choices in the order of their experts: counted in parts, added up, placed.
#include "passes/codegen/gpu/Calls.h"
#include "passes/codegen/gpu/StridedView.h"
#include "passes/codegen/gpu/library/ChoicesGeometry.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {
struct Sorting {
  int64_t choices, k, experts, rows, threads;
  bool hasFirst;

  int64_t parts() const { return choiceParts::countOf(choices); }
  /// A call of one block for each part, with choices and the first expert. A
  /// block keeps some choices in shared memory.
  DeviceCall ofParts(const char *function) const {
    DeviceCall call{function, {}, parts(), threads, choiceParts::sharedBytes};
    call.pointer(0).pointerIf(hasFirst, 1);
    return call;
  }
};

FailureOr<Sorting> sortingOf(schedule::SortRowsOp op) {
  FailureOr<int64_t> choices = denseCount(op, op.getChoices(), "choices"),
                     rows = denseCount(op, op.getOrder(), "order"),
                     begins = denseCount(op, op.getBegins(), "begins");
  for (auto [value, role] :
       {std::pair(op.getTokens(), "tokens"), {op.getPlaces(), "places"}})
    if (failed(denseCount(op, value, role)))
      return failure();
  if (failed(choices) || failed(rows) || failed(begins))
    return failure();
  if (std::max(*choices, *rows) > INT32_MAX)
    return op.emitOpError("has 2^31 choices or rows, or more");
  int64_t experts = *begins - 1,
          k = cast<MemRefType>(op.getChoices().getType()).getShape().back();
  int64_t threads = choiceParts::threadsFor(experts);
  return Sorting{*choices, k,       experts,
                 *rows,    threads, bool(op.getFirstExpert())};
}
} // namespace

LogicalResult addCalls(schedule::SortRowsOp op, DeviceCalls &result) {
  FailureOr<Sorting> of = sortingOf(op);
  if (failed(of))
    return failure();
  int64_t order = of->hasFirst ? 2 : 1, tokens = order + 1, places = order + 2,
          begins = order + 3;
  DeviceCall count = of->ofParts("meshwork_count_choices");
  count.workspace().integers({of->hasFirst, of->threads, of->choices,
                              choiceParts::choices, of->experts});
  DeviceCall begin{"meshwork_begin_rows",
                   {},
                   1,
                   of->threads,
                   choiceParts::mostThreads / choiceParts::lanes * 4};
  begin.workspace().pointer(begins).integers(
      {of->threads, of->parts(), of->experts, of->rows});
  DeviceCall place = of->ofParts("meshwork_place_rows");
  place.pointer(order).pointer(tokens).pointer(places).pointer(begins);
  place.workspace().integers({of->hasFirst, of->threads, of->choices,
                              choiceParts::choices, of->experts, of->k,
                              of->rows});
  result.calls.append({count, begin, place});
  result.workspaceBytes = static_cast<uint64_t>(of->parts() * of->experts) * 4;
  return success();
}

} // namespace meshwork::codegen
