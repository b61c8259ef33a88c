// A rank on a GPU: an arena there, a stream that computes and one per channel,
// and lists that are captured once as CUDA graphs and launched from then on.
#pragma once

#include "lib/Plan/Spaces.h"
#include "runtime/device/cuda/DeviceTransport.h"
#include "runtime/device/cuda/Dnn.h"
#include "runtime/device/cuda/Memory.h"
#include "runtime/device/cuda/Operation.h"
#include "runtime/device/cuda/Progress.h"
#include "runtime/machine/ListExecutor.h"
#include <mutex>

namespace meshwork::runtime::cuda {

class Tuned;

struct CudaSetup {
  Gpu &gpu;
  DeviceTransport &transport;
  bool synchronous; // wait after each instruction, so that an error names it
  bool tunes;       // see OperationContext
  double timeoutSeconds; // for work that does not end
  bool cudnnAttention;   // wherever it can; else where tuning finds it faster
  const WgmmaKernels *wgmma; // likewise; null: they were not asked for
  LibraryNotes &epilogues, &dnnNotes, &wgmmaNotes; // what becomes of them
  std::string &tuning;  // rank 0 says here what it has timed
  std::string &overlap; // and here how many products leave room to NCCL
};

struct CudaInstruction
    : BoundInstruction<Operation, DeviceCollective, DeviceTransfer> {
  EventHandle ended; // of what is on a channel, or a transfer
};

class CudaExecutor : public ListExecutor<CudaInstruction> {
public:
  static absl::StatusOr<std::unique_ptr<CudaExecutor>>
  create(const ExecutorSetup &setup, const CudaSetup &cuda);
  ~CudaExecutor() override;

  absl::Status run(const ListRun &list, InstructionObserver *watcher) override {
    return addHint(ListExecutor::run(list, watcher));
  }
  absl::Status write(uint64_t place,
                     absl::Span<const std::byte> bytes) override;
  absl::Status read(uint64_t place, absl::Span<std::byte> bytes) override;
  absl::Status settle() override { return addHint(finish()); }
  absl::Status readBeside(uint64_t place, absl::Span<std::byte> bytes) override;
  bool runsBehind() const override { return !cuda.synchronous; }
  std::byte *hostArena() override { return nullptr; }
  ThreadTeam &team() override { return *threads; }
  absl::StatusOr<double> measureMatmulTflops(plan::DType type) override;

private:
  using Bound = CudaInstruction;
  struct ChannelQueue {
    std::unique_ptr<Queue> queue;
    EventHandle begin;
    /// Started since the list began; null where there was nothing to do.
    std::vector<const Bound *> started;
    size_t waited = 0; // of these
  };
  /// A part of a list: a graph, or without one instructions one by one.
  struct Piece {
    GraphExec graph = nullptr;
    uint32_t begin, end;
  };
  /// The list, the variant of its copies, its part, an action, whether that is
  /// the list's last, and whether it evaluates. The action counts if some
  /// instruction sets in it what others add to; it is none where all add.
  using PiecesKey =
      std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, bool, bool>;
  struct Mark;         // of Observed.cpp
  class StreamReadout; // of Readout.cpp

  CudaExecutor(const ExecutorSetup &setup, const CudaSetup &cuda)
      : ListExecutor(setup), cuda(cuda), progress(setup.program) {}
  QueueOwner owner() {
    return {setup.program.rank, setup.transport, &cuda.transport, &progress,
            cuda.timeoutSeconds};
  }
  absl::Status allocate();
  absl::Status bindAll(RankProgram &moving, OperationContext &context);
  absl::StatusOr<std::unique_ptr<Readout>>
  makeReadout(uint64_t numbers) override;
  absl::Status clearPersistent();
  /// Where a place of the host's arena is; null: it is one of the device's.
  std::byte *onHost(uint64_t place) const {
    const plan::Program &program = setup.program.program;
    return plan::isOnHost(program, place)
               ? hostMemory.data() + (place - plan::hostBegin(program))
               : nullptr;
  }
  absl::Status runInstructions(const ListRun &list) override;
  absl::Status runOne(const ListRun &list, uint32_t at);
  void beginWork(ListRun list, uint32_t begin, uint32_t end);
  absl::Status finish(); // all streams
  absl::Status addHint(absl::Status status) const;
  absl::Status locate(absl::Status status, const ListRun &list,
                      uint32_t at) const;

  // Streams.cpp
  absl::Status open(ChannelQueue &of);
  absl::Status follow(ChannelQueue &of);
  absl::Status bindCollective(Bound &bound, CollectiveRequest request) override;
  absl::Status bindTransfer(Bound &bound, uint32_t list,
                            PairRequest request) override;
  absl::Status bindChannel(Bound &bound) override;
  void restartChannels() override;
  absl::Status compute(const Bound &one, bool sets) override {
    return one.compute->enqueue(main->stream(), sets);
  }
  absl::Status meet(const Bound &one, CommTimes &spent) override {
    return one.collective->enqueue(main->stream(), spent);
  }
  absl::Status start(const Bound &one, bool isSkipped, uint32_t at,
                     CommTimes &spent) override;
  absl::Status join(const plan::Wait &wait, const ListRun &list) override;
  absl::Status startTransfer(const Bound &one, const ListRun &list) override;
  absl::Status finishTransfer(const Bound &one, const ListRun &list,
                              CommTimes &spent) override;

  // Beside.cpp
  absl::Status countMultiprocessors();
  uint32_t multiprocessorsOfProducts(uint32_t channels) const;
  std::string tellOverlap() const;

  // Tuning.cpp
  absl::Status shareTuning(const OperationContext &context);
  absl::Status tuneAll(Tuned &tuned, const OperationContext &context);
  absl::Status tuneList(const plan::Instructions &list,
                        OperationContext context);

  // Graphs.cpp
  absl::StatusOr<const std::vector<Piece> *> piecesOf(const ListRun &list);
  absl::Status capture(const ListRun &list, Piece &piece);

  // Observed.cpp
  absl::Status runObserved(const ListRun &list);
  absl::Status mark(const ListRun &list, uint32_t index, Mark &mark);

  CudaSetup cuda;
  std::unique_ptr<ThreadTeam> threads; // of the host
  Progress progress;
  std::unique_ptr<Queue> main;
  std::unique_ptr<Staging> staging;
  /// What is read beside the main stream.
  struct Beside {
    std::mutex mutex; // of those who read
    std::unique_ptr<Queue> queue;
    std::unique_ptr<Staging> staging;
  } beside;
  DeviceMemory arena, workspace;
  PinnedMemory hostMemory; // the host's arena
  /// Of the GPU; 0 where nobody holds any for collectives.
  uint32_t multiprocessors = 0;
  std::unique_ptr<BlasLt> blas;
  std::unique_ptr<Dnn> dnn;
  std::vector<std::unique_ptr<ChannelQueue>> channels; // by number less one
  std::map<uint32_t, ChannelQueue> lanes; // of lists that send or receive
  bool awaitsPeer = false;                // what comes next in the main stream
  std::map<PiecesKey, std::vector<Piece>> pieces;
};

} // namespace meshwork::runtime::cuda
