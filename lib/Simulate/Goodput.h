// How much of a month a run trains whose nodes fail.
//
//   simulate::TrainingRun run{.step = 0.7, .copy = 0.2, .write = 30, .failures
//   = 6e6}; simulate::Goodput goodput = simulate::bestGoodput(run);
//
// Failures come at random, at a rate that does not change, to each node alike.
// Source: J. T. Daly, Future Generation Computer Systems 22 (2006) 303-312.
#pragma once

#include <cstdint>

namespace meshwork::simulate {

/// In seconds.
struct TrainingRun {
  double step = 0;
  double copy = 0;     // in which a checkpoint holds up training
  double write = 0;    // in which it is written beside training
  double read = 0;     // in which it is read when the run begins again
  double restart = 0;  // from a failure until that reading begins
  double failures = 0; // mean time from one failure of any node to the next
};

struct Goodput {
  uint64_t steps = 0; // from one checkpoint to the next
  double share = 0;   // of the time, in steps that are not lost
};

/// With a checkpoint after each `steps` steps. A failure loses the steps since
/// the last checkpoint that was written to its end.
double goodputOf(const TrainingRun &run, uint64_t steps);

/// With the number of steps that makes it largest. No checkpoint begins before
/// the one before it was written.
Goodput bestGoodput(const TrainingRun &run);

} // namespace meshwork::simulate
