// What instructions of a list run in which order, where some of them repeat.
//
//   std::vector<RepeatShape> shapes = repeatsOf(instructions);
//   Repeats::problem(shapes, size);         // "" when they nest
//   Repeats repeats(shapes, size);
//   for (const Turn &turn : repeats.turns())
//     run(instructions[turn.instruction], turn.turns);
//
// A counted repeat runs as often as a number says that is read on the way. All
// its turns are written out; in front of each, and behind the last, stands the
// repeat itself as a gate, where it ends when enough have run:
//
//   Gates gates;
//   gates.pass(turns, at, readCount)   // where to go on
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "meshwork/Plan/Frame.h"
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
  bool isCounted = false; // it may end earlier
};

/// An instruction in one turn of the repeats around it.
struct Turn {
  uint32_t instruction;
  Turns turns = {};
  // Of a gate: how many repeats are around it, so turns[depth] is the number of
  // the turn that begins here. And the place of the last gate, behind the last
  // turn; 0 where this is no gate.
  uint32_t depth = 0, last = 0;

  bool isGate() const { return last > 0; }
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
  /// All that runs, in order. Of the Repeats themselves only counted ones, as
  /// gates.
  std::vector<Turn> turns() const;

private:
  void write(size_t &next, uint32_t begin, uint32_t end, uint32_t depth,
             Turns turns, std::vector<Turn> &to) const;
  void writeTurns(size_t &next, uint32_t depth, Turns turns,
                  std::vector<Turn> &to) const;

  std::vector<RepeatShape> all;
  std::vector<uint32_t> parents;   // by repeat: number of the one around, + 1
  std::vector<uint32_t> innermost; // by instruction: likewise; 0: none
  uint32_t size = 0;
};

/// Who goes through the turns of a list, once.
class Gates {
public:
  /// Reads the number of turns of a counted repeat: that of an instruction, in
  /// the turns around it.
  using ReadCount = absl::FunctionRef<absl::StatusOr<int32_t>(const Turn &)>;

  /// From the gate at `at`: the place to go on at, which no other turn comes
  /// before. dataLoss when the number is none of 0 to the most turns.
  absl::StatusOr<uint32_t> pass(const std::vector<Turn> &turns, uint32_t at,
                                ReadCount readCount);

private:
  std::array<uint32_t, maxRepeats> counts = {}; // by depth
};

inline bool isCounted(const Repeat &repeat) { return repeat.count() != noView; }

/// Of a list of a plan; of a range that leaves 32 bits the end is the largest
/// number.
std::vector<RepeatShape>
repeatsOf(const flatbuffers::Vector<flatbuffers::Offset<Instruction>> *list);

} // namespace meshwork::plan
