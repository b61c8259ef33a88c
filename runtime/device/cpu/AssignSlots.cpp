// AssignSlots: one thread, which sees each choice once. What it writes besides
// is a few numbers for each token and round.
#include <algorithm>

#include "absl/types/span.h"
#include "runtime/device/cpu/Operation.h"
#include "runtime/device/cpu/Rows.h"

namespace meshwork::runtime::cpu {
namespace {

struct Assignment {
  Numbers choices, slots, ranks, places, last;
  int64_t experts = 1, most = 1, k = 1, room = 1;

  /// The most choices of a token that a rank counts.
  int64_t ofToken() const { return std::min(k, experts); }

  int64_t countRounds() const { return places.count / ranks.count; }
  int64_t countRanks() const { return slots.tensor.shape[0] / countRounds(); }
  int64_t slotsOfRank() const { return slots.tensor.shape[1]; }
};

class AssignSlotsOperation final : public Operation {
public:
  explicit AssignSlotsOperation(Assignment all) : all(std::move(all)) {}

  uint64_t workspaceBytes() const override {
    Carver carver(nullptr);
    carve(carver);
    return carver.used();
  }

  void run(const StepState &) override {
    for (const Numbers *list : {&all.slots, &all.ranks, &all.places})
      std::fill_n(list->in(arena), list->count, -1);
    Carver carver(workspaceOf(0));
    Scratch scratch = carve(carver);
    std::fill_n(scratch.taken, all.countRanks(), Taken());
    round = 0;
    for (int64_t token = 0; token < all.choices.count / all.k; ++token)
      place(token, ranksOf(token, scratch.to), scratch.taken);
    *all.last.in(arena) = static_cast<int32_t>(round);
  }

private:
  /// Of a rank in this round.
  struct Taken {
    int64_t slots = 0, choices = 0;
  };
  /// Where a token goes.
  struct Target {
    int32_t rank;
    int64_t choices;
  };
  struct Scratch {
    Taken *taken; // by each rank
    Target *to;   // of one token
  };
  Scratch carve(Carver &carver) const {
    Taken *taken = carver.take<Taken>(all.countRanks());
    return {taken, carver.take<Target>(all.k)};
  }

  /// Ascending, each once.
  absl::Span<const Target> ranksOf(int64_t token, Target *to) const {
    const int32_t *choice = all.choices.in(arena) + token * all.k;
    Target *end = to;
    for (int64_t i = 0; i < all.k; ++i)
      if (int64_t rank = choice[i] / all.experts;
          choice[i] >= 0 && rank < all.countRanks())
        *end++ = {static_cast<int32_t>(rank), 1};
    std::sort(to, end,
              [](const Target &a, const Target &b) { return a.rank < b.rank; });
    return absl::MakeConstSpan(to, merged(to, end));
  }
  /// Equal ranks, which follow each other, as one; the new end.
  Target *merged(Target *to, const Target *end) const {
    Target *last = to;
    for (const Target *next = to; next != end; ++next)
      if (next == to || next->rank != last[-1].rank)
        *last++ = *next;
      else
        last[-1].choices = std::min(last[-1].choices + 1, all.ofToken());
    return last;
  }

  void place(int64_t token, absl::Span<const Target> to, Taken *taken) {
    int64_t ranks = all.countRanks(), slots = all.slotsOfRank();
    if (std::any_of(to.begin(), to.end(), [&](const Target &target) {
          const Taken &there = taken[target.rank];
          return there.slots == slots ||
                 there.choices + target.choices > all.most;
        })) {
      ++round;
      std::fill_n(taken, ranks, Taken());
    }
    int64_t at = token * all.room;
    for (auto [rank, choices] : to) {
      int64_t slot = taken[rank].slots++;
      taken[rank].choices += choices;
      all.slots.in(arena)[(round * ranks + rank) * slots + slot] =
          static_cast<int32_t>(token);
      all.ranks.in(arena)[at] = rank;
      all.places.in(arena)[round * all.ranks.count + at] =
          static_cast<int32_t>(rank * slots + slot);
      ++at;
    }
  }

  Assignment all;
  int64_t round = 0; // of this run
};

/// What must hold for each token to find a slot in some round.
absl::Status check(const Assignment &all) {
  auto bad = [](const char *what) { return absl::InvalidArgumentError(what); };
  if (all.experts < 1 || all.slots.tensor.rank() != 2 ||
      all.ranks.count != all.choices.count / all.k * all.room)
    return bad("expected slots of two dims, ranks of each token, and experts");
  if (all.places.count % all.ranks.count != 0 || all.countRounds() < 1 ||
      all.slots.tensor.shape[0] % all.countRounds() != 0 ||
      std::max(all.places.count, all.slots.count) > INT32_MAX)
    return bad("expected places and slots of the same rounds, fewer than 2^31");
  int64_t ofRound = std::min(all.slotsOfRank(), all.most / all.ofToken());
  if (all.room < std::min(all.k, all.countRanks()) ||
      all.countRounds() * ofRound < all.choices.count / all.k)
    return bad("there are too few slots for the tokens, or for their choices");
  return absl::OkStatus();
}
} // namespace

OperationOr make(const plan::AssignSlots &op, const ProgramOnRank &program) {
  Assignment all;
  for (auto [numbers, view, role] :
       {std::tuple(&all.choices, op.choices(), "choices"),
        {&all.slots, op.slots(), "slots"},
        {&all.ranks, op.ranks(), "ranks"},
        {&all.places, op.places(), "places"},
        {&all.last, op.last(), "last"}})
    MESHWORK_ASSIGN_OR_RETURN(*numbers, numbersOf(program, view, role));
  if (all.choices.tensor.rank() == 0 || all.ranks.tensor.rank() == 0)
    return absl::InvalidArgumentError("choices or ranks have no dims");
  all.experts = op.experts();
  all.most = op.most_choices();
  all.k = all.choices.tensor.shape.back();
  all.room = all.ranks.tensor.shape.back();
  MESHWORK_RETURN_IF_ERROR(expectCount(all.last.count, 1, "last"));
  MESHWORK_RETURN_IF_ERROR(check(all));
  return std::make_unique<AssignSlotsOperation>(std::move(all));
}

} // namespace meshwork::runtime::cpu
