// A rank on the CPU: its arena, its team of threads, its channels.
#pragma once

#include "runtime/device/cpu/Channel.h"
#include "runtime/device/cpu/Prepare.h"
#include "runtime/machine/ListExecutor.h"
#include "runtime/machine/Memory.h"

namespace meshwork::runtime {

using CpuInstruction =
    BoundInstruction<Executable, PreparedCollective, PreparedTransfer>;

class CpuExecutor : public ListExecutor<CpuInstruction> {
public:
  static absl::StatusOr<std::unique_ptr<CpuExecutor>>
  create(const ExecutorSetup &setup, const KernelLibrary &kernels);
  ~CpuExecutor() override;

  absl::Status write(uint64_t place,
                     absl::Span<const std::byte> bytes) override;
  absl::Status read(uint64_t place, absl::Span<std::byte> bytes) override;
  std::byte *hostArena() override { return arena.data(); }
  ThreadTeam &team() override { return *threads; }
  absl::StatusOr<double> measureMatmulTflops(plan::DType type) override;

private:
  using Bound = CpuInstruction;

  using ListExecutor::ListExecutor;
  absl::Status allocate();
  Channel &channel(uint32_t number);

  absl::Status bindCollective(Bound &bound, CollectiveRequest request) override;
  absl::Status bindChannel(Bound &bound) override;
  absl::Status bindTransfer(Bound &bound, uint32_t list,
                            PairRequest request) override;
  void restartChannels() override;
  absl::Status runInstructions(const ListRun &list) override;
  absl::Status compute(const Bound &one, bool sets) override;
  absl::Status meet(const Bound &collective, CommTimes &spent) override;
  absl::Status start(const Bound &collective, bool isSkipped, uint32_t at,
                     CommTimes &spent) override;
  absl::Status join(const plan::Wait &wait, const ListRun &list) override;
  absl::Status startTransfer(const Bound &one, const ListRun &list) override;
  absl::Status finishTransfer(const Bound &one, const ListRun &list,
                              CommTimes &spent) override;

  Arena arena, workspace;
  uint64_t workspacePerThread = 0;
  std::unique_ptr<ThreadTeam> threads;
  std::vector<std::unique_ptr<Channel>> channels; // by number less one
};

/// Arena and workspace of `program` on `threads` threads, in bytes.
absl::StatusOr<uint64_t> neededBytes(const plan::Program &program, int threads);

} // namespace meshwork::runtime
