#include "tools/meshwork/tune/Frontier.h"

#include <algorithm>

namespace meshwork::tune {

void Frontier::add(Space &space) {
  space.visit([&](const Choice &choice) { add(choice); });
  bodies.findRoots();
  isStarted.assign(bodies.size(), false);
  for (size_t i = 0; i < bodies.size(); ++i)
    unknown.push({boundOfBody(i), i});
}

/// Of millions most are too large: these are counted alone.
void Frontier::add(const Choice &choice) {
  ++count;
  if (stagesOf(choice) > static_cast<uint64_t>(facts.layers)) {
    if (countUnlayered++ == 0)
      firstUnlayered = choice;
  } else if (fits(choice, bounds.bytes(choice))) {
    bodies.add(choice, choices.size());
    choices.push_back(choice);
    besides.push_back(ofBodies.besideOf(choice));
  }
}

bool Frontier::fits(const Choice &choice, double bytes) {
  if (limit == 0 || bytes <= static_cast<double>(limit))
    return true;
  ++numTooLarge;
  if (bytes < leastTooLarge) {
    leastTooLarge = bytes;
    leastLarge = choice;
  }
  return false;
}

/// Of its choices that may fit; infinite where none may.
double Frontier::boundOfBody(size_t which) {
  double least = infinity;
  Bodies::Seconds seconds = bodies.rankSeconds(which);
  for (size_t member : bodies[which].members)
    if (limit == 0 || leastBytes(which, member) <= static_cast<double>(limit))
      least = std::min(least,
                       std::max(bounds.seconds(choices[member]),
                                ofBodies.seconds(besides[member],
                                                 seconds.of(choices[member]))));
  return least;
}

/// Of a choice of the body, by what other bodies tell of it.
double Frontier::leastBytes(size_t which, size_t member) {
  return ofBodies.bytes(choices[member], bodies.keptOfLayer(which));
}

Frontier::Next Frontier::ofBody(size_t which, double bound) {
  isStarted[which] = true;
  return {true, which, bodies[which].body, bodies[which].global, bound};
}

std::vector<Frontier::Next> Frontier::roots() {
  std::vector<Next> all;
  for (size_t which : bodies.roots())
    all.push_back(ofBody(which, 0));
  return all;
}

/// A body takes a fraction of a choice, and tells of many.
constexpr uint32_t bodiesAndChoice = 8;

std::optional<Frontier::Next> Frontier::next(double seconds) {
  auto isWanted = [&](const Nodes &nodes) {
    return !nodes.empty() && nodes.top().bound < seconds;
  };
  while (isWanted(unknown) || isWanted(known)) {
    if (isWanted(known) && !known.top().isTight) {
      tighten();
      continue; // It may not be wanted any more.
    }
    bool isChoice = isWanted(known) && (turn == 0 || !isWanted(unknown));
    if (std::optional<Next> found = isChoice ? nextChoice() : nextBody()) {
      turn = (turn + 1) % bodiesAndChoice;
      return found;
    }
  }
  return std::nullopt;
}

/// What other bodies told since then may have raised its bound.
std::optional<Frontier::Next> Frontier::nextBody() {
  Node node = unknown.top();
  unknown.pop();
  double bound = boundOfBody(node.which);
  if (bound == infinity)
    for (size_t member : bodies[node.which].members)
      fits(choices[member], leastBytes(node.which, member));
  else if (bound > node.bound)
    unknown.push({bound, node.which});
  else if (!isStarted[node.which])
    return ofBody(node.which, node.bound);
  return std::nullopt;
}

Frontier::Next Frontier::nextChoice() {
  Node node = known.top();
  known.pop();
  const Choice &choice = choices[node.which];
  return {false, node.which, choice, 0, node.bound, bytesOf(choice)};
}

/// The schedule of the first choice may tell more than was known.
void Frontier::tighten() {
  Node node = known.top();
  known.pop();
  const Choice &choice = choices[node.which];
  const Body &body = *bodies[bodies.of(choice)].measured;
  known.push(
      {std::max(node.bound, ofBodies.simulated(choice, body)), node.which});
}

double Frontier::bytesOf(const Choice &choice) {
  const std::optional<Body> &body = bodies[bodies.of(choice)].measured;
  return body ? ofBodies.bytes(choice, *body) : bounds.bytes(choice);
}

void Frontier::note(size_t which, const Body *measured) {
  if (measured)
    bodies.note(which, *measured);
  if (measured && measured->status == Costed::refused)
    return; // What refuses it refuses its choices: heads, say.
  bool isKnown = measured && measured->status == Costed::done;
  for (size_t member : bodies[which].members) {
    const Choice &choice = choices[member];
    if (!isKnown)
      known.push({bounds.seconds(choice), member});
    else if (fits(choice, ofBodies.bytes(choice, *measured)))
      known.push({ofBodies.seconds(choice, *measured), member, choice.pp == 1});
  }
}

std::pair<size_t, double> Frontier::left() const {
  std::pair<size_t, double> all{0, infinity};
  for (const Nodes *nodes : {&unknown, &known})
    for (const Node &node : nodes->all()) {
      all.first += nodes == &unknown ? choicesOf(node.which) : 1;
      all.second = std::min(all.second, node.bound);
    }
  return all;
}

} // namespace meshwork::tune
