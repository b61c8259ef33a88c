// One side of a transfer between two processes.
#pragma once

#include "runtime/comm/TensorCopies.h"
#include "runtime/comm/World.h"

namespace meshwork::runtime {

class MessageTransfer : public PreparedTransfer {
public:
  MessageTransfer(World &world, PairRequest request);
  /// After a failure of any rank it may be under way.
  ~MessageTransfer() override { world.giveUp(pending); }
  absl::Status start(ParallelFor parallel) override;
  absl::Status finish(ParallelFor parallel, CommTimes &times) override;

private:
  World &world;
  PairRequest request;
  std::string what;
  /// Parts that lie without gaps travel from and to where they are, one message
  /// each; others by way of this memory.
  std::vector<std::byte> staging;
  std::vector<Strided> travels; // what the messages carry, by part
  std::vector<Strided> mine;    // parts with gaps
  std::vector<Strided> staged;  // the same, in `staging`
  TensorCopies copies;          // between these two
  std::vector<Messages::Pending> pending;
};

} // namespace meshwork::runtime
