#include "runtime/core/RestoreStates.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/core/Boxes.h"
#include "runtime/core/Checked.h"
#include "runtime/core/IoStatus.h"
#include "runtime/core/PlaceBlocks.h"
#include <algorithm>
#include <mutex>

namespace meshwork::runtime {
namespace {
/// Read at a time by one thread: about as much as is hashed at a time.
constexpr int64_t pieceElements = 1 << 20;

struct StoredName {
  std::string tensor, state;
};

absl::Status fillPiece(const Checkpoint &checkpoint, const StoredName &name,
                       const Strided &to, const Block &piece) {
  std::vector<float> values(static_cast<size_t>(elementsOf(piece)));
  MESHWORK_RETURN_IF_ERROR(checkpoint.read(name.tensor, name.state, piece.begin,
                                           piece.extent,
                                           absl::MakeSpan(values)));
  Box box(piece.extent, rowMajor(piece.extent), to.strides, 0,
          offsetOf(to.strides, piece.offset));
  box.forEachRun(0, box.elements(), [&](const Run &run) {
    storeRun(values.data() + run.src, run.srcStride, to, run);
  });
  return absl::OkStatus();
}

absl::Status fillBlock(Rank &rank, const Checkpoint &checkpoint,
                       const StoredName &name, const Strided &to,
                       const Block &block) {
  std::vector<Block> pieces = piecesOf(block, pieceElements);
  std::mutex mutex;
  absl::Status status; // the first of them
  rank.team().parallelFor(static_cast<int64_t>(pieces.size()),
                          [&](int64_t begin, int64_t end, int) {
                            for (int64_t i = begin; i < end; ++i) {
                              absl::Status one =
                                  fillPiece(checkpoint, name, to,
                                            pieces[static_cast<size_t>(i)]);
                              std::lock_guard<std::mutex> lock(mutex);
                              status.Update(one);
                              if (!status.ok())
                                return;
                            }
                          });
  return fromIo(status);
}

bool hasState(const Checkpoint &checkpoint, const std::string &tensor,
              std::string_view state) {
  const StoredTensor *found = checkpoint.find(tensor);
  return found &&
         std::any_of(found->states.begin(), found->states.end(),
                     [&](const StoredState &one) { return one.name == state; });
}

/// Whether the plan's own checkpoints have bf16 weights.
bool roundsAtRandom(const plan::Plan &plan) {
  for (const SavedTensor &tensor : savedTensors(plan))
    for (const SavedState &state : tensor.states)
      if (state.name == roundedWeightState)
        return true;
  return false;
}

absl::Status restore(Rank &rank, const Checkpoint &checkpoint,
                     const plan::Parameter &parameter, const plan::State &state,
                     bool readsRounded) {
  StoredName name{parameter.name()->str(), weightState};
  if (state.role() == plan::StateRole::optimizer)
    name.state = state.name()->str();
  else if (readsRounded && state.role() == plan::StateRole::weight &&
           hasState(checkpoint, name.tensor, roundedWeightState))
    name.state = roundedWeightState;
  return placeBlocks(rank, parameter, *state.part(),
                     [&](const Strided &to, const Block &block) {
                       return fillBlock(rank, checkpoint, name, to, block);
                     });
}
} // namespace

absl::Status restoreStates(Rank &rank, const plan::Plan &plan,
                           const Checkpoint &checkpoint) {
  bool readsRounded = roundsAtRandom(plan);
  for (const plan::Parameter *parameter :
       orEmpty(rank.program().parameters())) {
    uint32_t weight = weightView(*parameter);
    for (const plan::State *state : orEmpty(parameter->states())) {
      bool isKept = state->role() != plan::StateRole::gradient;
      // In f32 training it may be the weight itself.
      bool isTwice = state->role() == plan::StateRole::master &&
                     state->part()->view() == weight;
      if (isKept && !isTwice)
        MESHWORK_RETURN_IF_ERROR(
            restore(rank, checkpoint, *parameter, *state, readsRounded));
    }
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
