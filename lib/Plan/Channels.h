// What is under way on the channels of a list, on the way along it.
//
//   Channels channels(list);
//   for (uint32_t i = 0; i < list.size(); ++i)
//     channels.pass(i, [&](uint32_t ended) { ... }); // where list[i] is a Wait
//
// What runs on one channel ends in the order in which it was started. Where a
// turn of a counted repeat begins or ends, nothing may be under way, and counts
// begin anew.
#pragma once

#include "absl/functional/function_ref.h"
#include "lib/Plan/Views.h"
#include <array>
#include <cstdint>
#include <vector>

namespace meshwork::plan {

/// How many channels a list has at most, numbered from 1.
inline constexpr uint32_t maxChannels = 8;

class Channels {
public:
  /// Of a list whose repeats and channels have been checked.
  explicit Channels(const Instructions &list);

  /// Whether counts begin anew in front of an instruction, or at the end of the
  /// list, which is its size.
  bool beginAnewAt(uint32_t index) const { return gates[index]; }

  /// Counts begin anew, if they do so in front of this instruction.
  void enter(uint32_t index) {
    if (gates[index])
      all = {};
  }
  /// Enters an instruction and goes past it; all before it have been passed.
  /// `ended` is called with each that a Wait finds to have ended.
  void pass(uint32_t index, absl::FunctionRef<void(uint32_t)> ended);

  /// How many of a channel have started since counts began.
  uint32_t started(uint32_t channel) const {
    return static_cast<uint32_t>(all[channel].started.size());
  }
  /// The instructions that are under way, channel by channel.
  std::vector<uint32_t> underWay() const;

private:
  struct Channel {
    std::vector<uint32_t> started; // instructions
    uint32_t ended = 0;            // of them
  };
  const Instructions &list;
  std::vector<bool> gates;
  std::array<Channel, maxChannels + 1> all;
};

} // namespace meshwork::plan
