// What runs on channels: every start has its Wait, and nothing comes in between
// that touches the same bytes. Counted repeats begin and end with nothing under
// way, and so does each of their turns: who waits knows what has been started.
#include "absl/container/flat_hash_map.h"
#include "lib/Plan/Overlap.h"
#include "lib/Plan/PlanCheckInternal.h"
#include <algorithm>

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
      : check(check), section(section) {}

  absl::Status run() {
    bool isLast = &section == &check.last();
    for (uint32_t i = 0; i < section.list->size(); ++i) {
      if (isLast && i == check.program.loss_known()->instruction())
        MESHWORK_RETURN_IF_ERROR(expectIdle("before loss_known"));
      MESHWORK_RETURN_IF_ERROR(endTurns(i));
      const Instruction &at = *section.list->Get(i);
      if (absl::Status status = visit(at, i); !status.ok())
        return bad(section.where(i), ": ", status.message());
      const Repeat *repeat = at.op_as_Repeat();
      if (repeat && isCounted(*repeat))
        MESHWORK_RETURN_IF_ERROR(beginTurns(i, *repeat));
    }
    MESHWORK_RETURN_IF_ERROR(endTurns(section.list->size()));
    return expectIdle("before the end of its list");
  }

private:
  absl::Status beginTurns(uint32_t i, const Repeat &repeat) {
    MESHWORK_RETURN_IF_ERROR(
        expectIdle(absl::StrCat("before the repeat at ", section.where(i))));
    ends.push_back(i + 1 + repeat.instructions());
    restart();
    return absl::OkStatus();
  }

  absl::Status endTurns(uint32_t i) {
    for (; !ends.empty() && ends.back() <= i; ends.pop_back()) {
      MESHWORK_RETURN_IF_ERROR(expectIdle("in its turn of a repeat"));
      restart();
    }
    return absl::OkStatus();
  }

  /// Counts begin anew.
  void restart() {
    std::fill(std::begin(started), std::end(started), 0);
    std::fill(std::begin(finished), std::end(finished), 0);
    for (std::vector<uint32_t> &one : running)
      one.clear();
  }

  absl::Status visit(const Instruction &at, uint32_t i) {
    if (const Wait *wait = at.op_as_Wait())
      return finish(*wait);
    absl::Status status;
    forEachOperand(at, [&](const Operand &operand) {
      if (status.ok())
        status = expectFree(operand);
    });
    const Collective *op = at.op_as_Collective();
    if (op && op->last_only() && !isOfMicrobatch(section.kind))
      return bad("is for the last microbatch, expected it in a list that runs "
                 "for each");
    if (status.ok() && at.channel() > 0)
      start(at, at.channel(), i);
    return status;
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

  void start(const Instruction &at, uint32_t channel, uint32_t i) {
    uint32_t ordinal = ++started[channel];
    forEachOperand(at, [&](const Operand &operand) {
      held[check.views[operand.view].buffer].push_back(
          {operand.view, operand.written, channel, ordinal, i});
    });
    running[channel].push_back(i);
  }

  absl::Status finish(const Wait &wait) {
    uint32_t channel = wait.channel();
    if (wait.count() > started[channel])
      return bad("waits for the first ", wait.count(), " of channel ", channel,
                 ", which has started ", started[channel]);
    while (finished[channel] < wait.count())
      release(channel, running[channel][finished[channel]++]);
    return absl::OkStatus();
  }

  /// Instruction `index` has ended; until now its buffers were in use.
  void release(uint32_t channel, uint32_t index) {
    forEachOperand(*section.list->Get(index), [&](const Operand &operand) {
      const ViewInfo &view = check.views[operand.view];
      auto found = held.find(view.buffer);
      if (found != held.end() &&
          std::erase_if(found->second,
                        [&](const Held &one) {
                          return one.channel == channel && one.index == index;
                        }) > 0 &&
          found->second.empty())
        held.erase(found);
    });
  }

  absl::Status expectIdle(const std::string &when) const {
    for (uint32_t channel = 1; channel <= maxChannels; ++channel)
      if (finished[channel] < started[channel])
        return bad(section.where(running[channel][finished[channel]]),
                   " is not waited for ", when);
    return absl::OkStatus();
  }

  const ProgramCheck &check;
  const Section &section;
  absl::flat_hash_map<uint32_t, std::vector<Held>> held; // by buffer
  uint32_t started[maxChannels + 1] = {}, finished[maxChannels + 1] = {};
  std::vector<uint32_t> running[maxChannels + 1]; // indices, in order
  std::vector<uint32_t> ends; // of counted repeats around, the outermost first
};
} // namespace

absl::Status checkAsync(const ProgramCheck &check) {
  for (const Section &section : check.sections)
    MESHWORK_RETURN_IF_ERROR(Timeline(check, section).run());
  return absl::OkStatus();
}

} // namespace meshwork::plan
