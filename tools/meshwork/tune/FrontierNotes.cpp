// What was compiled tells: of its own choice, and of others.
#include "tools/meshwork/tune/Frontier.h"

#include <algorithm>

namespace meshwork::tune {

void Frontier::noteSplit(size_t which, const Sketch &sketch) {
  const Choice &choice = choices[which];
  double kept =
      sketch.status == Costed::done ? ofBodies.splitKept(choice, sketch) : 0;
  if (kept > 0)
    bodies.noteSplit(bodies.of(choice), kept);
}

/// What `seconds`, by its sketch, tells of others.
void Frontier::noteKin(const Choice &choice, const Body &body,
                       const Sketch &sketch, double seconds) {
  if (seconds == infinity)
    kin.noteTooLarge(choice, body);
  else
    kin.noteSlower(choice, ofBodies.beyondBody(choice, body, sketch));
}

void Frontier::note(size_t which, double bound, const Sketch *sketch) {
  const Choice &choice = choices[which];
  bool isKnown = sketch && sketch->status == Costed::done &&
                 sketch->bytes.size() == choice.pp &&
                 (choice.pp == 1 || sketch->ofLayer.size() == choice.pp);
  if (isKnown && tellsOfSplit(choice))
    noteSplit(which, *sketch);
  Body body = measuredBody(choice);
  double seconds = isKnown ? ofBodies.sketched(choice, body, *sketch) : 0;
  if (isKnown)
    noteKin(choice, body, *sketch, seconds);
  push({std::max(bound, seconds), which});
}

/// What was told before was of balanced stages.
void Frontier::noteBalanced(size_t which, const Costed &balanced) {
  const Choice &choice = choices[which];
  Body body = measuredBody(choice);
  kin.noteSlower(choice,
                 ofBodies.beyondBalanced(choice, body, balanced.seconds));
  if (balanced.bytes <= limit)
    return;
  double seconds = ofBodies.unbalanced(choice, body, balanced);
  if (seconds == infinity) {
    kin.noteTooLarge(choice, body);
    fits(choice, static_cast<double>(balanced.bytes));
  } else
    push({std::max(bounds.seconds(choice), seconds), which, Node::unbalanced});
}

/// What refuses a body refuses its choices: heads, say.
size_t Frontier::refuse(size_t which, const std::string &why) {
  size_t refused = bodies[which].members.size();
  for (size_t other : bodies.refusedWith(which, why))
    if (!isStarted[other]) {
      isStarted[other] = true;
      refused += bodies[other].members.size();
    }
  return refused;
}

size_t Frontier::note(size_t which, const Body *measured) {
  Body told = measured ? *measured : Body();
  if (measured)
    bodies.note(which, told);
  told.splitKept = bodies.splitKeptOfLayer(which);
  if (measured && measured->status == Costed::refused)
    return refuse(which, measured->why);
  bool isKnown = measured && measured->status == Costed::done;
  for (size_t member : bodies[which].members) {
    const Choice &choice = choices[member];
    if (!isKnown)
      ready.push({bounds.seconds(choice), member, Node::unbalanced});
    else if (fits(choice, ofBodies.bytes(choice, told)))
      known.push({ofBodies.seconds(choice, *measured), member, Node::ofBody});
  }
  return 0;
}

} // namespace meshwork::tune
