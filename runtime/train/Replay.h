// Finds the instruction that first produced a NaN or an infinity, by running
// the step again and looking at every output. Weights have not changed, so the
// step computes the same bits again.
#pragma once

#include "runtime/rank/Rank.h"
#include <tuple>

namespace meshwork::runtime {

struct Finding {
  bool inParameter = false; // it was there before the step
  uint32_t action = 0;      // of the step
  uint32_t index = 0;       // place in its list, all turns written out
  uint32_t rank = 0;
  std::string text;        // for people
  bool isReceived = false; // another rank sent it, and has found it too

  /// As text for other ranks, and back; nothing for what is no finding.
  std::string encode() const;
  static std::optional<Finding> decode(const std::string &text);

  /// Order in time, where ranks run the same actions; who made a value comes
  /// before those that received it. Of equals the lowest rank.
  auto key() const {
    return std::make_tuple(!inParameter, isReceived, action, index, rank);
  }
};

/// Watches a step; `first` is set by the first output that is not finite.
class NonFiniteScan : public InstructionObserver {
public:
  explicit NonFiniteScan(const Rank &rank) : rank(rank) {}
  void after(const ListRun &run, uint32_t at, int64_t beginNs, int64_t endNs,
             const CommTimes &times) override;
  bool looksAtData() const override { return true; }
  std::optional<Finding> first;

private:
  const Rank &rank;
};

/// The first parameter that holds a NaN or an infinity.
std::optional<Finding> scanParameters(const Rank &rank);
/// The same of gradients, where a step stopped for a look.
std::optional<Finding> scanGradients(const Rank &rank);

/// "NaN", "infinity", or null when all elements of `view` are finite.
const char *nonFiniteIn(const plan::ViewInfo &view, const std::byte *data);

} // namespace meshwork::runtime
