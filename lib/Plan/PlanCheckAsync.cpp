// What runs on channels: every start has its Wait, and nothing comes in between
// that touches the same bytes. Counted repeats begin and end with nothing under
// way, and so does each of their turns: who waits knows what has been started.
#include "absl/container/flat_hash_map.h"
#include "lib/Plan/Channels.h"
#include "lib/Plan/Overlap.h"
#include "lib/Plan/PlanCheckInternal.h"

namespace meshwork::plan {
namespace {

/// A view that an instruction which was started still uses.
struct Held {
  uint32_t view;
  bool written;
  uint32_t channel, ordinal; // the how many'th of its channel, from 1
  uint32_t index;            // of the instruction in its list
};

/// One list, instruction by instruction.
class Timeline {
public:
  Timeline(const ProgramCheck &check, const Section &section)
      : check(check), section(section), channels(*section.list) {}

  absl::Status run() {
    bool isLast = &section == &check.last();
    for (uint32_t i = 0; i < section.list->size(); ++i) {
      if (isLast && i == check.program.loss_known()->instruction())
        MESHWORK_RETURN_IF_ERROR(expectIdle("before loss_known"));
      MESHWORK_RETURN_IF_ERROR(expectIdleAtGate(i));
      channels.enter(i);
      if (absl::Status status = visit(*section.list->Get(i), i); !status.ok())
        return bad(section.where(i), ": ", status.message());
    }
    MESHWORK_RETURN_IF_ERROR(expectIdleAtGate(section.list->size()));
    return expectIdle("before the end of its list");
  }

private:
  /// Where counts begin anew.
  absl::Status expectIdleAtGate(uint32_t i) const {
    if (!channels.beginAnewAt(i))
      return absl::OkStatus();
    bool isBefore =
        i < section.list->size() && section.list->Get(i)->op_as_Repeat();
    return expectIdle(
        isBefore ? absl::StrCat("before the repeat at ", section.where(i))
                 : "in its turn of a repeat");
  }

  absl::Status visit(const Instruction &at, uint32_t i) {
    if (const Wait *wait = at.op_as_Wait())
      MESHWORK_RETURN_IF_ERROR(expectStarted(*wait));
    absl::Status status;
    forEachOperand(at, [&](const Operand &operand) {
      if (status.ok())
        status = expectFree(operand);
    });
    const Collective *op = at.op_as_Collective();
    if (op && op->last_only() && !isOfMicrobatch(section.kind))
      return bad("is for the last microbatch, expected it in a list that runs "
                 "for each");
    MESHWORK_RETURN_IF_ERROR(status);
    channels.pass(i, [&](uint32_t ended) { release(ended); });
    if (at.channel() > 0)
      hold(at, i);
    return absl::OkStatus();
  }

  absl::Status expectFree(const Operand &operand) const {
    const ViewInfo &view = check.views[operand.view];
    auto found = held.find(view.buffer);
    if (found == held.end())
      return absl::OkStatus();
    for (const Held &other : found->second)
      if ((other.written || operand.written) &&
          mayShareBytes(view, check.views[other.view]))
        return bad(operand.role, operand.written ? " writes" : " reads",
                   " buffer ", quote(check.bufferOf(view).name()), ", which ",
                   section.where(other.index), " still ",
                   other.written ? "writes" : "reads",
                   "; expected a Wait for channel ", other.channel, ", count ",
                   other.ordinal, ", before");
    return absl::OkStatus();
  }

  void hold(const Instruction &at, uint32_t i) {
    forEachOperand(at, [&](const Operand &operand) {
      held[check.views[operand.view].buffer].push_back(
          {operand.view, operand.written, at.channel(),
           channels.started(at.channel()), i});
    });
  }

  absl::Status expectStarted(const Wait &wait) const {
    uint32_t started = channels.started(wait.channel());
    return wait.count() <= started
               ? absl::OkStatus()
               : bad("waits for the first ", wait.count(), " of channel ",
                     wait.channel(), ", which has started ", started);
  }

  /// Instruction `index` has ended; until now its buffers were in use.
  void release(uint32_t index) {
    forEachOperand(*section.list->Get(index), [&](const Operand &operand) {
      auto found = held.find(check.views[operand.view].buffer);
      if (found != held.end() &&
          std::erase_if(found->second,
                        [&](const Held &one) { return one.index == index; }) >
              0 &&
          found->second.empty())
        held.erase(found);
    });
  }

  absl::Status expectIdle(const std::string &when) const {
    std::vector<uint32_t> left = channels.underWay();
    return left.empty()
               ? absl::OkStatus()
               : bad(section.where(left.front()), " is not waited for ", when);
  }

  const ProgramCheck &check;
  const Section &section;
  absl::flat_hash_map<uint32_t, std::vector<Held>> held; // by buffer
  Channels channels;
};
} // namespace

absl::Status checkAsync(const ProgramCheck &check) {
  for (const Section &section : check.sections)
    MESHWORK_RETURN_IF_ERROR(Timeline(check, section).run());
  return absl::OkStatus();
}

} // namespace meshwork::plan
