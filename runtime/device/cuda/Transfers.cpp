// Transfers between stages: each list that sends or receives has a stream of
// its own, behind what came before in the one that computes, which waits for it
// when an action would disturb it.
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/CudaExecutor.h"
#include "runtime/machine/Clock.h"

namespace meshwork::runtime::cuda {

absl::Status CudaExecutor::bindTransfer(uint32_t list, Bound &bound,
                                        const RankProgram &program) {
  MESHWORK_ASSIGN_OR_RETURN(
      bound.transfer,
      cuda.transport.prepareTransfer(
          program.rank,
          program.pairRequest(list, setup.mesh,
                              reinterpret_cast<std::byte *>(arena.address()))));
  MESHWORK_ASSIGN_OR_RETURN(bound.ended, EventHandle::create(cuda.gpu));
  ChannelQueue &of = lanes[list];
  if (of.queue)
    return absl::OkStatus();
  MESHWORK_ASSIGN_OR_RETURN(of.queue,
                            Queue::create(cuda.gpu, owner(), /*urgent=*/true));
  MESHWORK_ASSIGN_OR_RETURN(of.begin, EventHandle::create(cuda.gpu));
  return absl::OkStatus();
}

absl::Status CudaExecutor::startTransfer(const Bound &one,
                                         const ListRun &list) {
  ChannelQueue &of = lanes.at(list.list);
  underWay[list.action] = {&one, list, steadyNs()};
  MESHWORK_RETURN_IF_ERROR(main->record(of.begin));
  MESHWORK_RETURN_IF_ERROR(of.queue->waitFor(of.begin));
  return one.transfer->start(of.queue->stream(), times);
}

/// Those that the action would disturb. Who watches is told of each once it has
/// ended.
absl::Status CudaExecutor::awaitTransfers(const ListRun &list,
                                          InstructionObserver *observer) {
  for (uint32_t action : setup.program.transfers.awaitedBy(list.action)) {
    auto found = underWay.find(action);
    if (found == underWay.end())
      continue; // The update runs in parts.
    UnderWay one = found->second;
    underWay.erase(found);
    Queue &queue = *lanes.at(one.list.list).queue;
    CommTimes spent;
    MESHWORK_RETURN_IF_ERROR(locate(
        one.bound->transfer->finish(queue.stream(), spent), one.list, 0));
    times.waitNs += spent.waitNs;
    MESHWORK_RETURN_IF_ERROR(queue.record(one.bound->ended));
    MESHWORK_RETURN_IF_ERROR(main->waitFor(one.bound->ended));
    awaitsPeer = true;
    if (!observer)
      continue;
    MESHWORK_RETURN_IF_ERROR(locate(queue.finish(), one.list, 0));
    observer->after(one.list, 0, one.beginNs, steadyNs(), spent);
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime::cuda
