// `meshwork tune`: the fastest spec for a model on so many ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace meshwork::tune {

/// Whether the host's memory is tried: where nothing fits without it, wherever
/// it may be faster, or not at all.
enum class Offload { automatic, always, never };

struct TuneOptions {
  std::string model;                 // as of compile
  std::vector<uint32_t> ranks;       // each is searched
  std::string machine;               // as target.machine
  uint32_t global = 0, sequence = 0; // as batch.global and batch.sequence
  std::vector<std::string> fixed;    // section.key=value
  std::vector<std::string> axes;     // "dp=8"
  uint32_t measured = 0; // so many of the best run here for some steps
  Offload offload = Offload::automatic;
  double within = 0;  // also list all that take at most so much longer: a part
  std::string output; // the best spec; "": none is written
  std::string cache;  // of earlier searches; "": none
  bool json = false;
};

/// Does it; a table on stdout, messages on stderr. Returns the exit code: 78
/// where no spec fits the machine, or what is fixed is wrong.
int tune(const TuneOptions &options);

} // namespace meshwork::tune
