// Lists as CUDA graphs. A whole list is one where everything in it can be
// captured; else what lies between collectives is, and those are put into
// streams anew each time.
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/CudaExecutor.h"
#include <algorithm>

namespace meshwork::runtime::cuda {

absl::StatusOr<const std::vector<CudaExecutor::Piece> *>
CudaExecutor::piecesOf(const ListRun &list) {
  const std::vector<Bound> &bound = boundOf(list);
  bool isOnce = list.list == setup.program.table.onceList();
  bool isLast = !isOnce && setup.program.table.isLast(list.action);
  bool sets = std::any_of(bound.begin(), bound.end(), [&](const Bound &one) {
    return one.setsIn == list.action;
  });
  auto [at, isNew] = pieces.try_emplace(
      {list.list, setup.program.copies.variantOf(list.action), list.begin,
       list.end, sets ? list.action : plan::ActionTable::none, isLast,
       list.evaluates});
  if (!isNew)
    return &at->second;
  bool all = std::all_of(bound.begin(), bound.end(), [](const Bound &one) {
    return !one.collective || one.collective->canBeCaptured();
  });
  // A list that runs once gains nothing; nor may a wait lie in a graph while
  // what it waits for does not, or the other way round.
  bool never = isOnce || cuda.synchronous;
  auto isCaptured = [&](const Bound &one) {
    return !never && !one.transfer &&
           (one.compute && one.channel == 0 ? one.compute->canBeCaptured()
                                            : all);
  };
  std::vector<Piece> &made = at->second;
  for (uint32_t i = list.begin; i < list.end; ++i) {
    bool starts =
        made.empty() || isCaptured(bound[i]) != isCaptured(bound[i - 1]);
    if (starts)
      made.push_back({nullptr, i, i});
    made.back().end = i + 1;
  }
  for (Piece &piece : made)
    if (isCaptured(bound[piece.begin]))
      MESHWORK_RETURN_IF_ERROR(capture(list, piece));
  return &made;
}

absl::Status CudaExecutor::capture(const ListRun &list, Piece &piece) {
  const Driver &driver = cuda.gpu.driver();
  MESHWORK_RETURN_IF_ERROR(driver.check(
      driver.streamBeginCapture(main->stream(), captureThreadLocal),
      "beginning to capture a graph"));
  absl::Status status;
  for (uint32_t i = piece.begin; i < piece.end && status.ok(); ++i)
    status = locate(perform(list, i, times), list, i);
  Graph graph = nullptr;
  absl::Status ended = driver.check(
      driver.streamEndCapture(main->stream(), &graph), "capturing a graph");
  MESHWORK_RETURN_IF_ERROR(status);
  MESHWORK_RETURN_IF_ERROR(locate(ended, list, piece.begin));
  unsigned long long flags =
      driver.version >= firstWithNodePriority ? graphUsesNodePriority : 0;
  ended = driver.check(driver.graphInstantiate(&piece.graph, graph, flags),
                       "making the graph that begins here");
  (void)driver.graphDestroy(graph);
  return locate(ended, list, piece.begin);
}

} // namespace meshwork::runtime::cuda
