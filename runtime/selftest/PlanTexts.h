// The model and the specs of the self-test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace meshwork::runtime {

struct PlanText {
  std::string name;
  bool hasExperts;
  std::vector<std::string> axes; // "dp=2"
  std::string keys;              // of the spec, beside those of all
};

/// Of ranks that a strategy beside data parallelism shares a sample on; 1 where
/// `ranks` has no divisor from 2 to 8.
uint32_t sharersOf(uint32_t ranks);

std::vector<PlanText> planTexts(uint32_t ranks);

/// A spec; on one rank with the same batch.
///   arch  of GPUs ("sm_90a"); "": the CPU
std::string specText(const PlanText &text, uint32_t ranks, bool onOneRank,
                     const std::string &arch);
/// The config.json of a model of eight layers, or two with experts. Its heads
/// and experts are twice as many as sharersOf(ranks).
std::string modelText(bool hasExperts, uint32_t ranks);

} // namespace meshwork::runtime
