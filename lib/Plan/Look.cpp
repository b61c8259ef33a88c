#include "lib/Plan/Look.h"
#include "lib/Plan/Channels.h"
#include "lib/Plan/Operands.h"
#include "lib/Plan/PlanCheckInternal.h"
#include <algorithm>

namespace meshwork::plan {
namespace {

/// Calls `visit` with each buffer that the instruction writes.
template <typename Visit>
void forEachWritten(const Program &program, absl::Span<const ViewInfo> views,
                    const Instruction &at, Visit visit) {
  forEachOperand(at, [&](const Operand &operand) {
    if (operand.written)
      visit(*program.buffers()->Get(views[operand.view].buffer));
  });
}
} // namespace

/// What the step's last action runs.
static const Instructions &lastList(const Program &program) {
  return listOf(program, actionsOf(program).back().list());
}

bool outlivesStep(const Buffer &buffer) {
  return buffer.persistent() && (buffer.kind() == BufferKind::weights ||
                                 buffer.kind() == BufferKind::optimizer);
}

uint32_t lookPoint(const Program &program, absl::Span<const ViewInfo> views) {
  const Instructions &update = lastList(program);
  uint32_t known = program.loss_known()->instruction(), found = known;
  Channels channels(update);
  bool changes = false;
  for (uint32_t i = 0; i <= update.size() && !changes; ++i) {
    if (i >= found && channels.underWay().empty())
      found = i;
    if (i == update.size())
      break;
    channels.pass(i, [](uint32_t) {});
    forEachWritten(program, views, *update.Get(i), [&](const Buffer &buffer) {
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
    const Instruction &at = *update.Get(i);
    const Buffer *wrong = nullptr;
    forEachWritten(check.program, check.views, at, [&](const Buffer &buffer) {
      bool isResult = buffer.kind() == BufferKind::results;
      if (i < look ? outlivesStep(buffer) : isResult)
        wrong = &buffer;
    });
    if (wrong)
      return bad(last.where(i), " writes ", quote(wrong->name()),
                 i < look ? ", which outlives the step, before the loss is "
                            "known"
                          : " when weights may have changed; expected every "
                            "result to be known before");
  }
  return absl::OkStatus();
}

} // namespace meshwork::plan
