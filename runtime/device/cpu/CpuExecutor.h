// A rank on the CPU: its arena, its team of threads, its channels.
#pragma once

#include "runtime/device/cpu/Channel.h"
#include "runtime/device/cpu/Prepare.h"
#include "runtime/machine/Executor.h"
#include "runtime/machine/Memory.h"
#include <map>

namespace meshwork::runtime {

class CpuExecutor : public Executor {
public:
  static absl::StatusOr<std::unique_ptr<CpuExecutor>>
  create(const ExecutorSetup &setup, const KernelLibrary &kernels);

  absl::Status run(const ListRun &list, InstructionObserver *observer) override;
  absl::Status write(uint64_t place,
                     absl::Span<const std::byte> bytes) override;
  absl::Status read(uint64_t place, absl::Span<std::byte> bytes) override;
  std::byte *hostArena() override { return arena.data(); }
  ThreadTeam &team() override { return *threads; }
  absl::StatusOr<double> measureMatmulTflops(plan::DType type) override;
  CommTimes takeTimes() override { return std::exchange(times, CommTimes()); }

private:
  /// One instruction, bound to memory. One of the four is set.
  struct Bound {
    std::unique_ptr<Executable> compute;
    std::unique_ptr<PreparedCollective> collective;
    std::unique_ptr<PreparedTransfer> transfer;
    const plan::Wait *wait = nullptr;
    uint32_t channel = 0;                      // of a collective
    bool lastOnly = false;                     // of a collective
    uint32_t setsIn = plan::ActionTable::none; // the action; later ones add
  };

  explicit CpuExecutor(const ExecutorSetup &setup) : setup(setup) {}
  absl::Status allocate();
  absl::StatusOr<std::vector<Bound>> bind(Where where, RankProgram &program,
                                          const PrepareContext &context);
  absl::StatusOr<Bound> bindOne(uint32_t list, const plan::Instruction &source,
                                const RankProgram &program,
                                const PrepareContext &context);
  Channel &channel(uint32_t number);
  absl::Status runInline(PreparedCollective &collective, CommTimes &spent);
  absl::Status runWait(const plan::Wait &wait, const ListRun &list,
                       InstructionObserver *observer);
  absl::Status start(PreparedTransfer &transfer, const ListRun &list);
  absl::Status awaitTransfers(const ListRun &list,
                              InstructionObserver *observer);

  ExecutorSetup setup;
  Arena arena, workspace;
  uint64_t workspacePerThread = 0;
  std::unique_ptr<ThreadTeam> threads;
  // By list and variant, as RankProgram.turns.
  std::vector<std::vector<std::vector<Bound>>> lists;
  std::vector<std::unique_ptr<Channel>> channels; // by number less one
  /// A transfer that its action has started.
  struct UnderWay {
    PreparedTransfer *transfer;
    ListRun list;
    int64_t beginNs;
  };
  std::map<uint32_t, UnderWay> underWay; // by action
  CommTimes times;
};

/// Arena and workspace of `program` on `threads` threads, in bytes.
absl::StatusOr<uint64_t> neededBytes(const plan::Program &program, int threads);

} // namespace meshwork::runtime
