// What a rank moves between GPUs, by NCCL, for callers whose data lies on the
// host.
#pragma once

#include "runtime/device/cuda/Memory.h"
#include "runtime/device/cuda/NcclTransport.h"
#include <memory>

namespace meshwork::runtime {

/// A GPU's rates.
struct GpuRates {
  double f32 = 0, bf16 = 0; // Tflop/s of products
  double copyBytes = 0;     // bytes a second that a copy reads and writes
};

/// Of one rank, by its thread. Sources are copied to the GPU when a request is
/// prepared, and results to the host after each run, both outside of what
/// `times` tells; of transfers nothing is copied.
class GpuTransport : public Transport {
public:
  /// By all ranks. `requests` and `pairs` are all that will be prepared.
  static absl::StatusOr<std::unique_ptr<GpuTransport>>
  create(Transport &host, const Mesh &mesh, uint32_t rank, int ordinal,
         std::vector<CollectiveRequest> requests,
         std::vector<PairRequest> pairs, double timeoutSeconds);

  absl::StatusOr<GpuRates> measure();

  uint32_t numRanks() const override { return host.numRanks(); }
  absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(uint32_t rank, CollectiveRequest request) override;
  absl::StatusOr<std::unique_ptr<PreparedTransfer>>
  prepareTransfer(uint32_t rank, PairRequest request) override;
  absl::StatusOr<uint32_t> agree(uint32_t rank, uint32_t flags,
                                 const char *what) override {
    return host.agree(rank, flags, what);
  }
  absl::StatusOr<std::vector<std::string>>
  exchange(uint32_t rank, std::string mine, const char *what) override {
    return host.exchange(rank, std::move(mine), what);
  }
  absl::Status gather(uint32_t rank, std::string mine,
                      Deliver deliver) override {
    return host.gather(rank, std::move(mine), deliver);
  }
  void abort(uint32_t rank, const absl::Status &why) override {
    host.abort(rank, why);
  }
  void setWaiting(uint32_t rank, const Waiting &waiting) override {
    host.setWaiting(rank, waiting);
  }
  void setFileWork(uint32_t rank, std::string what) override {
    host.setFileWork(rank, std::move(what));
  }
  absl::Status blame(uint32_t rank, const Waiting &mine,
                     double seconds) override {
    return host.blame(rank, mine, seconds);
  }
  absl::Status failure() const override { return host.failure(); }

private:
  class Collective;
  class Transfer;
  explicit GpuTransport(Transport &host) : host(host) {}
  /// Memory of the GPU like that of `view`, to which it then points.
  absl::StatusOr<cuda::DeviceMemory> place(Strided &view);

  Transport &host;
  std::unique_ptr<cuda::Gpu> gpu;
  std::unique_ptr<cuda::NcclTransport> nccl;
  std::unique_ptr<cuda::Queue> queue;
  std::unique_ptr<cuda::Staging> staging;
};

} // namespace meshwork::runtime
