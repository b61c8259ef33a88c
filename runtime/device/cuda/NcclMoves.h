// How NCCL runs a collective. Where the tensors lie as NCCL wants them, it is
// one of NCCL's own collectives. Else it is messages from rank to rank, with
// boxes that are packed and unpacked on the device.
//
// NCCL sums in an order of its own, and rounds bf16 after every step; a plan's
// sums are rounded once. So bf16 is summed here, in group order (two ranks are
// the same either way), and only the order of f32 sums is NCCL's. A plan may
// leave both to NCCL (`any_order`).
#pragma once

#include "runtime/comm/Moves.h"
#include "runtime/device/cuda/BoxTable.h"

namespace meshwork::runtime::cuda {

enum class NcclCall : uint8_t { allReduce, allGather, reduceScatter, messages };

/// The same on all ranks of a group.
NcclCall callOf(const CollectiveRequest &request, uint32_t ranks);

struct NcclMessage {
  bool isSent;   // else received
  uint32_t peer; // index in the group
  DevicePtr address;
  uint64_t count; // elements
  plan::DType dtype;
};

/// In this order: pack; swap messages; unpack, reduce, and what needs no peer.
/// An all_reduce then has each rank's share of the result to spread.
struct NcclMessages {
  BoxTable pack, unpack, unpackSpread;
  std::vector<NcclMessage> swap, spread;
  uint64_t stagingBytes = 0;
};

class NcclCommunicator;
/// Puts all of them into `stream`, at once. The communicator may be null where
/// there are none.
absl::Status swapMessages(NcclCommunicator *communicator,
                          const std::vector<NcclMessage> &all, Stream stream,
                          const std::string &what, CommTimes &times);

/// For group index `index`; packed boxes lie from `staging` on, a multiple of
/// 256. All but addresses is the same for any `staging`. Any two ranks have the
/// same messages between them, in the same order.
NcclMessages messagesOf(const CollectiveRequest &request, uint32_t index,
                        uint32_t ranks, DevicePtr staging);

} // namespace meshwork::runtime::cuda
