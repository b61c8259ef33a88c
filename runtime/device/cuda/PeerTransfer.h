// One side of a transfer between ranks that are threads of this process and
// share one GPU. Once both have started it, whoever first waits for it copies.
// It copies in its own stream, once the other's stream has come to the
// transfer.
#pragma once

#include "runtime/comm/PairLane.h"
#include "runtime/device/cuda/BoxTable.h"
#include "runtime/device/cuda/DeviceTransport.h"
#include "runtime/device/cuda/Driver.h"
#include <map>

namespace meshwork::runtime::cuda {

class PeerTransfer : public DeviceTransfer {
public:
  static absl::StatusOr<std::unique_ptr<PeerTransfer>>
  create(std::shared_ptr<BoxKernels> kernels, PairLane &lane, uint32_t rank,
         PairRequest request);
  ~PeerTransfer() override;

  absl::Status start(Stream stream, CommTimes &times) override;
  absl::Status finish(Stream stream, CommTimes &times) override;

private:
  /// `ready`: the stream had come to the transfer; `done`: it was copied.
  struct Side : PairLane::Side {
    Event ready = nullptr, done = nullptr;
  };
  PeerTransfer(std::shared_ptr<BoxKernels> kernels, PairLane &lane)
      : kernels(std::move(kernels)), lane(lane) {}
  absl::Status copy(const Side &from, const Side &to, Stream stream);

  std::shared_ptr<BoxKernels> kernels;
  PairLane &lane;
  Side side;
  uint64_t number = 0;
  /// Tables, by the other side: it has one for each of its copies.
  std::map<const Side *, std::unique_ptr<BoxMoves>> tables;
};

} // namespace meshwork::runtime::cuda
