// Collectives between processes, as messages from rank to rank.
//
// Every rank knows from shapes alone what each other one needs, and packs it.
// It reduces what it receives in the order of group index. The bits are
// therefore those of ranks in one process.
#pragma once

#include "runtime/comm/Mesh.h"
#include "runtime/comm/Transport.h"
#include "runtime/comm/World.h"

namespace meshwork::runtime {

class MessageTransport : public Transport {
public:
  /// The mesh has as many ranks as the world.
  MessageTransport(World &world, Mesh mesh);
  ~MessageTransport() override;

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
  /// Rank 0 receives from `from`.
  absl::Status toFirst(uint32_t from, absl::Span<float> values);
  void abort(uint32_t rank, const absl::Status &why) override;
  void setWaiting(uint32_t rank, const Waiting &waiting) override;
  void setFileWork(uint32_t rank, std::string what) override;
  absl::Status blame(uint32_t rank, const Waiting &mine,
                     double seconds) override;
  absl::Status failure() const override { return world.failure().cause(); }

  /// Packed bytes of one channel's collectives, which run one at a time.
  struct Staging {
    std::vector<std::byte> send, receive;
  };

private:
  World &world;
  Mesh mesh;
  Staging staging[World::serviceLane];
};

/// What any process of `world` says, by rank.
absl::StatusOr<std::vector<std::string>>
exchangeTexts(World &world, const std::string &mine, const std::string &what);

} // namespace meshwork::runtime
