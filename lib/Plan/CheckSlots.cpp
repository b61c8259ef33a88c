// What an exchange of rows asks of its views: slots on ranks, in rounds.
#include "lib/Plan/CheckOperandsParts.h"

namespace meshwork::plan {
namespace {

/// [tokens..., any].
bool sharesTokens(const ViewInfo &a, const ViewInfo &b) {
  return a.shape.size() == b.shape.size() &&
         std::equal(a.shape.begin(), a.shape.end() - 1, b.shape.begin());
}

/// Whether all tokens find slots, and all of a token's ranks a place.
absl::Status checkRounds(const AssignSlots &op, const ViewInfo &choices,
                         const ViewInfo &slots, const ViewInfo &ranks,
                         const ViewInfo &places) {
  int64_t rounds = places.elements / ranks.elements, rows = slots.shape[0];
  if (rounds < 1 || places.elements != rounds * ranks.elements ||
      rows % rounds != 0 ||
      std::max(places.elements, slots.elements) > INT32_MAX)
    return misfit("C2", "places are ", describe(places), " and slots ",
                  describe(slots), ", expected a multiple of ranks ",
                  describe(ranks),
                  ", slots of as many rounds, and fewer than 2^31 of each");
  int64_t k = choices.shape.back(), tokens = choices.elements / k,
          most = std::min(k, rows / rounds),
          ofToken = std::min(k, op.experts()),
          ofRound = std::min(slots.shape[1], op.most_choices() / ofToken);
  if (rounds * ofRound >= tokens && ranks.shape.back() >= most)
    return absl::OkStatus();
  return misfit("C3", "has ", rounds, " rounds of ", slots.shape[1],
                " slots and ", op.most_choices(), " choices for ", tokens,
                " tokens with ", ofToken, " on a rank, and places for ",
                ranks.shape.back(), " ranks of a token, expected ", most);
}

} // namespace

absl::Status checkOp(const Operands &c, const AssignSlots &op) {
  const ViewInfo &choices = c.views[op.choices()], &slots = c.views[op.slots()],
                 &ranks = c.views[op.ranks()], &places = c.views[op.places()];
  MESHWORK_RETURN_IF_ERROR(ruled("C1", expectChoices(choices, choices)));
  MESHWORK_RETURN_IF_ERROR(ruled("C1", expectNumbers(ranks, "ranks")));
  if (!sharesTokens(ranks, choices) || op.experts() < 1)
    return misfit("C1", "ranks are ", describe(ranks), ", a rank has ",
                  op.experts(), " experts; expected the tokens of choices ",
                  describe(choices), ", and 1 or more");
  MESHWORK_RETURN_IF_ERROR(ruled("C2", expectNumbers(places, "places")));
  MESHWORK_RETURN_IF_ERROR(ruled("C2", expectNumbers(slots, "slots")));
  MESHWORK_RETURN_IF_ERROR(ruled("C2", expectDims(slots, "slots", 2)));
  MESHWORK_RETURN_IF_ERROR(checkRounds(op, choices, slots, ranks, places));
  MESHWORK_RETURN_IF_ERROR(
      ruled("C4", expectNumber(c.views[op.last()], "last", DType::i32)));
  return checkApart(c, "C5", {{"choices", op.choices()}},
                    {{"slots", op.slots()},
                     {"ranks", op.ranks()},
                     {"places", op.places()},
                     {"last", op.last()}});
}

} // namespace meshwork::plan
