// The orders of ZB-V and DualPipe-V, rank by rank.
#include "lib/Schedules/Rules.h"

#include <algorithm>
#include <deque>

namespace meshwork::schedules {
namespace {

/// Writes the order of one rank. Chunk 0 is on the way to the turn of the V,
/// chunk 1 on the way back.
class Order {
public:
  Order(int32_t rank, int32_t ranks) : stages{rank, 2 * ranks - 1 - rank} {}

  std::vector<Wish> wishes;

  void forward(int chunk) { add(Kind::forward, chunk); }
  void backward(int chunk) { add(Kind::backward, chunk); }
  void inputGrad(int chunk) {
    add(Kind::inputGrad, chunk);
    due.push_back(chunk);
  }
  /// The W that has been due the longest.
  void weightGrad() {
    add(Kind::weightGrad, due.front());
    due.pop_front();
  }
  void weightGrad(int chunk) {
    due.erase(std::ranges::find(due, chunk));
    add(Kind::weightGrad, chunk);
  }
  void bothGrads(int chunk) {
    inputGrad(chunk);
    weightGrad(chunk);
  }
  /// A forward that starts together with a backward.
  void overlapped(int forwardChunk, int backwardChunk) {
    forward(forwardChunk);
    wishes.back().withNext = true;
    backward(backwardChunk);
  }
  bool isDue(int chunk) const { return std::ranges::count(due, chunk) > 0; }
  bool isDue() const { return !due.empty(); }

private:
  int32_t stages[2];
  std::deque<int> due;

  void add(Kind kind, int chunk) {
    wishes.push_back({kind, stages[chunk], forEver, false});
  }
};

template <typename Step> void repeat(int32_t times, const Step &step) {
  for (int32_t i = 0; i < times; ++i)
    step(i);
}

void zbVWarmup(Order &order, int32_t rank, int32_t ranks) {
  repeat(2 * (ranks - rank) - 1, [&](int32_t) { order.forward(0); });
  repeat(rank, [&](int32_t) {
    order.forward(1);
    order.forward(0);
  });
  repeat(ranks - rank, [&](int32_t) {
    order.forward(1);
    order.bothGrads(1);
  });
}

/// After the warm-up chunk 0 has had 2 ranks - 1 - rank forwards and chunk 1
/// `ranks`; the turns bring both to `microbatches`.
void zbVSteady(Order &order, int32_t rank, int32_t ranks,
               int32_t microbatches) {
  repeat(microbatches - ranks, [&](int32_t turn) {
    if (turn < microbatches - (2 * ranks - 1 - rank))
      order.forward(0);
    order.bothGrads(0);
    order.forward(1);
    order.bothGrads(1);
  });
}

void zbVCooldown(Order &order, int32_t rank, int32_t ranks) {
  repeat(rank, [&](int32_t) {
    order.inputGrad(0);
    order.inputGrad(1);
  });
  repeat(ranks - rank, [&](int32_t) {
    order.inputGrad(0);
    order.weightGrad(0);
  });
  for (int chunk : {1, 0})
    while (order.isDue(chunk))
      order.weightGrad(chunk);
}

void dualPipeVWarmup(Order &order, int32_t rank, int32_t ranks) {
  repeat(2 * (ranks - rank - 1), [&](int32_t) { order.forward(0); });
  repeat(rank + 1, [&](int32_t) {
    order.forward(0);
    order.forward(1);
  });
  repeat(ranks - rank - 1, [&](int32_t) {
    order.bothGrads(1);
    order.forward(1);
  });
}

/// On the rank at the turn the first pair is not overlapped, as its backward
/// waits for nothing but its own forward.
void dualPipeVSteady(Order &order, int32_t rank, int32_t ranks,
                     int32_t microbatches) {
  repeat(microbatches - 2 * ranks + rank + 1, [&](int32_t turn) {
    if (turn == 0 && rank == ranks - 1) {
      order.forward(0);
      order.backward(1);
    } else {
      order.overlapped(0, 1);
    }
    order.overlapped(1, 0);
  });
  repeat(ranks - rank - 1, [&](int32_t) {
    order.backward(1);
    order.overlapped(1, 0);
  });
}

/// The second half of the last backwards is split: from a backward of chunk 1
/// on odd ranks, of chunk 0 on even ones.
void dualPipeVCooldown(Order &order, int32_t rank, int32_t ranks) {
  int32_t half = (rank + 1) / 2;
  repeat(rank + 1, [&](int32_t turn) {
    bool split = turn > half || (turn == half && rank % 2 == 1);
    split ? order.inputGrad(1) : order.backward(1);
    split |= turn == half;
    split ? order.inputGrad(0) : order.backward(0);
  });
  repeat(ranks - rank - 1, [&](int32_t) {
    order.weightGrad();
    order.inputGrad(0);
  });
  while (order.isDue())
    order.weightGrad();
}

} // namespace

// Source: Qi et al., arXiv 2401.10241v2, section 6 and figure 4; the counts of
// the hand-made schedule as in
// github.com/sail-sg/zero-bubble-pipeline-parallelism.
std::vector<std::vector<Wish>> zbV(int32_t ranks, int32_t microbatches) {
  std::vector<std::vector<Wish>> all;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    Order order(rank, ranks);
    zbVWarmup(order, rank, ranks);
    zbVSteady(order, rank, ranks, std::max(microbatches, 2 * ranks - 1));
    zbVCooldown(order, rank, ranks);
    all.push_back(std::move(order.wishes));
  }
  return all;
}

// Source: the eight steps of DualPipeV in github.com/deepseek-ai/DualPipe.
std::vector<std::vector<Wish>> dualPipeV(int32_t ranks, int32_t microbatches) {
  std::vector<std::vector<Wish>> all;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    Order order(rank, ranks);
    dualPipeVWarmup(order, rank, ranks);
    dualPipeVSteady(order, rank, ranks, std::max(microbatches, 2 * ranks));
    dualPipeVCooldown(order, rank, ranks);
    all.push_back(std::move(order.wishes));
  }
  return all;
}

} // namespace meshwork::schedules
