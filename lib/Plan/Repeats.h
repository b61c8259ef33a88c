// What instructions of a list run in which order, where some of them repeat.
//
//   std::vector<RepeatShape> shapes = repeatsOf(instructions);
//   Repeats::problem(shapes, size);         // "" when they nest
//   Repeats repeats(shapes, size);
//   for (const Turn &turn : repeats.turns())
//     run(instructions[turn.instruction], turn.turns);
#pragma once

#include "meshwork/Plan/Plan.h"
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace meshwork::plan {

/// How deep repeats may nest.
inline constexpr uint32_t maxRepeats = 3;
/// What a list may come to when all its repeats are written out: who runs it
/// keeps something for each.
inline constexpr uint64_t maxTurns = uint64_t{1} << 24;

/// The number of each turn, of the outermost repeat first; 0 of those deeper.
using Turns = std::array<uint32_t, maxRepeats>;

/// Instructions [begin, end) of a list run `times` times; the Repeat itself
/// stands in front of them.
struct RepeatShape {
  uint32_t begin, end, times;
};

/// An instruction in one turn of the repeats around it.
struct Turn {
  uint32_t instruction;
  Turns turns = {};
};

/// The repeats of one list.
class Repeats {
public:
  Repeats() = default;
  /// In the order in which they stand, in a list of `size` instructions.
  Repeats(std::vector<RepeatShape> shapes, uint32_t size);

  /// What is wrong with them, "" when nothing is: ranges that leave the list or
  /// the repeat around them, too deep, or more than maxTurns in all. Nothing
  /// below may be asked while something is.
  static std::string problem(const std::vector<RepeatShape> &shapes,
                             uint32_t size);

  bool empty() const { return all.empty(); }
  /// Those around an instruction, the outermost first.
  std::vector<RepeatShape> around(uint32_t instruction) const;
  /// How often an instruction runs when the list runs once.
  uint64_t timesOf(uint32_t instruction) const;
  /// All that runs, in order, without the Repeats themselves.
  std::vector<Turn> turns() const;

private:
  void write(size_t &next, uint32_t begin, uint32_t end, uint32_t depth,
             Turns turns, std::vector<Turn> &to) const;

  std::vector<RepeatShape> all;
  std::vector<uint32_t> parents;   // by repeat: number of the one around, + 1
  std::vector<uint32_t> innermost; // by instruction: likewise; 0: none
  uint32_t size = 0;
};

/// Of a list of a plan; of a range that leaves 32 bits the end is the largest
/// number.
std::vector<RepeatShape>
repeatsOf(const flatbuffers::Vector<flatbuffers::Offset<Instruction>> *list);

} // namespace meshwork::plan
