#include "runtime/save/RestoreStates.h"
#include "lib/Plan/Boxes.h"
#include "lib/Plan/Checked.h"
#include "meshwork/Plan/Frame.h"
#include "meshwork/Plan/StateNames.h"
#include "runtime/base/StartThread.h"
#include "runtime/io/IoStatus.h"
#include "runtime/save/PlaceBlocks.h"
#include <algorithm>
#include <thread>

namespace meshwork::runtime {
namespace {
/// One thread more than the rank computes with: while it waits for the disk the
/// others hash and place.
void onThreadsOf(ThreadTeam &team, absl::FunctionRef<void()> work) {
  std::thread another;
  absl::Status started = startThread(another, [&] { work(); });
  team.parallelFor(team.size(), [&](int64_t, int64_t, int) { work(); });
  if (started.ok())
    another.join();
}

/// Boxes that a rank wants, and where their elements go.
class Wanted {
public:
  Wanted(Rank &rank, const Checkpoint &checkpoint)
      : rank(rank), checkpoint(checkpoint) {}

  void add(std::string tensor, std::string state, const Strided &to,
           const plan::Block &block) {
    Box box(block.extent, rowMajor(block.extent), to.strides, 0,
            offsetOf(to.strides, block.offset));
    boxes.push_back({std::move(tensor), std::move(state), block.begin,
                     block.extent,
                     [box, to](uint64_t first, absl::Span<const float> values) {
                       place(box, to, static_cast<int64_t>(first), values);
                     }});
  }

  absl::Status read() {
    absl::Status status =
        checkpoint.readAll(boxes, [&](absl::FunctionRef<void()> work) {
          onThreadsOf(rank.team(), work);
        });
    boxes.clear();
    return fromIo(status);
  }

private:
  static void place(const Box &box, const Strided &to, int64_t first,
                    absl::Span<const float> values) {
    int64_t end = first + static_cast<int64_t>(values.size());
    box.forEachRun(first, end, [&](const Run &run) {
      storeRun(values.data() + (run.src - first), run.srcStride, to, run);
    });
  }

  Rank &rank;
  const Checkpoint &checkpoint;
  std::vector<WantedBox> boxes;
};

bool hasState(const Checkpoint &checkpoint, const std::string &tensor,
              std::string_view state) {
  const StoredTensor *found = checkpoint.find(tensor);
  return found &&
         std::any_of(found->states.begin(), found->states.end(),
                     [&](const StoredState &one) { return one.name == state; });
}

/// Whether the plan's own checkpoints have bf16 weights.
bool roundsAtRandom(const plan::Plan &plan) {
  for (const plan::SavedTensor &tensor : plan::savedTensors(plan))
    for (const plan::SavedState &state : tensor.states)
      if (state.name == plan::roundedWeightState)
        return true;
  return false;
}

std::string storedName(const Checkpoint &checkpoint,
                       const plan::Parameter &parameter,
                       const plan::State &state, bool readsRounded) {
  if (state.role() == plan::StateRole::optimizer)
    return state.name()->str();
  bool isRounded =
      readsRounded && state.role() == plan::StateRole::weight &&
      hasState(checkpoint, parameter.name()->str(), plan::roundedWeightState);
  return isRounded ? plan::roundedWeightState : plan::weightState;
}

/// Gradients are not kept, and in f32 training a master may be the weight
/// itself.
bool isRestored(const plan::Parameter &parameter, const plan::State &state) {
  bool isTwice = state.role() == plan::StateRole::master &&
                 state.part()->view() == plan::weightView(parameter);
  return state.role() != plan::StateRole::gradient && !isTwice;
}

/// The tensors that have numbers may differ from mesh to mesh, as the products
/// in FP8 do. Numbers that a checkpoint lacks begin as in a first step.
bool beginsAnew(const Checkpoint &checkpoint, const plan::Parameter &parameter,
                const plan::State &state) {
  return state.part()->is_number() &&
         !hasState(checkpoint, parameter.name()->str(),
                   state.name()->string_view());
}
} // namespace

/// All states at once where they lie in the host's memory, so that files are
/// read from front to back; else one after the other, by way of a copy each.
absl::Status restoreStates(Rank &rank, const plan::Plan &plan,
                           const Checkpoint &checkpoint) {
  bool readsRounded = roundsAtRandom(plan);
  Wanted wanted(rank, checkpoint);
  for (const plan::Parameter *parameter :
       plan::orEmpty(rank.program().parameters())) {
    for (const plan::State *state : plan::orEmpty(parameter->states())) {
      if (!isRestored(*parameter, *state))
        continue;
      if (beginsAnew(checkpoint, *parameter, *state)) {
        MESHWORK_RETURN_IF_ERROR(placeInitial(rank, *parameter, *state));
        continue;
      }
      MESHWORK_RETURN_IF_ERROR(placeBlocks(
          rank, *parameter, *state->part(),
          [&](const Strided &to, const plan::Block &block) {
            wanted.add(parameter->name()->str(),
                       storedName(checkpoint, *parameter, *state, readsRounded),
                       to, block);
            return rank.isOnHost() ? absl::OkStatus() : wanted.read();
          }));
    }
  }
  return wanted.read();
}

} // namespace meshwork::runtime
