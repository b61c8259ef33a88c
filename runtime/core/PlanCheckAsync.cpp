// What runs on communication threads: every start has its Wait, and nothing
// comes in between that touches the same bytes.
#include "absl/container/flat_hash_map.h"
#include "runtime/core/Overlap.h"
#include "runtime/core/PlanCheckInternal.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {

/// A view that a collective which was started still uses.
struct Held {
  uint32_t view;
  bool written;
  uint32_t channel, ordinal; // the how many'th of its channel, from 1
  uint32_t index;            // of the collective in its list
};

/// One list, instruction by instruction.
class Timeline {
public:
  Timeline(const ProgramCheck &check, const Section &section)
      : check(check), section(section) {}

  absl::Status run() {
    bool isUpdate = section.begin == check.update().begin &&
                    section.list == check.update().list;
    for (uint32_t i = 0; i < section.list->size(); ++i) {
      if (isUpdate && i == check.program.loss_ready())
        MESHWORK_RETURN_IF_ERROR(expectIdle("before loss_ready"));
      const plan::Instruction &at = *section.list->Get(i);
      if (absl::Status status = visit(at, i); !status.ok())
        return bad(where(i), ": ", status.message());
    }
    return expectIdle("before the end of its list");
  }

private:
  std::string where(uint32_t i) const {
    return absl::StrCat(section.name, "[", i, "] ",
                        quote(section.list->Get(i)->name()));
  }

  absl::Status visit(const plan::Instruction &at, uint32_t i) {
    if (const plan::Wait *wait = at.op_as_Wait())
      return finish(*wait, i);
    absl::Status status;
    forEachOperand(at, [&](const plan::Operand &operand) {
      if (status.ok())
        status = expectFree(operand);
    });
    const plan::Collective *op = at.op_as_Collective();
    bool isMicrobatch = section.list == check.microbatch().list &&
                        section.begin == check.microbatch().begin;
    if (op && op->last_microbatch() && !isMicrobatch)
      return bad("is for the last microbatch, expected it in microbatch");
    if (status.ok() && op && op->channel() > 0)
      start(at, op->channel(), i);
    return status;
  }

  absl::Status expectFree(const plan::Operand &operand) const {
    const ViewInfo &view = check.views[operand.view];
    auto found = held.find(view.buffer);
    if (found == held.end())
      return absl::OkStatus();
    for (const Held &other : found->second)
      if ((other.written || operand.written) &&
          mayShareBytes(view, check.views[other.view]))
        return bad(operand.role, operand.written ? " writes" : " reads",
                   " buffer ", quote(check.bufferOf(view).name()), ", which ",
                   where(other.index), " still ",
                   other.written ? "writes" : "reads",
                   "; expected a Wait for channel ", other.channel, ", count ",
                   other.ordinal, ", before");
    return absl::OkStatus();
  }

  void start(const plan::Instruction &at, uint32_t channel, uint32_t i) {
    uint32_t ordinal = ++started[channel];
    forEachOperand(at, [&](const plan::Operand &operand) {
      held[check.views[operand.view].buffer].push_back(
          {operand.view, operand.written, channel, ordinal, i});
    });
    running[channel].push_back(i);
  }

  absl::Status finish(const plan::Wait &wait, uint32_t now) {
    uint32_t channel = wait.channel();
    if (channel == 0 || channel > maxChannels)
      return bad("waits for channel ", channel, ", expected 1 to ",
                 maxChannels);
    if (wait.count() == 0 || wait.count() > started[channel])
      return bad("waits for collective ", wait.count(), " of channel ", channel,
                 ", which has started ", started[channel]);
    while (finished[channel] < wait.count())
      MESHWORK_RETURN_IF_ERROR(
          release(channel, running[channel][finished[channel]++], now));
    return absl::OkStatus();
  }

  /// Collective `index` ends at `now` at the latest; until then its buffers
  /// are in use.
  absl::Status release(uint32_t channel, uint32_t index, uint32_t now) {
    absl::Status status;
    forEachOperand(
        *section.list->Get(index), [&](const plan::Operand &operand) {
          const ViewInfo &view = check.views[operand.view];
          const plan::Buffer &buffer = check.bufferOf(view);
          auto found = held.find(view.buffer);
          if (found != held.end() &&
              std::erase_if(found->second,
                            [&](const Held &one) {
                              return one.channel == channel &&
                                     one.index == index;
                            }) > 0 &&
              found->second.empty())
            held.erase(found);
          if (!buffer.persistent() && section.begin + now > buffer.last_use())
            status = bad("only here ", where(index),
                         " is known to be done with ", quote(buffer.name()),
                         ", which lives to ", buffer.last_use());
        });
    return status;
  }

  absl::Status expectIdle(const char *when) const {
    for (uint32_t channel = 1; channel <= maxChannels; ++channel)
      if (finished[channel] < started[channel])
        return bad(where(running[channel][finished[channel]]),
                   " is not waited for ", when);
    return absl::OkStatus();
  }

  const ProgramCheck &check;
  const Section &section;
  absl::flat_hash_map<uint32_t, std::vector<Held>> held; // by buffer
  uint32_t started[maxChannels + 1] = {}, finished[maxChannels + 1] = {};
  std::vector<uint32_t> running[maxChannels + 1]; // indices, in order
};
} // namespace

absl::Status checkAsync(const ProgramCheck &check) {
  for (const Section &section : check.sections)
    MESHWORK_RETURN_IF_ERROR(Timeline(check, section).run());
  return absl::OkStatus();
}

} // namespace meshwork::runtime
