#include "lib/Schedules/Tastes.h"

#include <algorithm>
#include <cmath>

namespace meshwork::schedules {
namespace {

double meanOf(const std::vector<double> &times) {
  double sum = 0;
  for (double time : times)
    sum += time;
  return sum / static_cast<double>(times.size());
}

} // namespace

Tastes::Tastes(const Work &work, double memory, double stash)
    : ranks(static_cast<int32_t>(work.stagesOf.size())),
      chunks(static_cast<int32_t>(work.stagesOf[0].size())),
      most(chunks * work.microbatches), forward(meanOf(work.costs.forward)),
      inputGrad(meanOf(work.costs.inputGrad)),
      weightGrad(meanOf(work.costs.weightGrad)),
      transfer(meanOf(work.costs.transfer)) {
  taste.memory = std::min(memory, static_cast<double>(most));
  taste.stash = stash;
}

int32_t Tastes::below(int32_t limit) {
  return static_cast<int32_t>(engine() % static_cast<uint32_t>(limit));
}

/// In parts of a W, so that a W fits or does not.
double Tastes::patience() {
  constexpr double parts[] = {0, 0.2, 0.5, 0.7, 0.9, 2};
  return parts[below(6)] * weightGrad;
}

/// No limit; as much as 1F1B; what fills the time until the first I is back; or
/// about what the memory holds.
int32_t Tastes::aliveOf(int32_t rank, int32_t choice) const {
  int32_t left = ranks - rank;
  if (choice == 0)
    return most;
  if (choice == 1)
    return chunks * left;
  double back =
      (left - 1) * (inputGrad + 2 * transfer) / std::max(forward, 1e-300);
  if (choice < 4)
    return chunks * left +
           static_cast<int32_t>(std::min<double>(most, chunks * back)) +
           choice - 2;
  return static_cast<int32_t>(taste.memory) + 4 * (choice - 5);
}

std::vector<Taste> Tastes::any() {
  // A rank begins and ends later than the one before it, and gets its last I
  // earlier. As many W fill that time, and should be due when the I end.
  double slope = chunks * (forward + inputGrad + 2 * transfer) /
                 std::max(weightGrad, 1e-300) * below(5) / 4;
  int32_t offset = below(2) == 0 ? below(5) - 2 : most, alive = below(6);
  taste.gradPatience = patience();
  taste.forwardPatience = patience();
  taste.earlyFirst = below(2) == 0;
  std::vector<Taste> tastes;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    taste.alive =
        std::clamp(aliveOf(rank, alive), chunks, std::max(chunks, most));
    double lag = offset + rank * slope + 0.5;
    taste.lag = static_cast<int32_t>(std::clamp<double>(lag, 0, most));
    tastes.push_back(taste);
  }
  return tastes;
}

void Tastes::change(Taste &taste, int32_t what) {
  if (what == 0)
    taste.gradPatience = patience();
  else if (what == 1)
    taste.forwardPatience = patience();
  else if (what == 2)
    taste.lag = std::clamp(taste.lag + below(7) - 3, 0, most);
  else
    taste.alive = std::max(chunks, taste.alive + below(7) - 3);
}

std::vector<Taste> Tastes::changed(std::vector<Taste> tastes) {
  int32_t first = below(ranks), what = below(4),
          last =
              below(3) == 0 ? ranks - 1 : std::min(ranks - 1, first + below(2));
  Taste model = tastes[static_cast<size_t>(first)];
  change(model, what);
  for (int32_t rank = first; rank <= last; ++rank) {
    Taste &one = tastes[static_cast<size_t>(rank)];
    if (what == 0)
      one.gradPatience = model.gradPatience;
    else if (what == 1)
      one.forwardPatience = model.forwardPatience;
    else
      change(one, what);
  }
  return tastes;
}

} // namespace meshwork::schedules
