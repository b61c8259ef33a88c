#include "runtime/device/cuda/NcclCollective.h"
#include "lib/Plan/StatusMacros.h"

namespace meshwork::runtime::cuda {
namespace {
void *pointerTo(DevicePtr address) { return reinterpret_cast<void *>(address); }

int typeOf(plan::DType type) {
  switch (type) {
  case plan::DType::bf16:
    return nccl::dataType::bf16;
  case plan::DType::i32:
    return nccl::dataType::i32;
  case plan::DType::e4m3:
  case plan::DType::e5m2:
  case plan::DType::i8: // They move only.
    return nccl::dataType::u8;
  case plan::DType::f32:
    break;
  }
  return nccl::dataType::f32;
}
} // namespace

NcclCollective::NcclCollective(NcclCommunicator *communicator, uint32_t index,
                               uint32_t ranks, CollectiveRequest mine,
                               DevicePtr staging)
    : communicator(communicator), request(std::move(mine)),
      what(request.describe()),
      call(communicator ? callOf(request, ranks) : NcclCall::messages) {
  if (call == NcclCall::messages)
    messages = messagesOf(request, index, ranks, staging);
}

absl::Status NcclCollective::place(const std::shared_ptr<BoxKernels> &kernels,
                                   Stream stream) {
  auto one = [&](const BoxTable &table,
                 std::unique_ptr<BoxMoves> &moves) -> absl::Status {
    MESHWORK_ASSIGN_OR_RETURN(moves, BoxMoves::create(kernels, table.bytes()));
    return moves->set(table, stream);
  };
  MESHWORK_RETURN_IF_ERROR(one(messages.pack, pack));
  MESHWORK_RETURN_IF_ERROR(one(messages.unpack, unpack));
  return one(messages.unpackSpread, unpackSpread);
}

absl::Status NcclCollective::enqueue(Stream stream, CommTimes &times) {
  if (call != NcclCall::messages)
    return enqueueNative(stream, times);
  MESHWORK_RETURN_IF_ERROR(pack->enqueue(stream));
  MESHWORK_RETURN_IF_ERROR(
      swapMessages(communicator, messages.swap, stream, what, times));
  MESHWORK_RETURN_IF_ERROR(unpack->enqueue(stream));
  MESHWORK_RETURN_IF_ERROR(
      swapMessages(communicator, messages.spread, stream, what, times));
  return unpackSpread->enqueue(stream);
}

absl::Status NcclCollective::enqueueNative(Stream stream, CommTimes &times) {
  int reduction = request.reduction == plan::Reduction::sum
                      ? nccl::reduction::sum
                      : nccl::reduction::max;
  const NcclLibrary &nccl = communicator->library();
  auto one = [&](const TransferRequest &part, nccl::Comm comm) {
    auto src = static_cast<size_t>(part.src.elements());
    auto dst = static_cast<size_t>(part.dst.elements());
    int type = typeOf(part.src.dtype);
    if (call == NcclCall::allReduce)
      return nccl.allReduce(part.src.data, part.dst.data, src, type, reduction,
                            comm, stream);
    if (call == NcclCall::reduceScatter)
      return nccl.reduceScatter(part.src.data, part.dst.data, dst, type,
                                reduction, comm, stream);
    return nccl.allGather(part.src.data, part.dst.data, src, type, comm,
                          stream);
  };
  return communicator->group(
      [&](nccl::Comm comm) {
        nccl::Result result = nccl::result::success;
        for (const TransferRequest &part : request.parts)
          if (goesOn(result))
            result = one(part, comm);
        return result;
      },
      what, times);
}

absl::Status swapMessages(NcclCommunicator *communicator,
                          const std::vector<NcclMessage> &all, Stream stream,
                          const std::string &what, CommTimes &times) {
  if (all.empty())
    return absl::OkStatus();
  const NcclLibrary &nccl = communicator->library();
  auto one = [&](const NcclMessage &message, nccl::Comm comm) {
    int type = typeOf(message.dtype), peer = static_cast<int>(message.peer);
    void *place = pointerTo(message.address);
    return message.isSent
               ? nccl.send(place, message.count, type, peer, comm, stream)
               : nccl.receive(place, message.count, type, peer, comm, stream);
  };
  return communicator->group(
      [&](nccl::Comm comm) {
        nccl::Result result = nccl::result::success;
        for (const NcclMessage &message : all)
          if (goesOn(result))
            result = one(message, comm);
        return result;
      },
      what, times);
}

} // namespace meshwork::runtime::cuda
