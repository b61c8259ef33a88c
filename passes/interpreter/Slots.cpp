// Which tokens go to which ranks in an exchange: the op and the instruction.
#include <map>

#include "passes/interpreter/Evaluate.h"
#include "passes/interpreter/Routing.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {
namespace {

/// The ranks that have choices of a token, and how many count.
std::map<int64_t, int64_t> ranksOf(const Tensor &choices, int64_t token,
                                   int64_t experts, int64_t ranks) {
  int64_t k = choices.getShape().back();
  std::map<int64_t, int64_t> found;
  for (int64_t i = token * k; i < (token + 1) * k; ++i)
    if (choices[i] >= 0 && choices[i] < static_cast<double>(experts * ranks)) {
      int64_t &count = found[static_cast<int64_t>(choices[i]) / experts];
      count = std::min(count + 1, std::min(k, experts));
    }
  return found;
}

/// What a rank has taken in a round.
struct Taken {
  int64_t tokens = 0, choices = 0;
};
} // namespace

Slots assignedSlots(const Tensor &choices, int64_t experts, int64_t most,
                    Slots made) {
  for (Tensor *list : {&made.slots, &made.ranks, &made.places})
    *list = Tensor(list->getShape().vec(), -1);
  int64_t tokens = choices.size() / choices.getShape().back(),
          room = made.ranks.getShape().back(),
          rounds = made.places.size() / made.ranks.size(),
          ranks = made.slots.getDimSize(0) / rounds,
          slots = made.slots.getDimSize(1), round = 0;
  std::vector<Taken> taken(static_cast<size_t>(ranks));
  made.last[0] = 0;
  for (int64_t token = 0; token < tokens; ++token) {
    auto to = ranksOf(choices, token, experts, ranks);
    if (llvm::any_of(to, [&](const auto &rank) {
          const Taken &there = taken[rank.first];
          return there.tokens == slots || there.choices + rank.second > most;
        })) {
      ++round;
      taken.assign(taken.size(), {});
    }
    int64_t at = token * room;
    for (auto [rank, count] : to) {
      int64_t slot = taken[rank].tokens++;
      taken[rank].choices += count;
      made.slots[(round * ranks + rank) * slots + slot] =
          static_cast<double>(token);
      made.ranks[at] = static_cast<double>(rank);
      made.places[round * made.ranks.size() + at] =
          static_cast<double>(rank * slots + slot);
      ++at;
      made.last[0] = static_cast<double>(round);
    }
  }
  return made;
}

static Results evaluate(AssignSlotsOp op, ArrayRef<Tensor> x) {
  Slots slots = assignedSlots(x[0], static_cast<int64_t>(op.getExperts()),
                              static_cast<int64_t>(op.getMostChoices()),
                              {Tensor::zeros(op.getSlots().getType()),
                               Tensor::zeros(op.getRanks().getType()),
                               Tensor::zeros(op.getPlaces().getType()),
                               Tensor::zeros(op.getLast().getType())});
  return Tensors{slots.slots, slots.ranks, slots.places, slots.last};
}

static void run(const plan::AssignSlots &op, Views &on) {
  Slots slots =
      assignedSlots(on.read(op.choices()), op.experts(), op.most_choices(),
                    {on.zeros(op.slots()), on.zeros(op.ranks()),
                     on.zeros(op.places()), on.zeros(op.last())});
  on.write(op.slots(), slots.slots);
  on.write(op.ranks(), slots.ranks);
  on.write(op.places(), slots.places);
  on.write(op.last(), slots.last);
}

void addSlots(Evaluators &to) {
  to.add<AssignSlotsOp>(evaluate);
  to.add<plan::AssignSlots>(run);
}

} // namespace meshwork::interpreter
