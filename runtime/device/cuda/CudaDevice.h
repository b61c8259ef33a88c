// The GPUs of this process and the collectives between its ranks.
#pragma once

#include "runtime/device/cuda/CudaExecutor.h"
#include "runtime/device/cuda/WgmmaAttention.h"
#include "runtime/machine/Executor.h"
#include <map>
#include <mutex>

namespace meshwork::runtime::cuda {

class CudaDevice : public runtime::Device {
public:
  /// Opens the driver and the GPUs that ranks of this process use. Errors say
  /// how many there are and how many it takes.
  static absl::StatusOr<std::unique_ptr<runtime::Device>>
  open(const plan::Plan &plan, const DeviceOptions &options);
  ~CudaDevice() override;

  absl::StatusOr<uint64_t> checkMemory(const std::vector<CoreShare> &cores,
                                       uint32_t ranksHere) override;
  absl::StatusOr<std::unique_ptr<Executor>>
  makeExecutor(const ExecutorSetup &setup) override;
  std::string placeOf(uint32_t rank) const override;
  std::string summary() const override;

private:
  absl::Status checkHostMemory(const std::vector<CoreShare> &cores) const;
  CudaDevice(const Driver &driver, const plan::Plan &plan,
             const DeviceOptions &options);
  absl::Status openGpus();
  absl::Status loadWgmma();
  void tellNoWgmma(const Gpu &gpu, const absl::Status &why);
  /// The number of a rank's GPU among those of this process.
  size_t numberOf(uint32_t rank) const { return gpus.size() == 1 ? 0 : rank; }
  Gpu &gpuOf(uint32_t rank) { return *gpus[numberOf(rank)]; }
  absl::StatusOr<DeviceTransport *> transportOf(const ExecutorSetup &setup);
  absl::StatusOr<DeviceTransport *> connect(const ExecutorSetup &setup);

  const Driver &driver;
  const plan::Plan &plan;
  DeviceOptions options;
  std::vector<std::unique_ptr<Gpu>> gpus; // one for all, or one a rank
  // Of each of them, or null; none where they are not to run.
  std::vector<std::unique_ptr<WgmmaKernels>> wgmma;
  LibraryNotes dnnNotes, wgmmaNotes;
  std::string withoutWgmma; // why not, a line for each GPU that might have them
  LibraryNotes epilogues{{"cuBLASLt", "epilogues of products",
                          "a kernel beside", /*onlyWhenLeft=*/true}};
  std::string tuning;  // "tuning: 5 timed, 7 known"
  std::string overlap; // "overlap: 7 products leave 16 multiprocessors ..."
  std::mutex mutex;
  std::unique_ptr<DeviceTransport> shared; // of ranks on one GPU
  // Of ranks with a GPU each.
  std::map<uint32_t, std::unique_ptr<DeviceTransport>> connected;
};

/// Work of several communicators on one GPU may deadlock unless it begins in
/// one order on all ranks. After this it begins in that of the host, which is
/// one: a variable of the environment, which NCCL reads when it starts (from
/// 2.26 on). So call it before ranks have threads. Source: NVIDIA's guide to
/// NCCL, "Using multiple NCCL communicators concurrently".
void keepLaunchOrder();

/// What the driver calls the GPUs that a process sees, on every host another.
using GpuNames = std::vector<std::string>;

/// The GPU of each rank of this process: the first that it sees and that no
/// process before it takes. A launcher may show each process all GPUs of its
/// machine, or its own alone. With `shareGpu` the first, for all ranks.
///   seen   by each process of the run
/// failedPrecondition when there are too few.
absl::StatusOr<std::vector<int>> chooseGpus(const DeviceOptions &options,
                                            absl::Span<const GpuNames> seen);

/// The same, by all processes of the run together.
absl::StatusOr<std::vector<int>> gpusOfRanks(const Driver &driver,
                                             const DeviceOptions &options);

} // namespace meshwork::runtime::cuda
