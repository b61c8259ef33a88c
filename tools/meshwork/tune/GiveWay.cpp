// Choices that need too much memory give way to the same ones with more in the
// host's memory. These take no less time, so nobody looks at them before.
#include "tools/meshwork/tune/Frontier.h"

namespace meshwork::tune {

/// One of the space, or one that another gives way to. Of millions most are too
/// large: these are counted alone.
void Frontier::admit(const Choice &choice) {
  if (double bytes = bounds.bytes(choice); isTooLarge(bytes)) {
    countTooLarge(choice, bytes);
    return admitLighter(choice);
  }
  size_t which = choices.size(), body = bodies.add(choice, which);
  choices.push_back(choice);
  besides.push_back(ofBodies.besideOf(choice));
  isLeftOut.push_back(false);
  hasGivenWay.push_back(false);
  states.resize(bodies.size(), State::waiting);
  place(which, body);
}

void Frontier::admitLighter(const Choice &choice) {
  space->lighter(choice, [&](const Choice &other) { admit(other); });
}

/// By what is known of its body. What that of others told may be of no use any
/// more: it goes to the bodies that are looked at again.
void Frontier::place(size_t which, size_t body) {
  switch (states[body]) {
  case State::waiting:
    changed.insert(body);
    break;
  case State::started: // note() does it.
    break;
  case State::known:
    placeByBody(which);
    break;
  case State::refused:
    noteRefused(which, reasons[body]);
    break;
  case State::unknowable:
    ready.push({bounds.seconds(choices[which]), which, Node::unbalanced});
    break;
  }
}

/// Where its layers find no place but in uneven stages, others may be faster.
void Frontier::placeByBody(size_t which) {
  Choice choice = choices[which]; // more may be added
  Body body = measuredBody(choice);
  if (double bytes = ofBodies.bytes(choice, body); isTooLarge(bytes))
    return leaveOut(which, bytes);
  known.push({ofBodies.seconds(choice, body), which, Node::ofBody});
  if (ofBodies.isCrowded(choice, body))
    giveWay(which);
}

/// Bodies that got choices since then. Their bounds may add some to others.
void Frontier::pushChanged() {
  while (!changed.empty()) {
    size_t body = *changed.begin();
    double bound = infinity;
    if (states[body] == State::waiting)
      bound = boundOfBody(body);
    if (bound < infinity)
      unknown.push(unknownBody(body, bound));
    changed.erase(body);
  }
}

void Frontier::countTooLarge(const Choice &choice, double bytes) {
  ++numTooLarge;
  if (bytes < leastTooLarge) {
    leastTooLarge = bytes;
    leastLarge = choice;
  }
}

void Frontier::leaveOut(size_t which, double bytes) {
  isLeftOut[which] = true;
  countTooLarge(choices[which], bytes);
  giveWay(which);
}

void Frontier::giveWay(size_t which) {
  bool isNew = !hasGivenWay[which];
  hasGivenWay[which] = true;
  if (isNew)
    admitLighter(Choice(choices[which])); // more are added
}

/// It, and all that it and they may give way to.
size_t Frontier::familyOf(const Choice &choice) const {
  size_t many = 1;
  space->lighter(choice, [&](const Choice &other) { many += familyOf(other); });
  return many;
}

size_t Frontier::specsOf(size_t which) const {
  return hasGivenWay[which] ? 1 : familyOf(choices[which]);
}

size_t Frontier::specsOfBody(size_t body) const {
  size_t many = 0;
  for (size_t member : bodies[body].members)
    many += isLeftOut[member] ? 0 : specsOf(member);
  return many;
}

void Frontier::noteWhole(size_t which, bool isShort) {
  if (isShort)
    giveWay(which);
  else
    numSlower += specsOf(which) - 1;
}

void Frontier::noteRefused(size_t which, const std::string &why) {
  refusals[why] += specsOf(which);
}

} // namespace meshwork::tune
