// What the search knows of a choice after it has been compiled without code.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace meshwork::tune {

/// The digits are those that `compile --estimate` prints of the spec.
struct Costed {
  enum Status {
    done,
    refused, // by the compiler, as an error of the spec
    broken,  // a fault of the compiler
  } status = broken;
  std::string why; // of what is not `done`
  double seconds = 0, tokensPerSecond = 0;
  double mfu = 0;                        // 0: the machine has no peak
  uint64_t bytes = 0, hostBytes = 0;     // of the rank that needs most
  std::vector<double> bytesOfRanks = {}; // by coordinate along a pipeline
  std::map<std::string, double> exposed; // seconds, by axes
  std::optional<double> bubble;          // none: not simulated
  bool isUneven = false; // balanced stages of a pipeline do not fit
};

/// JSON, both ways; reading gives `broken` for what is none.
std::string toJson(const Costed &costed);
Costed costedFromJson(const std::string &json);
/// Whether the result of a body or of a spec, as JSON, is a fault.
bool isBroken(const std::string &json);

} // namespace meshwork::tune
