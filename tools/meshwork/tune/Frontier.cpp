#include "tools/meshwork/tune/Frontier.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace meshwork::tune {

void Frontier::add(Space &all) {
  space = &all;
  all.visit([&](const Choice &choice) { add(choice); });
  bodies.findRoots();
  pushChanged();
}

/// Bounds are cut to half a percent. Of those that are as low, a body on fewer
/// ranks comes first: it tells of the others.
Frontier::Node Frontier::unknownBody(size_t which, double bound) const {
  constexpr double steps = 200;
  const Choice &body = bodies[which].body;
  double cut = bound > 0 && bound < infinity
                   ? std::exp(std::floor(std::log(bound) * steps) / steps)
                   : bound;
  return {std::min(cut, bound), which, Node::all, body.tp * body.cp};
}

void Frontier::add(const Choice &choice) {
  count += familyOf(choice);
  if (stagesOf(choice) > static_cast<uint64_t>(facts.layers)) {
    countUnlayered += familyOf(choice);
    auto isDivided = [&](const Choice &one) {
      return global % one.dataParallel() == 0;
    };
    if (!firstUnlayered || (isDivided(choice) && !isDivided(*firstUnlayered)))
      firstUnlayered = choice;
  } else
    admit(choice);
}

/// Of its choices that may fit; infinite where none may. Those that give way to
/// others add these.
double Frontier::boundOfBody(size_t which) {
  double least = infinity;
  Bodies::Seconds seconds = bodies.rankSeconds(which);
  for (size_t i = 0; i < bodies[which].members.size(); ++i) {
    size_t member = bodies[which].members[i];
    if (isLeftOut[member])
      continue;
    double bytes = leastBytes(which, member);
    if (isTooLarge(bytes))
      leaveOut(member, bytes);
    else
      least = std::min(least,
                       std::max(bounds.seconds(choices[member]),
                                ofBodies.seconds(besides[member],
                                                 seconds.of(choices[member]))));
  }
  return least;
}

/// Of a choice of the body, by what other bodies tell of it.
double Frontier::leastBytes(size_t which, size_t member) {
  return ofBodies.bytes(choices[member], bodies.keptOfLayer(which),
                        bodies.splitKeptOfLayer(which));
}

Frontier::Next Frontier::ofBody(size_t which, double bound) {
  states[which] = State::started;
  const Choice &body = bodies[which].body;
  return {Next::body, which, body,
          static_cast<uint32_t>(body.dataParallel()) * body.micro *
              bodies[which].microbatches,
          bound};
}

std::vector<Frontier::Next> Frontier::roots() {
  std::vector<Next> all;
  for (size_t which : bodies.roots())
    all.push_back(ofBody(which, 0));
  return all;
}

/// Of the first bodies of each recompute, the longest pipeline of those that
/// take little time: there what a layer needs once is least for a microbatch.
std::vector<Frontier::Next> Frontier::rootSketches() {
  std::vector<Next> all;
  std::set<std::pair<uint32_t, Word>> seen;
  for (size_t which : bodies.roots()) {
    const Choice &body = bodies[which].body;
    if (body.zeroStage > 0 || !seen.insert({body.ep, body.recompute}).second)
      continue;
    std::optional<size_t> longest;
    for (size_t member : bodies[which].members)
      if (tellsOfSplit(choices[member]) &&
          (!longest || choices[member].pp > choices[*longest].pp))
        longest = member;
    if (longest)
      all.push_back({Next::splitSketch, *longest, choices[*longest]});
  }
  return all;
}

/// The states of few layers may fit one window, which hides nothing: a step of
/// more layers takes less for each.
bool Frontier::isSketched(const Choice &choice) const {
  bool isTold = !choice.offloads ||
                bounds.stateBytes(choice, facts.leastOfLayer) > 2 * windowBytes;
  return isTold && tune::isSketched(choice, facts);
}

bool Frontier::tellsOfSplit(const Choice &choice) const {
  return choice.schedule == "zb-h1" && choice.zeroStage <= 1 &&
         choice.pp <= 8 && 4 * int64_t{choice.pp} <= facts.layers &&
         isSketched(choice);
}

/// What it is known to need by what was measured, of it and of others.
Body Frontier::measuredBody(const Choice &choice) {
  size_t which = bodies.of(choice);
  Body body = *bodies[which].measured;
  body.splitKept = bodies.splitKeptOfLayer(which);
  return body;
}

/// A body takes a fraction of what a choice or its sketch takes, and tells of
/// more.
constexpr uint32_t turns = 64, turnsToChoice = 16;

std::optional<Frontier::Next> Frontier::next(double seconds) {
  auto isWanted = [&](const Nodes &nodes) {
    return !nodes.empty() && nodes.top().bound < seconds;
  };
  auto isAnyWanted = [&] {
    pushChanged();
    return isWanted(unknown) || isWanted(known) || isWanted(ready);
  };
  while (isAnyWanted()) {
    if (isWanted(known) && !isOpen(known.top())) {
      tighten();
      continue; // It may not be wanted any more.
    }
    if ((isWanted(known) && tightenByKin(known)) ||
        (isWanted(ready) && tightenByKin(ready)))
      continue; // Likewise.
    if (std::optional<Next> found = nextInTurn(isWanted)) {
      turn = (turn + 1) % turns;
      return found;
    }
  }
  return std::nullopt;
}

/// Of choices that with the least bound comes first, but for the one that is
/// compiled in its turn.
std::optional<Frontier::Next>
Frontier::nextInTurn(const std::function<bool(const Nodes &)> &isWanted) {
  bool isOfBody = isWanted(unknown) && turn % turnsToChoice != 0;
  if (isOfBody || (!isWanted(known) && !isWanted(ready)))
    return nextBody();
  bool isReady = isWanted(ready) && (!isWanted(known) || turn == 0 ||
                                     ready.top().bound < known.top().bound);
  return nextChoice(isReady ? ready : known);
}

/// What other bodies told since then may have raised its bound.
std::optional<Frontier::Next> Frontier::nextBody() {
  Node node = unknown.top();
  unknown.pop();
  if (states[node.which] != State::waiting)
    return std::nullopt;
  double bound = boundOfBody(node.which);
  if (Node now = unknownBody(node.which, bound); now.bound > node.bound) {
    if (bound < infinity)
      unknown.push(now);
  } else
    return ofBody(node.which, bound);
  return std::nullopt;
}

Frontier::Next Frontier::nextChoice(Nodes &nodes) {
  Node node = nodes.top();
  nodes.pop();
  const Choice &choice = choices[node.which];
  Next next{kindOf(node), node.which, choice, 0, node.bound, bytesOf(choice)};
  if (next.kind == Next::stages) {
    next.choice = fewestStages(choice);
    stages[next.choice]; // Others wait for it.
  }
  return next;
}

Frontier::Next::Kind Frontier::kindOf(const Node &node) {
  if (node.level == Node::ofStages)
    return Next::stages;
  if (node.level == Node::ofKin)
    return Next::sketch;
  bool hasLayouts =
      node.level == Node::all && ofBodies.hasLayouts(choices[node.which]);
  return hasLayouts ? Next::balanced : Next::whole;
}

/// Of the first choice whose body is known, by what takes longer to look at.
void Frontier::tighten() {
  Node node = known.top();
  known.pop();
  if (node.level == Node::ofBody)
    tightenByBody(node);
  else if (node.level == Node::simulated)
    push(byKin(node));
  else
    tightenByStages(node);
}

/// Its schedule may tell more than was known, or its layers find no place.
void Frontier::tightenByBody(const Node &node) {
  Choice choice = choices[node.which]; // more may be added
  Body body = measuredBody(choice);
  if (ofBodies.isCrowded(choice, body))
    giveWay(node.which);
  bool hasMore =
      isSketched(choice) || hasStages(choice) || ofBodies.hasLayouts(choice);
  double bound = std::max(node.bound, ofBodies.simulated(choice, body));
  push({bound, node.which, hasMore ? Node::simulated : Node::all, 0, bound});
}

/// It is about to be compiled; what was compiled of another may tell as much.
Frontier::Node Frontier::byKin(Node node) {
  const Choice &choice = choices[node.which];
  if (kin.isTooLarge(choice, measuredBody(choice)))
    node.bound = infinity;
  else
    node.bound = std::max(node.bound, node.alone + kin.beyond(choice));
  if (node.level == Node::simulated)
    node.level = hasStages(choice)    ? Node::ofStages
                 : isSketched(choice) ? Node::ofKin
                                      : Node::all;
  return node;
}

/// Whether another choice tells of its stages.
bool Frontier::hasStages(const Choice &choice) const {
  Choice fewest = fewestStages(choice);
  return isToldByStages(choice) && fewest != choice && isSketched(fewest);
}

/// Whether something is to be compiled for it.
bool Frontier::isOpen(const Node &node) const {
  if (node.level == Node::ofStages)
    return !stages.contains(fewestStages(choices[node.which]));
  return node.level == Node::ofKin;
}

/// Kin differ more in what their lists tell than in what whole sketches do.
constexpr double sureOfKin = 0.9;

void Frontier::tightenByStages(Node node) {
  Choice choice = choices[node.which]; // more may be added
  Stages &told = stages[fewestStages(choice)];
  if (!told.isDone) {
    told.waiting.push_back(node);
    return;
  }
  double bound = ofBodies.ofLists(choice, measuredBody(choice), told.inner);
  if (bound > node.alone && bound < infinity)
    kin.noteSlower(choice, sureOfKin * (bound - node.alone));
  node.bound = std::max(node.bound, bound);
  node.level = isSketched(choice) ? Node::ofKin : Node::all;
  push(node);
}

/// The first of them, by what kin told since it was looked at; whether that is
/// more.
bool Frontier::tightenByKin(Nodes &nodes) {
  Node node = nodes.top();
  if (node.alone == 0)
    return false;
  Node now = byKin(node);
  if (now.bound <= node.bound)
    return false;
  nodes.pop();
  push(now);
  return true;
}

/// What does not fit has no bound.
void Frontier::push(const Node &node) {
  if (node.bound == infinity)
    leaveOut(node.which, infinity);
  else
    (node.level >= Node::all ? ready : known).push(node);
}

double Frontier::bytesOf(const Choice &choice) {
  return bodies[bodies.of(choice)].measured
             ? ofBodies.bytes(choice, measuredBody(choice))
             : bounds.bytes(choice);
}

std::pair<size_t, double> Frontier::left() {
  pushChanged();
  for (auto &[choice, told] : stages)
    for (const Node &node : std::exchange(told.waiting, {}))
      known.push(node);
  std::pair<size_t, double> all{numSlower, infinity};
  std::set<size_t> seen; // bodies
  for (const Nodes *nodes : {&unknown, &known, &ready})
    for (const Node &node : nodes->all()) {
      if (nodes == &unknown && (states[node.which] != State::waiting ||
                                !seen.insert(node.which).second))
        continue; // Its choices are known, or refused, or were counted.
      if (nodes == &unknown)
        all.first += specsOfBody(node.which);
      else
        all.first += specsOf(node.which);
      all.second = std::min(all.second, node.bound);
    }
  return all;
}

} // namespace meshwork::tune
