// Collectives between ranks with a GPU each, in any number of processes, by
// NCCL.
//
//   auto transport = NcclTransport::create(
//       {driver, host, mesh, rank, requestsOf(program), timeoutSeconds,
//        pairsOf(program, mesh)});
//   auto collective = (*transport)->prepare(rank, request);
#pragma once

#include "runtime/device/cuda/BoxTable.h"
#include "runtime/device/cuda/DeviceTransport.h"
#include "runtime/device/cuda/NcclMemory.h"
#include "runtime/machine/Executor.h"
#include <map>
#include <tuple>

namespace meshwork::runtime::cuda {

/// What a rank's program will ask a transport to prepare, with addresses that
/// mean nothing.
std::vector<CollectiveRequest> requestsOf(const RankProgram &program);

/// The same of transfers.
std::vector<PairRequest> pairsOf(const RankProgram &program, const Mesh &mesh);

struct NcclSetup {
  const Driver &driver;
  Transport &host; // carries ids and failures; outlives the transport
  const Mesh &mesh;
  uint32_t rank;
  std::vector<CollectiveRequest> requests; // all that will be prepared
  double timeoutSeconds;
  std::vector<PairRequest> pairs = {};
  /// Thread blocks of a collective that runs on a channel, beside what computes
  /// (others may take all they like); 0: as many as NCCL likes.
  uint32_t maxCtas = 0;
  /// Communicators know all memory that they are given, see NcclMemory.
  bool registers = false;
};

/// Of one rank. Its context is current at every call and at the end. Those of a
/// process end at the same time, each in a thread of its own: they wait for
/// each other.
class NcclTransport : public DeviceTransport {
public:
  /// Called by every rank of the plan, also by one without collectives. Ids
  /// travel by `host.exchange`. Then communicators are made, one for each group
  /// of ranks and channel, on all ranks in the same order, and each carries
  /// something once. Takes memory for what is packed: of each channel, whose
  /// collectives run one after the other, as much as the largest needs.
  static absl::StatusOr<std::unique_ptr<NcclTransport>>
  create(const NcclSetup &setup);
  ~NcclTransport() override;

  /// `request` is one of those that the setup had.
  absl::StatusOr<std::unique_ptr<DeviceCollective>>
  prepare(uint32_t rank, CollectiveRequest request) override;
  absl::StatusOr<std::unique_ptr<DeviceTransfer>>
  prepareTransfer(uint32_t rank, PairRequest request) override;
  /// With `registers`, what all communicators know.
  absl::StatusOr<std::shared_ptr<RegisteredMemory>>
  allocate(uint64_t bytes) override;
  absl::Status check() override;
  Waiting waiting(uint32_t rank) const override;
  void cutOff() override;
  uint32_t multiprocessorsOfChannel() const override { return ctasOfChannel; }

  /// The ranks of one communicator, by what is the same on all of them: a
  /// channel has those along axes, a lane a sender and a receiver. Every rank
  /// makes its communicators in this order.
  struct Group {
    uint32_t number; // of the channel, or the lane
    std::vector<uint32_t> axes;
    std::vector<uint32_t> pair = {};
    bool operator<(const Group &other) const {
      bool mine = pair.empty(), its = other.pair.empty();
      return std::tie(mine, number, axes, pair) <
             std::tie(its, other.number, other.axes, other.pair);
    }
  };

private:
  explicit NcclTransport(const NcclSetup &setup)
      : driver(setup.driver), mesh(setup.mesh), rank(setup.rank),
        warmUpMemory(setup.driver) {}
  absl::Status openLibrary(const NcclSetup &setup);
  absl::Status reserve(const NcclSetup &setup);
  absl::Status registerStaging();
  absl::Status connect(const NcclSetup &setup);
  absl::Status connect(const NcclSetup &setup, const Group &group,
                       const nccl::UniqueId &id);
  absl::Status warmUp(NcclCommunicator &communicator, uint32_t index,
                      uint32_t ranks, const std::string &what,
                      const NcclSetup &setup);
  uint64_t warmUpBytes() const;
  absl::Status finish(const Waiting &peers, const NcclSetup &setup);

  const Driver &driver;
  Mesh mesh;
  uint32_t rank;
  uint32_t ctasOfChannel = 0;
  Stream stream = nullptr; // of what is done here; not of collectives
  const NcclLibrary *registers = nullptr; // which knows all memory
  NcclMemory warmUpMemory;
  std::shared_ptr<BoxKernels> kernels;
  std::map<Group, std::unique_ptr<NcclCommunicator>> communicators;
  std::map<uint32_t, std::unique_ptr<NcclMemory>> staging; // by channel
};

} // namespace meshwork::runtime::cuda
