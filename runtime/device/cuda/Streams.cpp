// CudaExecutor: which stream does what. One computes. Each channel has one of
// its own, and so has each list that sends or receives. What these are given
// begins behind what the computing stream had before. That one waits for it
// when an instruction or an action would disturb it.
#include "runtime/device/cuda/CudaExecutor.h"

namespace meshwork::runtime::cuda {

absl::Status CudaExecutor::open(ChannelQueue &of) {
  MESHWORK_ASSIGN_OR_RETURN(of.queue,
                            Queue::create(cuda.gpu, owner(), /*urgent=*/true));
  MESHWORK_ASSIGN_OR_RETURN(of.begin, EventHandle::create(cuda.gpu));
  return absl::OkStatus();
}

absl::Status CudaExecutor::bindCollective(Bound &bound,
                                          CollectiveRequest request) {
  MESHWORK_ASSIGN_OR_RETURN(
      bound.collective,
      cuda.transport.prepare(setup.program.rank, std::move(request)));
  return absl::OkStatus();
}

absl::Status CudaExecutor::bindChannel(Bound &bound) {
  MESHWORK_ASSIGN_OR_RETURN(bound.ended, EventHandle::create(cuda.gpu));
  if (channels.size() < bound.channel)
    channels.resize(bound.channel);
  std::unique_ptr<ChannelQueue> &found = channels[bound.channel - 1];
  if (found)
    return absl::OkStatus();
  auto made = std::make_unique<ChannelQueue>();
  MESHWORK_RETURN_IF_ERROR(open(*made));
  found = std::move(made);
  return absl::OkStatus();
}

absl::Status CudaExecutor::bindTransfer(Bound &bound, uint32_t list,
                                        PairRequest request) {
  MESHWORK_ASSIGN_OR_RETURN(
      bound.transfer,
      cuda.transport.prepareTransfer(setup.program.rank, std::move(request)));
  MESHWORK_ASSIGN_OR_RETURN(bound.ended, EventHandle::create(cuda.gpu));
  ChannelQueue &of = lanes[list];
  return of.queue ? absl::OkStatus() : open(of);
}

void CudaExecutor::restartChannels() {
  for (auto &channel : channels)
    if (channel) {
      channel->started.clear();
      channel->waited = 0;
    }
}

/// What `of` is given next begins behind what the main stream has.
absl::Status CudaExecutor::follow(ChannelQueue &of) {
  MESHWORK_RETURN_IF_ERROR(main->record(of.begin));
  return of.queue->waitFor(of.begin);
}

absl::Status CudaExecutor::start(const Bound &one, bool isSkipped,
                                 uint32_t /*at*/, CommTimes &spent) {
  ChannelQueue &of = *channels[one.channel - 1];
  of.started.push_back(isSkipped ? nullptr : &one);
  if (isSkipped)
    return absl::OkStatus();
  MESHWORK_RETURN_IF_ERROR(follow(of));
  MESHWORK_RETURN_IF_ERROR(
      one.collective ? one.collective->enqueue(of.queue->stream(), spent)
                     : one.compute->enqueue(of.queue->stream(), false));
  return of.queue->record(one.ended);
}

/// A channel runs in order, so the last of those waited for is enough.
absl::Status CudaExecutor::join(const plan::Wait &wait,
                                const ListRun & /*list*/) {
  ChannelQueue &of = *channels[wait.channel() - 1];
  size_t before =
      std::exchange(of.waited, std::max<size_t>(of.waited, wait.count()));
  for (size_t i = wait.count(); i-- > before;)
    if (of.started[i])
      return main->waitFor(of.started[i]->ended);
  return absl::OkStatus();
}

absl::Status CudaExecutor::startTransfer(const Bound &one,
                                         const ListRun &list) {
  ChannelQueue &of = lanes.at(list.list);
  MESHWORK_RETURN_IF_ERROR(follow(of));
  return one.transfer->start(of.queue->stream(), times);
}

/// Who watches is told of it once it has ended.
absl::Status CudaExecutor::finishTransfer(const Bound &one, const ListRun &list,
                                          CommTimes &spent) {
  Queue &queue = *lanes.at(list.list).queue;
  MESHWORK_RETURN_IF_ERROR(
      locate(one.transfer->finish(queue.stream(), spent), list, 0));
  times.waitNs += spent.waitNs; // Moving is the stream's.
  MESHWORK_RETURN_IF_ERROR(queue.record(one.ended));
  MESHWORK_RETURN_IF_ERROR(main->waitFor(one.ended));
  awaitsPeer = true;
  return observer ? locate(queue.finish(), list, 0) : absl::OkStatus();
}

} // namespace meshwork::runtime::cuda
