// One side of a transfer between ranks that are threads of one process.
#pragma once

#include "runtime/comm/PairLane.h"
#include "runtime/comm/TensorCopies.h"
#include <optional>

namespace meshwork::runtime {

class InProcessTransfer : public PreparedTransfer {
public:
  InProcessTransfer(PairLane &lane, PairLane::Side side)
      : lane(lane), side(std::move(side)) {}

  absl::Status start(ParallelFor) override {
    number = lane.start(side);
    return absl::OkStatus();
  }

  absl::Status finish(ParallelFor parallel, CommTimes &times) override {
    auto move = [&](const PairLane::Side &from, const PairLane::Side &to) {
      if (!copies) // All of a lane are alike but for where they are.
        copies.emplace(from.parts, to.parts);
      copies->run(from.parts, to.parts, parallel);
      return absl::OkStatus();
    };
    return lane.finish(side, number, move, times).status();
  }

private:
  PairLane &lane;
  PairLane::Side side;
  uint64_t number = 0;
  std::optional<TensorCopies> copies;
};

} // namespace meshwork::runtime
