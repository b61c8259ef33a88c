// What would make a plan fit the memory.
#pragma once

#include "tools/meshwork/driver/search/Changes.h"
#include "tools/meshwork/driver/search/Micro.h"

namespace meshwork::driver {

/// What a plan may need, and what of it advice is about.
struct AdviceLimit {
  uint64_t bytes, hostBytes;
  uint64_t Trial::*needed; // the one that was too much

  bool holds(const Trial &trial) const {
    return trial.bytes <= bytes && trial.hostBytes <= hostBytes;
  }
};

/// Lines that tell what changes of the user's spec come to, up to the first
/// that fits. First is each of `changes` alone, then all of them together, then
/// other meshes. Each is compiled from `model`, as it is before all phases,
/// with what is "auto" chosen anew: bytes and seconds are those of the plan
/// with that change. What does not compile is left out.
std::string advice(mlir::ModuleOp model, const spec::Spec &asked,
                   const SpecWith &specWith, AdviceLimit limit,
                   const std::vector<Change> &changes);

} // namespace meshwork::driver
