#include "lib/Explain/Collectives.h"
#include "absl/strings/str_cat.h"
#include "lib/Cost/Times.h"
#include "lib/Explain/Format.h"
#include "lib/Plan/Views.h"
#include <algorithm>

namespace meshwork::explain {
using plan::orEmpty;

uint64_t groupOf(const plan::Plan &plan, const plan::Collective &op) {
  uint64_t ranks = 1;
  for (uint32_t axis : orEmpty(op.axes()))
    ranks *= plan.mesh()->Get(axis)->size();
  return ranks;
}

static uint64_t bytesOf(const plan::View &view) {
  uint64_t bytes = plan::sizeOf(view.dtype());
  for (int64_t size : orEmpty(view.shape()))
    bytes *= static_cast<uint64_t>(size); // Checked: it lies within its buffer.
  return bytes;
}

uint64_t bucketBytes(const plan::Program &program, const plan::Collective &op) {
  uint64_t total = 0;
  bool gathers = op.kind() == plan::CollectiveKind::all_gather;
  for (const plan::Transfer *part : *op.parts()) {
    uint32_t view = gathers ? part->dst() : part->src();
    total = saturatingAdd(total, bytesOf(*program.views()->Get(view)));
  }
  return total;
}

std::string causeText(const plan::Collective &op) {
  const plan::Cause *cause = op.cause();
  if (!cause)
    return "-";
  std::string text = clean(cause->value(), ""), user = clean(cause->user(), ""),
              reason = clean(cause->reason(), "");
  if (!user.empty())
    absl::StrAppend(&text, " for ", user, reason.empty() ? "" : ", which");
  if (!reason.empty())
    absl::StrAppend(&text, " ", reason);
  if (op.parts()->size() > 1)
    absl::StrAppend(&text, ", and ", op.parts()->size() - 1, " more like it");
  return text;
}

namespace {
std::vector<std::string> annotationsOf(const plan::Collective &op) {
  std::vector<std::string> keys;
  if (op.cause())
    for (const flatbuffers::String *key : orEmpty(op.cause()->annotations()))
      keys.push_back(key->str());
  return keys;
}
} // namespace

namespace {
/// Rows of one kind, axis, phase and cause are one.
class Rows {
public:
  void add(Traffic one, uint64_t runs, uint64_t bytes, uint64_t sent) {
    auto same = [&](const Traffic &known) {
      return std::tie(known.kind, known.axis, known.phase, known.cause,
                      known.isOfLayer) ==
             std::tie(one.kind, one.axis, one.phase, one.cause, one.isOfLayer);
    };
    auto known = std::find_if(list.begin(), list.end(), same);
    if (known == list.end())
      known = list.insert(list.end(), std::move(one));
    ++known->instructions;
    known->count = saturatingAdd(known->count, runs);
    known->bufferBytes =
        saturatingAdd(known->bufferBytes, saturatingMul(bytes, runs));
    known->bytesSentPerRank =
        saturatingAdd(known->bytesSentPerRank, saturatingMul(sent, runs));
  }
  std::vector<Traffic> take() { return std::move(list); }

private:
  std::vector<Traffic> list;
};

uint64_t partBytes(const plan::Program &program, const plan::Send &op) {
  uint64_t total = 0;
  for (uint32_t part : orEmpty(op.parts()))
    total = saturatingAdd(total, bytesOf(*program.views()->Get(part)));
  return total;
}

/// What a stage gives to the next one, or to the one before.
Traffic rowOf(const plan::Plan &plan, const Phase &phase,
              const plan::Instruction &send) {
  const plan::Send &op = *send.op_as_Send();
  return {"send",
          clean(plan.mesh()->Get(op.axis())->name(), "?"),
          phase.kind == plan::ListKind::send ? "forward" : "backward",
          clean(send.name(), "-"),
          {"shard.layers"},
          false,
          2};
}
} // namespace

std::vector<Traffic> traffic(const plan::Plan &plan,
                             const plan::Program &program,
                             const Listing &listing) {
  Rows rows;
  for (uint64_t i = 0; i < listing.size(); ++i) {
    const Phase &phase = listing.phaseOf(i);
    if (phase.runs == 0) // Not in a step.
      continue;
    if (const plan::Send *send = listing[i].op_as_Send()) {
      uint64_t bytes = partBytes(program, *send);
      rows.add(rowOf(plan, phase, listing[i]), phase.runs, bytes, bytes);
    }
    const plan::Collective *op = listing[i].op_as_Collective();
    if (!op)
      continue;
    uint64_t ranks = groupOf(plan, *op), bytes = bucketBytes(program, *op);
    rows.add(
        {operationKind(listing[i]), axesText(plan, op->axes()),
         plan::EnumNamePass(op->pass()), causeText(*op), annotationsOf(*op),
         listing[i].layer() >= 0, static_cast<uint32_t>(ranks)},
        saturatingMul(op->last_only() ? 1 : phase.runs, listing.timesOf(i)),
        bytes, cost::bytesSent(op->kind(), bytes, ranks));
  }
  return rows.take();
}

} // namespace meshwork::explain
