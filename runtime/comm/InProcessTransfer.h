// One side of a transfer between ranks that are threads of one process.
#pragma once

#include "runtime/comm/PairLane.h"

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
    return lane.finish(side, number, parallel, times);
  }

private:
  PairLane &lane;
  PairLane::Side side;
  uint64_t number = 0;
};

} // namespace meshwork::runtime
