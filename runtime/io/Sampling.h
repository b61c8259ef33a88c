// Which window of which file each sample of a run is. The README of this folder
// has it as a program; nothing here reads a file.
//
//   auto sampling = Sampling::make({{{5000}, {800, 900}}, 64, Order::epochs,
//                                   {0.7, 0.3}});
//   Window window = sampling->of(seed, {.step = 3, .index = 1, .ofRun = 49});
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/io/Tokens.h"
#include <absl/status/statusor.h>

namespace meshwork::runtime {

/// `sequence` + 1 tokens of a file, from one on.
struct Window {
  size_t file = 0; // counted through all sources
  uint64_t start = 0;
};

/// Samples of which shares are counted: each block has as many of each source.
constexpr uint64_t samplesOfBlock = 1024;

struct SamplingOptions {
  /// Tokens of each file of each source; more than `sequence` of each.
  std::vector<std::vector<uint64_t>> tokens;
  uint64_t sequence = 0;
  SampleOrder order = SampleOrder::random;
  /// One of each source, or none: shares are then those of the windows.
  std::vector<double> weights = {};
};

class Sampling {
public:
  /// kInvalidArgument: weights are not one of each source, are not positive
  /// and finite, or give a source no sample of a block.
  static absl::StatusOr<Sampling> make(const SamplingOptions &options);

  Window of(uint64_t seed, const SampleNumber &number) const;

  /// Of `samples` of a run: how often a source is read, in epochs.
  double readsOf(size_t source, uint64_t samples) const;
  /// Windows behind each other of a source.
  uint64_t windowsOf(size_t source) const;

private:
  /// Files that are one run of places: of windows behind each other (epochs),
  /// or of tokens at which one may begin (random).
  struct Pool {
    size_t firstFile = 0;
    std::vector<uint64_t> ends;                     // of places, by file
    uint64_t quota = samplesOfBlock, firstSlot = 0; // of a block
    uint64_t places() const { return ends.back(); }
  };
  Pool poolOf(const SamplingOptions &options, size_t source) const;
  absl::Status shareBlock(const std::vector<double> &weights);
  Window windowAt(const Pool &pool, uint64_t place) const;

  uint64_t sequence = 0;
  SampleOrder order = SampleOrder::random;
  std::vector<Pool> pools; // one for each source with weights, else of all
  std::vector<uint64_t> windows; // by source
};

} // namespace meshwork::runtime
