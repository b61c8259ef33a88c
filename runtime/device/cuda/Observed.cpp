// Lists that somebody watches: instructions one by one, between events that
// tell when each ran.
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/CudaExecutor.h"
#include "runtime/machine/Clock.h"

namespace meshwork::runtime::cuda {

/// Events around one instruction, in the stream that runs it.
struct CudaExecutor::Mark {
  EventHandle before, after;
  CommTimes spent;
};

absl::Status CudaExecutor::mark(const ListRun &list, uint32_t index,
                                Mark &mark) {
  const Bound &one = boundOf(list)[index];
  Queue &queue = one.channel > 0 ? *channels[one.channel - 1]->queue : *main;
  MESHWORK_ASSIGN_OR_RETURN(mark.before,
                            EventHandle::create(cuda.gpu, /*timed=*/true));
  MESHWORK_ASSIGN_OR_RETURN(mark.after,
                            EventHandle::create(cuda.gpu, /*timed=*/true));
  // What a channel runs begins no sooner than it is started.
  if (one.channel > 0)
    MESHWORK_RETURN_IF_ERROR(follow(*channels[one.channel - 1]));
  MESHWORK_RETURN_IF_ERROR(queue.record(mark.before));
  beginWork(list, index, index + 1);
  MESHWORK_RETURN_IF_ERROR(perform(list, index, mark.spent));
  count(mark.spent);
  MESHWORK_RETURN_IF_ERROR(queue.record(mark.after));
  return progress.end(*main);
}

absl::Status CudaExecutor::runObserved(const ListRun &list) {
  const Driver &driver = cuda.gpu.driver();
  absl::StatusOr<EventHandle> origin =
      EventHandle::create(cuda.gpu, /*timed=*/true);
  MESHWORK_RETURN_IF_ERROR(origin.status());
  MESHWORK_RETURN_IF_ERROR(main->finish());
  MESHWORK_RETURN_IF_ERROR(main->record(*origin));
  MESHWORK_RETURN_IF_ERROR(main->finish());
  int64_t originNs = steadyNs();
  auto timeOf = [&](const EventHandle &event, int64_t &ns) {
    float ms = 0;
    Result result = driver.eventElapsedMs(&ms, origin->get(), event.get());
    ns = originNs + static_cast<int64_t>(static_cast<double>(ms) * 1e6);
    return driver.check(result, "reading the time of an event");
  };
  const std::vector<Bound> &bound = boundOf(list);
  std::vector<std::pair<uint32_t, Mark>> marks;
  auto tell = [&]() -> absl::Status {
    MESHWORK_RETURN_IF_ERROR(finish());
    for (auto &[index, mark] : marks) {
      int64_t begin = 0, end = 0;
      MESHWORK_RETURN_IF_ERROR(timeOf(mark.before, begin));
      MESHWORK_RETURN_IF_ERROR(timeOf(mark.after, end));
      observer->after(list, index, begin, end, mark.spent);
    }
    marks.clear();
    return absl::OkStatus();
  };
  for (uint32_t i = list.begin; i < list.end; ++i) {
    // Of a transfer `awaitTransfers` tells.
    if (bound[i].transfer || skips(list, i)) {
      MESHWORK_RETURN_IF_ERROR(runOne(list, i));
      continue;
    }
    marks.emplace_back(i, Mark());
    MESHWORK_RETURN_IF_ERROR(
        locate(mark(list, i, marks.back().second), list, i));
    if (observer->looksAtData() || cuda.synchronous)
      MESHWORK_RETURN_IF_ERROR(locate(tell(), list, i));
  }
  return tell();
}

} // namespace meshwork::runtime::cuda
