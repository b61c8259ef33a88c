#include "lib/Plan/Look.h"
#include "lib/Plan/Operands.h"
#include "lib/Plan/PlanCheckInternal.h"
#include <algorithm>
#include <map>

namespace meshwork::runtime {
namespace {

/// Calls `visit` with each buffer that the instruction writes.
template <typename Visit>
void forEachWritten(const plan::Program &program,
                    absl::Span<const ViewInfo> views,
                    const plan::Instruction &at, Visit visit) {
  forEachOperand(at, [&](const plan::Operand &operand) {
    if (operand.written)
      visit(*program.buffers()->Get(views[operand.view].buffer));
  });
}

/// Of each channel; all that started before loss_known has been waited for.
class Channels {
public:
  void pass(const plan::Instruction &at) {
    const plan::Collective *op = at.op_as_Collective();
    if (op && op->channel() > 0)
      ++started[op->channel()];
    if (const plan::Wait *wait = at.op_as_Wait())
      waited[wait->channel()] =
          std::max(waited[wait->channel()], wait->count());
  }
  bool areIdle() const { return started == waited; }

private:
  std::map<uint32_t, uint32_t> started, waited;
};
} // namespace

/// What the step's last action runs.
static const Instructions &lastList(const plan::Program &program) {
  return listOf(program, plan::actionsOf(program).back().list());
}

bool outlivesStep(const plan::Buffer &buffer) {
  return buffer.persistent() && (buffer.kind() == plan::BufferKind::weights ||
                                 buffer.kind() == plan::BufferKind::optimizer);
}

uint32_t lookPoint(const plan::Program &program,
                   absl::Span<const ViewInfo> views) {
  const Instructions &update = lastList(program);
  uint32_t known = program.loss_known()->instruction(), found = known;
  Channels channels;
  bool changes = false;
  for (uint32_t i = 0; i <= update.size() && !changes; ++i) {
    if (i >= found && channels.areIdle())
      found = i;
    if (i == update.size())
      break;
    channels.pass(*update.Get(i));
    forEachWritten(program, views, *update.Get(i),
                   [&](const plan::Buffer &buffer) {
                     changes |= i >= known && outlivesStep(buffer);
                   });
  }
  return found;
}

absl::Status checkLook(const ProgramCheck &check) {
  uint32_t look = lookPoint(check.program, check.views);
  const Section &last = check.last();
  const Instructions &update = *last.list;
  for (uint32_t i = 0; i < update.size(); ++i) {
    const plan::Instruction &at = *update.Get(i);
    const plan::Buffer *wrong = nullptr;
    forEachWritten(check.program, check.views, at,
                   [&](const plan::Buffer &buffer) {
                     bool isResult = buffer.kind() == plan::BufferKind::results;
                     if (i < look ? outlivesStep(buffer) : isResult)
                       wrong = &buffer;
                   });
    if (wrong)
      return bad(last.name, "[", i, "] ", quote(at.name()), " writes ",
                 quote(wrong->name()),
                 i < look ? ", which outlives the step, before the loss is "
                            "known"
                          : " when weights may have changed; expected every "
                            "result to be known before");
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
