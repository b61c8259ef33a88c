// Whether a cluster computes right and evenly: all its ranks try links, work,
// collectives and plans.
#pragma once

#include "runtime/run/MeasureMachine.h"
#include "runtime/selftest/GpuChecks.h"
#include "runtime/selftest/MoveChecks.h"
#include "runtime/selftest/PlanChecks.h"

namespace meshwork::runtime {

/// Nothing in it tells who or where: hosts have numbers.
struct SelfTest {
  uint32_t ranks = 0;
  std::vector<uint32_t> hostOfRank; // numbered as they come
  bool areProcesses = false;
  MeasuredMachine machine;
  MovesToCheck tried;
  MovesFound moves;
  GpusFound gpus;
  std::vector<PlanCheck> plans;

  /// What gives other numbers than it should.
  std::vector<std::string> wrong() const;
  /// What is much slower than its like.
  std::vector<std::string> slow() const;
};

/// What is told of it, all on the first process.
class SelfTestListener {
public:
  virtual ~SelfTestListener() = default;
  /// Before anything is tried; a failure ends all processes.
  virtual absl::Status begin() = 0;
  /// A part that is over.
  virtual void tell(const std::string &line) = 0;
  /// As begin().
  virtual absl::Status deliver(const SelfTest &test) = 0;
};

/// By all ranks of a launch, or as many threads as `options.ranks` says (2 of
/// none). dataLoss when something is wrong.
absl::Status selfTest(const RunOptions &options, SelfTestListener &listener);

} // namespace meshwork::runtime
