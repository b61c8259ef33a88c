// Collectives between ranks that are threads of this process and share one GPU.
//
// As between threads on a CPU (runtime/comm/InProcess.h) there is no staging:
// every rank reads what it needs where its peers have it. Ranks meet on the
// host twice: then each stream waits for what the others have put into theirs
// before, moves, and waits for the others' moves.
#pragma once

#include "runtime/comm/InProcess.h"
#include "runtime/device/cuda/BoxTable.h"
#include "runtime/device/cuda/DeviceTransport.h"
#include <map>
#include <mutex>

namespace meshwork::runtime::cuda {

class PeerTransport : public DeviceTransport {
public:
  /// Ranks meet and fail as those of `host` do; `host` must outlive this, its
  /// own collectives are not used.
  PeerTransport(const Driver &driver, InProcessTransport &host);
  /// The device's context is current.
  ~PeerTransport() override;

  /// Takes memory on the device for tables, not for data.
  absl::StatusOr<std::unique_ptr<DeviceCollective>>
  prepare(uint32_t rank, CollectiveRequest request) override;
  absl::StatusOr<std::unique_ptr<DeviceTransfer>>
  prepareTransfer(uint32_t rank, PairRequest request) override;
  Waiting waiting(uint32_t rank) const override;

  /// One group: its meeting place and what each member brought to it.
  struct Group;

private:
  absl::StatusOr<Group *> groupOf(uint32_t rank,
                                  const CollectiveRequest &request);

  const Driver &driver;
  InProcessTransport &host;
  std::mutex mutex; // guards all below
  std::shared_ptr<BoxKernels> kernels;
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, std::unique_ptr<Group>>
      groups; // by channel and members
};

} // namespace meshwork::runtime::cuda
