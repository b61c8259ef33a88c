// Lists and the table of actions; the rules are those of lib/Plan.
#include "lib/Plan/PlanCheckInternal.h"

namespace meshwork::plan {

static absl::Status checkRepeats(const Program &program) {
  std::vector<ListShape> lists = listsOf(program);
  for (uint32_t i = 0; i < lists.size(); ++i) {
    std::vector<RepeatShape> repeats =
        repeatsOf(program.lists()->Get(i)->instructions());
    if (!repeats.empty() && !isOfMicrobatch(lists[i].kind))
      return bad(nameOf(lists[i]), "[", repeats.front().begin - 1,
                 "] is a repeat, expected it in a list that runs for each "
                 "microbatch");
    std::string problem = Repeats::problem(repeats, lists[i].size);
    if (!problem.empty())
      return bad(nameOf(lists[i]), ": ", problem);
  }
  return absl::OkStatus();
}

absl::Status checkLists(const Plan &plan, const Program &program) {
  std::vector<ListShape> lists = listsOf(program);
  std::span<const Action> actions = actionsOf(program);
  std::string problem =
      ActionTable::problem(lists, actions, plan.microbatches());
  if (!problem.empty())
    return bad(problem);
  MESHWORK_RETURN_IF_ERROR(checkRepeats(program));
  if (actions.empty() || lists[actions.back().list()].kind != ListKind::update)
    return bad("the last action runs ",
               actions.empty() ? "nothing"
                               : nameOf(lists[actions.back().list()]),
               ", expected update");
  const Moment *known = program.loss_known();
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

} // namespace meshwork::plan
