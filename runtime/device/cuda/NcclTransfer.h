// One side of a transfer between two ranks with a GPU each; see
// NcclTransport.h.
#pragma once

#include "runtime/device/cuda/NcclMoves.h"
#include "runtime/device/cuda/NcclTransport.h"

namespace meshwork::runtime::cuda {

class NcclTransfer : public DeviceTransfer {
public:
  /// `communicator` is of the two alone and carries transfers of this direction
  /// alone; the other side is `peer` in it.
  /// Memory comes from `registers`, unless it is null.
  NcclTransfer(const Driver &driver, const NcclLibrary *registers,
               NcclCommunicator &communicator, uint32_t peer,
               PairRequest request);
  /// Takes memory for parts with gaps; puts its tables into `stream`.
  absl::Status place(const std::shared_ptr<BoxKernels> &kernels, Stream stream);

  absl::Status start(Stream stream, CommTimes &times) override;
  absl::Status finish(Stream, CommTimes &) override { return absl::OkStatus(); }

private:
  NcclCommunicator &communicator;
  PairRequest request;
  std::string what;
  bool isRegistered;
  NcclMemory staging;
  std::vector<NcclMessage> messages; // one a part
  std::unique_ptr<BoxMoves> pack, unpack;
};

} // namespace meshwork::runtime::cuda
