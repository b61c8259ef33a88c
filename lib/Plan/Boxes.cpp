// Ranks that hold the same elements lay what they hold end to end, as a line of
// bytes, and each writes an even stretch of it. So nearly all boxes stay whole,
// and only those at the ends of a stretch are cut.
#include "lib/Plan/Boxes.h"
#include "lib/Plan/Programs.h"
#include "lib/Plan/Replicas.h"
#include "lib/Plan/Views.h"
#include "meshwork/Plan/Frame.h"
#include "meshwork/Plan/Types.h"
#include <algorithm>
#include <map>

namespace meshwork::plan {
namespace {
/// Rows in a box that make it even enough to cut along them.
constexpr int64_t enoughRows = 64;

/// The state of the same meaning that another program has for the tensor.
const Sharded *sameState(const Parameter &parameter, const SavedState &saved) {
  for (const State *state : orEmpty(parameter.states()))
    if (state->role() == saved.role && (saved.role != StateRole::optimizer ||
                                        state->name()->str() == saved.name))
      return state->part();
  return nullptr;
}

/// What ranks with the same elements hold, end to end, in bytes.
struct Line {
  Replica own;
  uint64_t bytes = 0;

  /// Where the stretch of replica `index` begins.
  uint64_t begin(uint64_t index) const {
    return bytes / own.count * index + bytes % own.count * index / own.count;
  }
};

struct Piece {
  OwnBox box;
  Line *line;
  uint64_t at, bytes; // of the line
};

size_t cutDim(const std::vector<int64_t> &extent) {
  auto enough = std::find_if(extent.begin(), extent.end(),
                             [](int64_t n) { return n >= enoughRows; });
  if (enough == extent.end())
    enough = std::max_element(extent.begin(), extent.end());
  return static_cast<size_t>(enough - extent.begin());
}

/// Leaves of the piece what lies in the own stretch; false when it is nothing.
/// Neighbours round the same place to the same row.
bool cut(Piece &piece) {
  const Line &line = *piece.line;
  uint64_t first = line.begin(line.own.index),
           last = line.begin(line.own.index + 1);
  Block &block = piece.box.block;
  if (block.extent.empty()) // A scalar.
    return piece.at >= first && piece.at < last;
  size_t dim = cutDim(block.extent);
  int64_t rows = block.extent[dim];
  uint64_t rowBytes = piece.bytes / static_cast<uint64_t>(rows);
  auto rowAt = [&](uint64_t place) {
    if (place <= piece.at)
      return int64_t{0};
    uint64_t row = (place - piece.at + rowBytes / 2) / rowBytes;
    return static_cast<int64_t>(std::min<uint64_t>(row, rows));
  };
  int64_t from = rowAt(first);
  int64_t to = rowAt(last);
  block.begin[dim] += from;
  block.offset[dim] += from;
  block.extent[dim] = to - from;
  return from < to;
}

/// Finds what one rank holds, with the lines that it lies on.
class Holding {
public:
  Holding(const Plan &plan, uint32_t rank)
      : plan(plan), rank(rank), programs(parametersByName(plan)),
        program(programOf(plan, rank)) {}

  void add(const SavedTensor &tensor, uint32_t number) {
    for (uint32_t i = 0; i < tensor.states.size(); ++i)
      if (const Sharded *part = own(tensor, tensor.states[i]))
        addState(tensor, number, i, *part);
  }
  std::vector<Piece> pieces;

private:
  const Sharded *partIn(uint32_t of, const SavedTensor &tensor,
                        const SavedState &state) const {
    auto found = programs[of].find(tensor.parameter->name()->string_view());
    const Sharded *part = found == programs[of].end()
                              ? nullptr
                              : sameState(*found->second, state);
    return part && sameSplit(*part, *state.part) ? part : nullptr;
  }
  const Sharded *own(const SavedTensor &tensor, const SavedState &state) const {
    return partIn(program, tensor, state);
  }

  Line &lineOf(const SavedTensor &tensor, const SavedState &state) {
    std::vector<bool> holds;
    for (uint32_t i = 0; i < programs.size(); ++i)
      holds.push_back(partIn(i, tensor, state) != nullptr);
    std::vector<uint32_t> axes = axesOf(*state.part);
    auto [line, isNew] = lines.try_emplace({axes, holds});
    if (isNew)
      line->second.own = replicaOf(plan, rank, axes, holds);
    return line->second;
  }

  void addState(const SavedTensor &tensor, uint32_t number, uint32_t state,
                const Sharded &part) {
    Line &line = lineOf(tensor, tensor.states[state]);
    Part held =
        partOf(plan, tensor.parameter->shape(), part,
               [&](uint32_t axis) { return coordinateOf(plan, rank, axis); });
    for (Block &block : held.blocks()) {
      OwnBox box{number, state, part.view(), std::move(block), held.shape};
      uint64_t bytes =
          static_cast<uint64_t>(elementsOf(box.block)) *
          static_cast<uint64_t>(bytesOf(tensor.states[state].dtype));
      pieces.push_back({std::move(box), &line, line.bytes, bytes});
      line.bytes += bytes;
    }
  }

  const Plan &plan;
  uint32_t rank;
  std::vector<ParametersByName> programs;
  uint32_t program;
  // By the axes that split, and the programs that hold.
  std::map<std::pair<std::vector<uint32_t>, std::vector<bool>>, Line> lines;
};
} // namespace

std::vector<OwnBox> ownBoxes(const Plan &plan,
                             const std::vector<SavedTensor> &tensors,
                             uint32_t rank) {
  Holding holding(plan, rank);
  for (uint32_t i = 0; i < tensors.size(); ++i)
    holding.add(tensors[i], i);
  std::vector<OwnBox> boxes;
  for (Piece &piece : holding.pieces)
    if (cut(piece))
      boxes.push_back(std::move(piece.box));
  return boxes;
}

uint64_t savedBytes(const Plan &plan, uint32_t rank) {
  std::vector<SavedTensor> tensors = savedTensors(plan);
  uint64_t bytes = 0;
  for (const OwnBox &box : ownBoxes(plan, tensors, rank))
    bytes += static_cast<uint64_t>(elementsOf(box.block)) *
             static_cast<uint64_t>(
                 bytesOf(tensors[box.tensor].states[box.state].dtype));
  return bytes;
}

/// The first parts of a dim are full, so one rank stands for all of a program.
uint64_t mostSavedBytes(const Plan &plan) {
  std::vector<bool> seen(plan.programs()->size());
  uint64_t most = 0, choices = 1;
  for (uint32_t axis : orEmpty(plan.program_axes()))
    choices *= plan.mesh()->Get(axis)->size();
  for (uint64_t choice = 0; choice < choices; ++choice) {
    uint32_t program = programNumber(plan, choice);
    if (!seen[program])
      most = std::max(most, savedBytes(plan, firstRankOf(plan, choice)));
    seen[program] = true;
  }
  return most;
}

} // namespace meshwork::plan
