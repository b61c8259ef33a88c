// Inputs and results: what the runtime itself writes and reads.
#include "lib/Plan/PlanCheckInternal.h"
#include "lib/Plan/Shards.h"
#include <set>

namespace meshwork::plan {
namespace {

/// The runtime writes and reads it between lists, on the device.
absl::Status expectPersistent(const ProgramCheck &check, const ViewInfo &view,
                              const char *role) {
  const Buffer &buffer = check.bufferOf(view);
  if (buffer.space() != Space::device)
    return bad(role, ": buffer ", quote(buffer.name()),
               " lies in the host's memory, expected the device's");
  return buffer.persistent()
             ? absl::OkStatus()
             : bad(role, ": buffer ", quote(buffer.name()),
                   " does not persist, expected one that lives to the end");
}

/// Elements of a rank's part.
int64_t storedSize(const ProgramCheck &check, const Input &input,
                   int64_t size) {
  return layout::storedSize(
      size, cutsOf(check.plan, input, [](uint32_t) { return 0u; }));
}

/// Of a rank's part of a dim: ranks past the end begin the furthest out.
absl::Status checkFurthest(const ProgramCheck &check, const Input &input,
                           const char *name) {
  uint64_t ranks = groupSize(check.plan, input.axes());
  if (input.hop() >= ranks)
    return bad(name, " has the hop ", input.hop(), ", expected less than the ",
               ranks, " ranks");
  auto last = [&](uint32_t axis) {
    return check.plan.mesh()->Get(axis)->size() - 1;
  };
  int64_t begin =
      layout::ranges(input.size(), cutsOf(check.plan, input, last))[0].begin;
  return begin <= INT32_MAX
             ? absl::OkStatus()
             : bad(name, " reaches ", begin, ", expected at most 2^31 - 1");
}

/// What of its form the plan's sizes say.
absl::Status checkSizes(const ProgramCheck &check, const Input &input,
                        const ViewInfo &view, const char *name) {
  if (isOfTokens(input.kind()))
    return expectShape(view, name,
                       {check.plan.micro_batch(),
                        storedSize(check, input, check.plan.sequence())});
  switch (input.kind()) {
  case InputKind::target_counts:
    return expectShape(view, name, {check.plan.micro_batch()});
  case InputKind::positions:
    MESHWORK_RETURN_IF_ERROR(checkFurthest(check, input, name));
    return expectShape(view, name, {storedSize(check, input, input.size())});
  case InputKind::coordinate:
  case InputKind::extent:
    return checkFurthest(check, input, name);
  default:
    return absl::OkStatus();
  }
}

/// There may be several of a kind for which `isOne` is not set.
absl::Status noteKind(int kind, bool isOne, const char *name, uint32_t &seen) {
  if (isOne && (seen >> kind & 1))
    return bad(name, " is there twice");
  seen |= 1u << kind;
  return absl::OkStatus();
}

absl::Status checkInput(const ProgramCheck &check, const Input &input,
                        uint32_t &seen) {
  using Kind = InputKind;
  Kind kind = input.kind();
  if (kind > Kind::MAX)
    return bad("unknown kind ", static_cast<int>(kind));
  const char *name = EnumNameInputKind(kind);
  bool isOne = kind != Kind::bias_correction && kind != Kind::coordinate &&
               kind != Kind::extent && kind != Kind::positions;
  MESHWORK_RETURN_IF_ERROR(noteKind(static_cast<int>(kind), isOne, name, seen));
  auto view = findView(check, input.view(), name);
  MESHWORK_RETURN_IF_ERROR(view.status());
  if (absl::Status status =
          checkSplit(check.plan, input.axes(), input.layouts());
      !status.ok())
    return bad(name, ": ", status.message());
  MESHWORK_RETURN_IF_ERROR(checkInput(input, **view));
  MESHWORK_RETURN_IF_ERROR(checkSizes(check, input, **view, name));
  return expectPersistent(check, **view, name);
}

absl::Status checkResult(const ProgramCheck &check, const Result &result,
                         uint32_t &seen, std::set<std::string> &metrics) {
  if (result.kind() > ResultKind::MAX)
    return bad("unknown kind ", static_cast<int>(result.kind()));
  const char *name = EnumNameResultKind(result.kind());
  bool isMetric = result.kind() == ResultKind::metric;
  MESHWORK_RETURN_IF_ERROR(
      noteKind(static_cast<int>(result.kind()), !isMetric, name, seen));
  if (result.name() && !metrics.insert(result.name()->str()).second)
    return bad("metric ", quote(result.name()), " is there twice");
  auto view = findView(check, result.view(), name);
  MESHWORK_RETURN_IF_ERROR(view.status());
  MESHWORK_RETURN_IF_ERROR(checkResult(result, **view));
  return expectPersistent(check, **view, name);
}
} // namespace

absl::Status checkState(const ProgramCheck &check) {
  uint32_t seen = 0;
  for (const Input *input : orEmpty(check.program.inputs()))
    if (absl::Status status = checkInput(check, *input, seen); !status.ok())
      return bad("inputs: ", status.message());
  seen = 0;
  std::set<std::string> metrics;
  for (const Result *result : orEmpty(check.program.results()))
    if (absl::Status status = checkResult(check, *result, seen, metrics);
        !status.ok())
      return bad("results: ", status.message());
  if (!(seen & 1u << static_cast<int>(ResultKind::loss)))
    return bad("results: there is no loss");
  return checkParameters(check);
}

} // namespace meshwork::plan
