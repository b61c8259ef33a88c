#include "lib/Plan/Actions.h"
#include "meshwork/Plan/Types.h"
#include <algorithm>
#include <map>

namespace meshwork::plan {
namespace {

/// "F" of "0F3"; null for what no stage does.
const char *lettersOf(ListKind kind) {
  switch (kind) {
  case ListKind::forward:
    return "F";
  case ListKind::backward:
    return "B";
  case ListKind::input_grad:
    return "I";
  case ListKind::weight_grad:
    return "W";
  case ListKind::send:
    return "SEND_F";
  case ListKind::recv:
    return "RECV_F";
  case ListKind::send_grad:
    return "SEND_B";
  case ListKind::recv_grad:
    return "RECV_B";
  default:
    return nullptr;
  }
}

bool isKnown(const ListShape &list) {
  bool isOfStep = list.kind == ListKind::once || list.kind == ListKind::step ||
                  list.kind == ListKind::update;
  return isOfMicrobatch(list.kind) || (isOfStep && list.stage == 0);
}

std::string numberedList(size_t index) {
  return "list " + std::to_string(index);
}
std::string numberedAction(size_t index) {
  return "action " + std::to_string(index);
}

std::string problemOfLists(std::span<const ListShape> lists) {
  std::map<std::pair<ListKind, uint32_t>, size_t> known;
  for (size_t i = 0; i < lists.size(); ++i) {
    if (*EnumNameListKind(lists[i].kind) == 0)
      return numberedList(i) + " is of unknown kind " +
             std::to_string(static_cast<int>(lists[i].kind));
    if (!isKnown(lists[i]))
      return numberedList(i) + " is " + nameOf(lists[i]) +
             ", which this version does not run";
    auto [other, isNew] = known.try_emplace({lists[i].kind, lists[i].stage}, i);
    if (!isNew)
      return "lists " + std::to_string(other->second) + " and " +
             std::to_string(i) + " are both " + nameOf(lists[i]);
  }
  return "";
}

/// Walks through the actions; each microbatch runs its lists as they stand, but
/// for those of gradients of weights: each of these has its turn once those
/// before it have run.
class Walk {
public:
  Walk(std::span<const ListShape> lists, std::span<const Action> actions,
       uint64_t microbatches)
      : lists(lists), actions(actions), microbatches(microbatches) {
    for (uint32_t i = 0; i < lists.size(); ++i)
      if (lists[i].kind == ListKind::weight_grad)
        delayed[i] = static_cast<uint32_t>(ordered.size());
      else if (isOfMicrobatch(lists[i].kind))
        ordered.push_back(i);
  }

  std::string run() {
    uint64_t others =
        std::count_if(lists.begin(), lists.end(), [](const ListShape &list) {
          return list.kind != ListKind::once && !isOfMicrobatch(list.kind);
        });
    // Microbatches have 32 bits, and lists are few, so this fits.
    uint64_t repeated = ordered.size() + delayed.size();
    uint64_t expected = others + microbatches * repeated;
    if (actions.size() != expected)
      return "there are " + std::to_string(actions.size()) +
             " actions, expected " + std::to_string(expected) + ": " +
             std::to_string(microbatches) + " microbatches of " +
             std::to_string(repeated) + " lists, and " +
             std::to_string(others) + " lists that run once a step";
    done.assign(repeated == 0 ? 0 : microbatches, 0);
    for (const auto &[list, before] : delayed)
      ran[list].assign(microbatches, false);
    std::string text;
    for (uint32_t i = 0; i < actions.size() && text.empty(); ++i)
      if (text = visit(actions[i], i); !text.empty())
        text = numberedAction(i) + " " + text;
    return text;
  }

private:
  std::string visit(const Action &action, uint32_t index) {
    if (action.list() >= lists.size())
      return "runs list " + std::to_string(action.list()) + ", there are " +
             std::to_string(lists.size());
    const ListShape &list = lists[action.list()];
    if (isOfMicrobatch(list.kind))
      return visitMicrobatch(action);
    if (action.microbatch() != 0)
      return "runs " + nameOf(list) + " for microbatch " +
             std::to_string(action.microbatch()) +
             ", but it does not run for each microbatch";
    // Once each, so none is left out: there are as many actions as there must.
    bool isInPlace =
        (list.kind == ListKind::step && index == 0) ||
        (list.kind == ListKind::update && index + 1 == actions.size());
    return isInPlace ? ""
                     : "runs " + nameOf(list) +
                           ", expected step first and update last, and nothing "
                           "else that does not run for each microbatch";
  }

  std::string visitMicrobatch(const Action &action) {
    uint32_t m = action.microbatch();
    if (m >= microbatches)
      return "is of microbatch " + std::to_string(m) + ", there are " +
             std::to_string(microbatches);
    if (auto late = delayed.find(action.list()); late != delayed.end())
      return visitDelayed(action, late->second);
    if (done[m] < ordered.size() && ordered[done[m]] == action.list()) {
      ++done[m];
      return "";
    }
    return runs(action) + ", expected " + next(m);
  }

  std::string visitDelayed(const Action &action, uint32_t before) {
    uint32_t m = action.microbatch();
    if (ran[action.list()][m])
      return runs(action) + " again";
    if (done[m] < before)
      return runs(action) + ", expected " + next(m);
    ran[action.list()][m] = true;
    return "";
  }

  std::string runs(const Action &action) const {
    return "runs " + nameOf(lists[action.list()]) + " of microbatch " +
           std::to_string(action.microbatch());
  }
  std::string next(uint32_t microbatch) const {
    return done[microbatch] < ordered.size()
               ? nameOf(lists[ordered[done[microbatch]]]) + " next"
               : "nothing more of it";
  }

  std::span<const ListShape> lists;
  std::span<const Action> actions;
  uint64_t microbatches;
  std::vector<uint32_t> ordered; // lists of a microbatch, in order
  std::vector<uint32_t> done;    // of these, by microbatch
  // Lists of weight_grad: how many of `ordered` stand before, and by microbatch
  // whether it has run.
  std::map<uint32_t, uint32_t> delayed;
  std::map<uint32_t, std::vector<bool>> ran;
};
} // namespace

bool isOfMicrobatch(ListKind kind) {
  switch (kind) {
  case ListKind::forward:
  case ListKind::backward:
  case ListKind::input_grad:
  case ListKind::weight_grad:
  case ListKind::send:
  case ListKind::recv:
  case ListKind::send_grad:
  case ListKind::recv_grad:
    return true;
  default:
    return false;
  }
}

bool sends(ListKind kind) {
  return kind == ListKind::send || kind == ListKind::send_grad;
}
bool receives(ListKind kind) {
  return kind == ListKind::recv || kind == ListKind::recv_grad;
}

bool isOfMicrobatch(InputKind kind) {
  return isOfTokens(kind) || kind == InputKind::random;
}

std::string nameOf(const ListShape &list) {
  std::string name = EnumNameListKind(list.kind);
  return list.stage == 0 ? name
                         : name + " of stage " + std::to_string(list.stage);
}

std::string textOf(const ListShape &list, uint32_t microbatch) {
  const char *letters = lettersOf(list.kind);
  return letters
             ? std::to_string(list.stage) + letters + std::to_string(microbatch)
             : std::string(EnumNameListKind(list.kind));
}

std::string ActionTable::problem(std::span<const ListShape> lists,
                                 std::span<const Action> actions,
                                 uint64_t microbatches) {
  std::string text = problemOfLists(lists);
  return text.empty() ? Walk(lists, actions, microbatches).run() : text;
}

ActionTable::ActionTable(std::vector<ListShape> lists,
                         std::vector<Action> actions)
    : all(std::move(lists)), table(std::move(actions)), runs(all.size(), 0),
      first(all.size(), none), last(all.size(), none), begins(table.size()) {
  for (uint32_t i = 0; i < all.size(); ++i)
    if (all[i].kind == ListKind::once)
      once = i;
  std::vector<bool> seen; // by microbatch
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t list = table[i].list(), m = table[i].microbatch();
    ++runs[list];
    last[list] = i;
    first[list] = std::min(first[list], i);
    if (!isOfMicrobatch(all[list].kind))
      continue;
    if (seen.size() <= m)
      seen.resize(m + 1);
    begins[i] = !seen[m];
    seen[m] = true;
  }
}

std::vector<ListShape> listsOf(const Program &program) {
  std::vector<ListShape> lists;
  if (program.lists())
    for (const List *list : *program.lists())
      lists.push_back(
          {list->kind(), list->stage(),
           list->instructions() ? list->instructions()->size() : 0});
  return lists;
}

std::span<const Action> actionsOf(const Program &program) {
  if (!program.actions())
    return {};
  // Structs of a FlatBuffer lie as they do in memory on a little-endian machine
  // (Frame.h).
  return {reinterpret_cast<const Action *>(program.actions()->Data()),
          program.actions()->size()};
}

} // namespace meshwork::plan
