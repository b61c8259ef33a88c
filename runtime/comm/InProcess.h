// Collectives between ranks that are threads of this process.
//
// No staging memory: between two meetings (all are here; all are done) every
// rank reads what it needs where its peers have it, and fills its own
// destinations. An all_reduce is shared out: each rank owns one slice, reads it
// from all and writes it to all, and nobody else touches it.
#pragma once

#include "runtime/comm/Mesh.h"
#include "runtime/comm/PairLane.h"
#include "runtime/comm/Rendezvous.h"
#include "runtime/comm/Transport.h"
#include <map>

namespace meshwork::runtime {

struct InProcessOptions {
  double timeoutSeconds = 60; // to wait for a peer in one collective
  bool spins = true;          // false where ranks share cores
};

class InProcessTransport : public Transport {
public:
  InProcessTransport(Mesh mesh, const InProcessOptions &options);
  ~InProcessTransport() override;
  InProcessTransport *inProcess() override { return this; }

  uint32_t numRanks() const override { return mesh.numRanks(); }
  absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(uint32_t rank, CollectiveRequest request) override;
  absl::StatusOr<std::unique_ptr<PreparedTransfer>>
  prepareTransfer(uint32_t rank, PairRequest request) override;
  absl::StatusOr<uint32_t> agree(uint32_t rank, uint32_t flags,
                                 const char *what) override;
  absl::StatusOr<std::vector<std::string>>
  exchange(uint32_t rank, std::string mine, const char *what) override;
  absl::Status gather(uint32_t rank, std::string mine,
                      Deliver deliver) override;
  void abort(uint32_t rank, const absl::Status &why) override;
  void setWaiting(uint32_t rank, const Waiting &waiting) override;
  void setFileWork(uint32_t rank, std::string what) override;
  absl::Status blame(uint32_t rank, const Waiting &mine,
                     double seconds) override;
  absl::Status failure() const override { return firstFailure.cause(); }

  const Mesh &ranks() const { return mesh; }
  /// Where the group of `rank` along `axes` meets on `channel`, for a transport
  /// that moves data otherwise; whoever waits there wakes when a rank fails.
  /// Lives as long as this object. Any thread.
  Rendezvous &meeting(uint32_t rank, absl::Span<const uint32_t> axes,
                      uint32_t channel);

  /// Where the sides of such transfers meet; as `meeting`.
  PairLane &lane(uint32_t rank, const PairRequest &request);

  /// One group: its meeting place and what each member brought to it.
  struct Group;

private:
  Group &groupOf(uint32_t rank, absl::Span<const uint32_t> axes,
                 uint32_t channel);
  absl::Status meetAll(uint32_t rank, const char *what);

  Mesh mesh;
  InProcessOptions options;
  Failure firstFailure;
  std::atomic<uint32_t> fileWorkers{0};
  std::mutex mutex; // guards `groups` and `lanes`
  // By channel and members.
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, std::unique_ptr<Group>>
      groups;
  // By sender, receiver and number.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::unique_ptr<PairLane>>
      lanes;
  std::unique_ptr<Group> world;
  std::vector<std::string> exchanged, gathered; // by rank
  std::atomic<uint32_t> given{0};               // to `gathered`
  std::mutex waitsMutex;                        // guards what follows
  std::vector<Waiting> waits;                   // by rank
  std::vector<std::string> fileWork;            // by rank
};

} // namespace meshwork::runtime
