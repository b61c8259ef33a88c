// One collective of one rank; see NcclTransport.h.
#pragma once

#include "runtime/device/cuda/NcclMoves.h"
#include "runtime/device/cuda/NcclTransport.h"

namespace meshwork::runtime::cuda {

class NcclCollective : public DeviceCollective {
public:
  /// `communicator` is null in a group of one. Packed boxes lie from `staging`
  /// on.
  NcclCollective(NcclCommunicator *communicator, uint32_t index, uint32_t ranks,
                 CollectiveRequest request, DevicePtr staging);
  /// Puts its tables into `stream`, on their way to the device.
  absl::Status place(const std::shared_ptr<BoxKernels> &kernels, Stream stream);

  /// Communicators have carried something before, so that NCCL connects
  /// nothing while a graph is captured.
  bool canBeCaptured() const override { return true; }
  absl::Status enqueue(Stream stream, CommTimes &times) override;

private:
  absl::Status enqueueNative(Stream stream, CommTimes &times);

  NcclCommunicator *communicator;
  CollectiveRequest request;
  std::string what;
  NcclCall call;
  NcclMessages messages;
  std::unique_ptr<BoxMoves> pack, unpack, unpackSpread;
};

} // namespace meshwork::runtime::cuda
