#include "runtime/train/BadStep.h"
#include "lib/Plan/Checked.h"
#include "runtime/train/Replay.h"
#include <cmath>

namespace meshwork::runtime {
namespace {

/// The first in time of what any rank has found.
absl::StatusOr<std::optional<Finding>>
firstOf(Transport &transport, uint32_t rank,
        const std::optional<Finding> &mine) {
  absl::StatusOr<std::vector<std::string>> texts = transport.exchange(
      rank, mine ? mine->encode() : "", "the search for a bad value");
  MESHWORK_RETURN_IF_ERROR(texts.status());
  std::optional<Finding> first;
  for (const std::string &text : *texts) {
    std::optional<Finding> finding = Finding::decode(text);
    if (finding && (!first || finding->key() < first->key()))
      first = finding;
  }
  return first;
}

std::string whatIsBad(uint64_t step, const Rank::Look &look) {
  if (!std::isfinite(look.loss))
    return absl::StrCat("the loss of step ", step, " is ", look.loss);
  return absl::StrCat("the gradient norm of step ", step, " is ",
                      *look.gradNorm, ", its loss is ", look.loss);
}
} // namespace

absl::Status explainBadStep(Rank &rank, Transport &transport, uint64_t step,
                            double learningRate, const Rank::Look &look,
                            const char *consequence) {
  std::optional<Finding> gradient, first;
  MESHWORK_ASSIGN_OR_RETURN(
      gradient, firstOf(transport, rank.rank(), scanGradients(rank)));
  std::optional<Finding> mine = scanParameters(rank);
  NonFiniteScan scan(rank);
  // All ranks repeat the step together, since it communicates.
  MESHWORK_RETURN_IF_ERROR(
      rank.runToLook(step, learningRate, mine ? nullptr : &scan));
  MESHWORK_RETURN_IF_ERROR(rank.look().status());
  MESHWORK_ASSIGN_OR_RETURN(
      first, firstOf(transport, rank.rank(), mine ? mine : scan.first));
  bool ofNorm = std::isfinite(look.loss);
  return plan::bad(
      whatIsBad(step, look), "; ", consequence, ". ",
      !ofNorm    ? ""
      : gradient ? gradient->text + "; "
                 : "every gradient is finite, but not the sum of their "
                   "squares; ",
      first ? first->text
            : std::string("repeated, every instruction's output was finite"));
}

} // namespace meshwork::runtime
