// Cores: which ones this process may use, who gets which, what they can do.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "meshwork/Plan/Plan.h"
#include <string>
#include <vector>

namespace meshwork::runtime {

/// CPUs in this process's affinity mask, ascending; at least one.
std::vector<int> allowedCpus();

/// How many of them this process may keep busy: fewer where control groups give
/// it a share of time. At least one.
///   root  of controlGroupCores
size_t usableCores(const std::string &root = "");

/// Lets this thread, made by one that may be pinned, run on any of `cpus`.
void unpin(const std::vector<int> &cpus);

/// From now on this thread runs where others leave a core idle, and where none
/// does a tenth of the time of one. There is no way back.
void letOthersGoFirst();

/// Cores of one rank.
struct CoreShare {
  int threads;
  std::vector<int> cpus; // to pin to; empty: do not pin
  /// Its threads are as many as its cores: what runs beside them holds them up.
  bool isFull = false;
};

/// Deals `cpus` to `ranks` in contiguous blocks: a rank's threads are close.
///   threads  per rank; 0 is all of the rank's block, at least 1
///   pin      false, or more threads than cores: nobody is pinned
std::vector<CoreShare> shareCores(const std::vector<int> &cpus, uint32_t ranks,
                                  int threads, bool pin);

/// failedPrecondition names the features in Plan.cpu_features (LLVM's names)
/// that this machine lacks.
absl::Status checkMachine(const plan::Plan &plan);

} // namespace meshwork::runtime
