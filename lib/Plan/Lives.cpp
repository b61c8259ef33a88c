#include "lib/Plan/Lives.h"
#include <algorithm>
#include <set>

namespace meshwork::plan {
namespace {

/// Calls `visit` with each bit that is set.
template <typename Visit> void forEachBit(uint8_t bits, Visit visit) {
  for (uint8_t bit = 1; bit != 0 && bit <= bits; bit <<= 1)
    if (bits & bit)
      visit(bit);
}
} // namespace

Lives::Lives(const ActionTable &table, uint32_t buffers)
    : table(table), repeats(table.lists().size()), ranges(buffers) {}

void Lives::touch(const Touch &touch) {
  Range &range = ranges[touch.buffer];
  range.addsUp |= touch.addsUp;
  range.isSent |= touch.isSent;
  uint32_t first = touch.instruction, last = first;
  if (touch.advances)
    if (auto around = repeats[touch.list].around(first); !around.empty()) {
      first = around.front().begin;
      last = around.front().end - 1;
    }
  for (InList &in : range.lists)
    if (in.list == touch.list) {
      in.first = std::min(in.first, first);
      in.last = std::max(in.last, last);
      return;
    }
  range.lists.push_back({touch.list, first, last});
}

void Lives::touchInput(uint32_t buffer) {
  ranges[buffer].isInput = true;
  for (uint32_t i = 0; i < table.actions().size(); ++i)
    if (table.beginsMicrobatch(i))
      return touch({buffer, table.actions()[i].list(), 0});
}

/// What a repeat finds there or leaves behind is there in all of its turns.
void Lives::touchTurns(Range &range) {
  for (InList &in : range.lists) {
    uint32_t first = in.first, last = in.last;
    auto crosses = [&](const RepeatShape &repeat) {
      return range.lists.size() > 1 || first < repeat.begin ||
             last >= repeat.end;
    };
    for (const RepeatShape &repeat : repeats[in.list].around(first))
      if (crosses(repeat))
        in.first = std::min(in.first, repeat.begin);
    for (const RepeatShape &repeat : repeats[in.list].around(last))
      if (crosses(repeat))
        in.last = std::max(in.last, repeat.end - 1);
  }
}

void Lives::finish() {
  for (Range &range : ranges) {
    touchTurns(range);
    classify(range);
  }
  findSituations();
  relate();
}

Lives::Class Lives::classOf(const Range &range) const {
  bool once = false, others = false, repeats = !range.addsUp;
  uint32_t first = none, last = none;
  for (const InList &in : range.lists) {
    bool isOnce = in.list == table.onceList();
    once |= isOnce;
    others |= !isOnce;
    repeats &= isOfMicrobatch(table.lists()[in.list].kind);
    if (isOnce || table.runsOf(in.list) == 0)
      continue;
    // Microbatches run their lists in one order, that of their first runs.
    if (first == none || table.firstOf(in.list) < table.firstOf(first))
      first = in.list;
    if (last == none || table.lastOf(in.list) > table.lastOf(last))
      last = in.list;
  }
  if (once)
    return others ? Class{Form::always, none, none}
                  : Class{Form::once, table.onceList(), table.onceList()};
  Class found{repeats ? Form::microbatch : Form::step, first, last,
              range.isSent};
  if (repeats)
    found.lists = listsInAnyOrder(range);
  return found;
}

/// Those that touch it, if a list of weight_grad is one of them and others that
/// stand behind it may run before.
std::vector<uint32_t> Lives::listsInAnyOrder(const Range &range) const {
  std::vector<uint32_t> lists;
  for (const InList &in : range.lists)
    if (table.runsOf(in.list) > 0)
      lists.push_back(in.list);
  std::sort(lists.begin(), lists.end());
  auto late = std::find_if(lists.begin(), lists.end(), [&](uint32_t list) {
    return table.lists()[list].kind == ListKind::weight_grad;
  });
  bool isInOrder = late == lists.end() || std::next(late) == lists.end();
  return isInOrder ? std::vector<uint32_t>() : lists;
}

void Lives::classify(Range &range) {
  if (range.lists.empty())
    return;
  Class found = classOf(range);
  if (found.firstList == none && found.form != Form::always)
    return; // Nothing that runs touches it.
  auto known =
      std::find_if(classes.begin(), classes.end(),
                   [&](const Class &one) { return one.isLike(found); });
  range.group = static_cast<uint32_t>(known - classes.begin());
  if (known == classes.end())
    classes.push_back(found);
  if (!found.lists.empty()) { // It may be any of them that ends the life.
    range.last = none;
    return;
  }
  for (const InList &in : range.lists) {
    if (in.list == found.firstList)
      range.first = in.first;
    if (in.list == found.lastList)
      range.last = in.last;
  }
}

/// Whether a life of the class begins in the action, or ends.
LifeWalk::Ends Lives::endsAt(uint32_t action, const Class &of,
                             Walk &walk) const {
  const Action &at = table.actions()[action];
  if (of.form == Form::step)
    return {action == table.firstOf(of.firstList),
            action == table.lastOf(of.lastList)};
  bool isHere = of.form == Form::microbatch &&
                isOfMicrobatch(table.lists()[at.list()].kind);
  return isHere ? walk.ends.visit(at) : LifeWalk::Ends{false, false};
}

/// Of every class in one action.
std::vector<uint8_t> Lives::statesAt(uint32_t action,
                                     std::vector<Walk> &walks) {
  std::vector<uint8_t> states(classes.size(), 0);
  for (size_t i = 0; i < classes.size(); ++i) {
    Class &of = classes[i];
    if (of.form == Form::once)
      continue;
    auto [first, last] = endsAt(action, of, walks[i]);
    uint32_t others = walks[i].open - (last && !first);
    states[i] = static_cast<uint8_t>(
        (others > 0 || of.form == Form::always || of.isSent ? livesOn : 0) |
        (first && last ? beginsAndEnds
         : first       ? begins
         : last        ? ends
                       : 0));
    of.copies = std::max(of.copies, others + (first || last));
    walks[i].open = others + (first && !last);
  }
  return states;
}

void Lives::addSituation(uint32_t list, std::vector<uint8_t> states) {
  situations.push_back({list, lineLength, std::move(states)});
  lineLength += table.lists()[list].size;
}

void Lives::findSituations() {
  if (table.onceList() != none) {
    std::vector<uint8_t> states(classes.size(), 0);
    for (size_t i = 0; i < classes.size(); ++i)
      states[i] = classes[i].form == Form::once     ? beginsAndEnds
                  : classes[i].form == Form::always ? livesOn
                                                    : 0;
    addSituation(table.onceList(), std::move(states));
  }
  std::set<std::pair<uint32_t, std::vector<uint8_t>>> known;
  std::vector<Walk> walks;
  for (const Class &of : classes)
    walks.push_back({LifeWalk({of.firstList, of.lastList, 0, of.lists})});
  for (uint32_t i = 0; i < table.actions().size(); ++i) {
    uint32_t list = table.actions()[i].list();
    std::vector<uint8_t> states = statesAt(i, walks);
    if (known.emplace(list, states).second)
      addSituation(list, std::move(states));
  }
}

/// Let life x begin in an action and life y end there. They meet only if x's
/// first instruction is not behind y's last one. All other lives of that action
/// meet. Bit k of a relation: they meet if, with k & 1, the first of a <= the
/// last of b, and, with k & 2, the first of b <= the last of a.
void Lives::relate() {
  size_t count = classes.size();
  relations.assign(count * count, 0);
  auto isBegin = [](uint8_t state) { return state & (begins | beginsAndEnds); };
  auto isEnd = [](uint8_t state) { return state & (ends | beginsAndEnds); };
  for (const Situation &at : situations)
    for (size_t a = 0; a < count; ++a)
      for (size_t b = 0; b < count; ++b)
        forEachBit(at.states[a], [&](uint8_t ofA) {
          forEachBit(at.states[b], [&](uint8_t ofB) {
            int k = (isBegin(ofA) && isEnd(ofB) ? 1 : 0) +
                    (isBegin(ofB) && isEnd(ofA) ? 2 : 0);
            relations[a * count + b] |= static_cast<uint8_t>(1 << k);
          });
        });
}

bool Lives::meet(uint32_t a, uint32_t b) const {
  const Range &x = ranges[a], &y = ranges[b];
  if (x.group == none || y.group == none)
    return false;
  uint8_t relation = relations[x.group * classes.size() + y.group];
  int holds = (x.first <= y.last ? 1 : 0) + (y.first <= x.last ? 2 : 0);
  // Conditions that hold allow every bit whose own are among them.
  constexpr uint8_t allowed[] = {0b0001, 0b0011, 0b0101, 0b1111};
  return relation & allowed[holds];
}

uint32_t Lives::copiesOf(uint32_t buffer) const {
  const Range &range = ranges[buffer];
  bool isOne = !isTouched(buffer) || (range.isKept && !range.isInput);
  return isOne ? 1 : classes[range.group].copies;
}

Copies Lives::copies() const {
  std::vector<CopyClass> all;
  for (const Class &of : classes)
    all.push_back({of.firstList, of.lastList,
                   of.form == Form::microbatch ? of.copies : 1, of.lists});
  return {table, std::move(all)};
}

Lives::Place Lives::placeAt(uint64_t time) const {
  auto next = std::upper_bound(
      situations.begin(), situations.end(), time,
      [](uint64_t t, const Situation &at) { return t < at.begin; });
  const Situation &at = *std::prev(next);
  return {at.list, static_cast<uint32_t>(time - at.begin)};
}

std::vector<Span> Lives::spansOf(uint32_t buffer) const {
  std::vector<Span> spans;
  const Range &range = ranges[buffer];
  if (range.group == none)
    return spans;
  for (const Situation &at : situations) {
    uint64_t size = table.lists()[at.list].size;
    uint8_t state = at.states[range.group];
    if (size == 0 || state == 0)
      continue;
    // Another copy that lives on keeps the range of all alive.
    bool isPart = !(state & livesOn);
    uint64_t from =
                 isPart && state & (begins | beginsAndEnds) ? range.first : 0,
             to = isPart && state & (ends | beginsAndEnds) ? range.last
                                                           : size - 1;
    to = std::min(to, size - 1); // range.last may be any
    spans.push_back({at.begin + from, at.begin + to});
  }
  return spans;
}

Lives::Place Lives::firstTouch(uint32_t buffer) const {
  const Range &range = ranges[buffer];
  return {classes[range.group].firstList, range.first};
}
Lives::Place Lives::lastTouch(uint32_t buffer) const {
  const Range &range = ranges[buffer];
  uint32_t list = classes[range.group].lastList,
           size = list == none ? 0 : table.lists()[list].size;
  return {list, std::min(range.last, size > 0 ? size - 1 : 0)};
}
bool Lives::isAlways(uint32_t buffer) const {
  return isTouched(buffer) &&
         classes[ranges[buffer].group].form == Form::always;
}

} // namespace meshwork::plan
