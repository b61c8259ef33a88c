// Lists and the table of actions; the rules are those of lib/Plan.
#include "lib/Plan/PlanCheckInternal.h"

namespace meshwork::runtime {

static absl::Status checkRepeats(const plan::Program &program) {
  std::vector<plan::ListShape> lists = plan::listsOf(program);
  for (uint32_t i = 0; i < lists.size(); ++i) {
    std::vector<plan::RepeatShape> repeats =
        plan::repeatsOf(program.lists()->Get(i)->instructions());
    if (!repeats.empty() && !plan::isOfMicrobatch(lists[i].kind))
      return bad(plan::nameOf(lists[i]), "[", repeats.front().begin - 1,
                 "] is a repeat, expected it in a list that runs for each "
                 "microbatch");
    std::string problem = plan::Repeats::problem(repeats, lists[i].size);
    if (!problem.empty())
      return bad(plan::nameOf(lists[i]), ": ", problem);
  }
  return absl::OkStatus();
}

absl::Status checkLists(const plan::Plan &plan, const plan::Program &program) {
  std::vector<plan::ListShape> lists = plan::listsOf(program);
  std::span<const plan::Action> actions = plan::actionsOf(program);
  std::string problem =
      plan::ActionTable::problem(lists, actions, plan.microbatches());
  if (!problem.empty())
    return bad(problem);
  MESHWORK_RETURN_IF_ERROR(checkRepeats(program));
  if (actions.empty() ||
      lists[actions.back().list()].kind != plan::ListKind::update)
    return bad("the last action runs ",
               actions.empty() ? "nothing"
                               : plan::nameOf(lists[actions.back().list()]),
               ", expected update");
  const plan::Moment *known = program.loss_known();
  uint32_t last = static_cast<uint32_t>(actions.size()) - 1,
           size = lists[actions.back().list()].size;
  if (!known)
    return bad("loss_known is absent");
  if (known->action() != last || known->instruction() > size)
    return bad("loss_known is instruction ", known->instruction(),
               " of action ", known->action(), ", expected one of action ",
               last, ", which has ", size, " instructions");
  return absl::OkStatus();
}

} // namespace meshwork::runtime
