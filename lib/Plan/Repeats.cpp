#include "lib/Plan/Repeats.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/StatusMacros.h"
#include <algorithm>

namespace meshwork::plan {
namespace {

std::string numbered(const RepeatShape &repeat) {
  return "the repeat of instructions " + std::to_string(repeat.begin) + " to " +
         std::to_string(repeat.end);
}

/// Against the repeats around it, the innermost last.
std::string problemWithin(const std::vector<RepeatShape> &open,
                          const RepeatShape &repeat, uint32_t size) {
  uint32_t end = open.empty() ? size : open.back().end;
  if (repeat.end <= repeat.begin || repeat.end > end)
    return numbered(repeat) + " is empty, or leaves what is around it, which " +
           "ends before " + std::to_string(end);
  if (repeat.times == 0)
    return numbered(repeat) + " runs 0 times, expected at least 1";
  if (open.size() == maxRepeats)
    return numbered(repeat) + " is inside " + std::to_string(maxRepeats) +
           " others, expected fewer";
  return "";
}

/// Once more around what ran `times` times; never more than counts.
uint64_t repeated(uint64_t times, uint32_t more) {
  return std::min(times * more, maxTurns + 1);
}
} // namespace

Repeats::Repeats(std::vector<RepeatShape> shapes, uint32_t size)
    : all(std::move(shapes)), size(size) {
  if (all.empty())
    return;
  innermost.assign(size, 0);
  uint32_t open = 0; // number of the innermost one, + 1
  size_t next = 0;
  for (uint32_t i = 0; i < size; ++i) {
    while (open > 0 && i >= all[open - 1].end)
      open = parents[open - 1];
    innermost[i] = open;
    if (next < all.size() && all[next].begin == i + 1) {
      parents.push_back(open);
      open = static_cast<uint32_t>(++next);
    }
  }
}

std::string Repeats::problem(const std::vector<RepeatShape> &shapes,
                             uint32_t size) {
  std::vector<RepeatShape> open;
  std::vector<uint64_t> times; // that the open ones run
  uint64_t turns = size;
  for (const RepeatShape &repeat : shapes) {
    // It stands in front of its first instruction.
    while (!open.empty() && repeat.begin > open.back().end) {
      open.pop_back();
      times.pop_back();
    }
    std::string problem = problemWithin(open, repeat, size);
    if (!problem.empty())
      return problem;
    open.push_back(repeat);
    times.push_back(repeated(times.empty() ? 1 : times.back(), repeat.times));
    // Counts the instructions of inner repeats more than once. Gates are one
    // more than turns, and then one for each repeat around.
    turns += times.back() * (repeat.end - repeat.begin + 2 * repeat.isCounted);
    if (turns > maxTurns)
      return "its repeats come to more than " + std::to_string(maxTurns) +
             " instructions";
  }
  return "";
}

std::vector<RepeatShape> Repeats::around(uint32_t instruction) const {
  std::vector<RepeatShape> found;
  if (all.empty())
    return found;
  for (uint32_t at = innermost[instruction]; at > 0; at = parents[at - 1])
    found.insert(found.begin(), all[at - 1]);
  return found;
}

uint64_t Repeats::timesOf(uint32_t instruction) const {
  uint64_t times = 1;
  for (const RepeatShape &repeat : around(instruction))
    times = repeated(times, repeat.times);
  return times;
}

std::vector<Turn> Repeats::turns() const {
  std::vector<Turn> turns;
  size_t next = 0;
  write(next, 0, size, 0, {}, turns);
  return turns;
}

void Repeats::write(size_t &next, uint32_t begin, uint32_t end, uint32_t depth,
                    Turns turns, std::vector<Turn> &to) const {
  for (uint32_t i = begin; i < end; ++i) {
    if (next == all.size() || all[next].begin != i + 1) {
      to.push_back({i, turns});
      continue;
    }
    i = all[next].end - 1;
    writeTurns(next, depth, turns, to);
  }
}

void Repeats::writeTurns(size_t &next, uint32_t depth, Turns turns,
                         std::vector<Turn> &to) const {
  const RepeatShape &repeat = all[next];
  size_t inner = ++next;
  std::vector<size_t> gates;
  auto addGate = [&](uint32_t t) {
    turns[depth] = t;
    gates.push_back(to.size());
    to.push_back({repeat.begin - 1, turns, depth});
  };
  for (uint32_t t = 0; t < repeat.times; ++t) {
    turns[depth] = t;
    if (repeat.isCounted)
      addGate(t);
    next = inner;
    write(next, repeat.begin, repeat.end, depth + 1, turns, to);
  }
  if (repeat.isCounted)
    addGate(repeat.times);
  for (size_t gate : gates)
    to[gate].last = static_cast<uint32_t>(gates.back());
}

absl::StatusOr<uint32_t> Gates::pass(const std::vector<Turn> &turns,
                                     uint32_t at, ReadCount readCount) {
  const Turn &gate = turns[at];
  uint32_t turn = gate.turns[gate.depth],
           most = turns[gate.last].turns[gate.depth];
  if (turn == 0) {
    absl::StatusOr<int32_t> count = readCount(gate);
    MESHWORK_RETURN_IF_ERROR(count.status());
    if (*count < 0 || static_cast<uint32_t>(*count) > most)
      return bad("it is to run ", *count, " times, expected 0 to ", most);
    counts[gate.depth] = static_cast<uint32_t>(*count);
  }
  return (turn < counts[gate.depth] ? at : gate.last) + 1;
}

std::vector<RepeatShape>
repeatsOf(const flatbuffers::Vector<flatbuffers::Offset<Instruction>> *list) {
  std::vector<RepeatShape> repeats;
  for (uint32_t i = 0; list && i < list->size(); ++i)
    if (const Repeat *op = list->Get(i)->op_as_Repeat()) {
      uint64_t end = uint64_t{i} + 1 + op->instructions();
      repeats.push_back(
          {i + 1, static_cast<uint32_t>(std::min<uint64_t>(end, UINT32_MAX)),
           op->times(), isCounted(*op)});
    }
  return repeats;
}

} // namespace meshwork::plan
