// What was compiled tells: of its own choice, and of others.
#include "tools/meshwork/tune/Frontier.h"

#include <algorithm>
#include <utility>

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
  Choice choice = choices[which]; // more may be added
  bool isKnown = sketch && sketch->status == Costed::done &&
                 sketch->bytes.size() == choice.pp &&
                 (choice.pp == 1 || sketch->ofLayer.size() == choice.pp);
  if (isKnown && tellsOfSplit(choice))
    noteSplit(which, *sketch);
  Body body = measuredBody(choice);
  double seconds = isKnown ? ofBodies.sketched(choice, body, *sketch) : 0;
  if (isKnown && fewestStages(choice) == choice) {
    noteStages(choice, sketch->inner);
    seconds = std::max(seconds, ofBodies.ofLists(choice, body, sketch->inner));
  }
  if (isKnown)
    noteKin(choice, body, *sketch, seconds);
  if (isKnown && ofBodies.isCrowded(choice, body, sketch))
    giveWay(which);
  push({std::max(bound, seconds), which});
}

/// Where it tells nothing, its choices go on without.
void Frontier::noteStages(size_t which, double bound, const Sketch *sketch) {
  bool isKnown = sketch && sketch->status == Costed::done;
  noteStages(fewestStages(choices[which]),
             isKnown ? sketch->inner : InnerStage());
  known.push({bound, which, Node::ofStages, 0, bound});
}

/// What waited for it goes on.
void Frontier::noteStages(const Choice &fewest, const InnerStage &inner) {
  Stages &told = stages[fewest];
  told.isDone = true;
  told.inner = inner;
  for (const Node &node : std::exchange(told.waiting, {}))
    known.push(node);
}

/// What was told before was of balanced stages.
void Frontier::noteBalanced(size_t which, const Costed &balanced) {
  Choice choice = choices[which]; // more may be added
  Body body = measuredBody(choice);
  kin.noteSlower(choice,
                 ofBodies.beyondBalanced(choice, body, balanced.seconds));
  if (balanced.bytes <= limit)
    return;
  double seconds = ofBodies.unbalanced(choice, body, balanced);
  if (seconds == infinity) {
    kin.noteTooLarge(choice, body);
    leaveOut(which, static_cast<double>(balanced.bytes));
  } else {
    giveWay(which);
    push({std::max(bounds.seconds(choice), seconds), which, Node::unbalanced});
  }
}

/// What refuses a body refuses its choices: heads, say.
void Frontier::refuse(size_t which, const std::string &why) {
  std::vector<size_t> all = bodies.refusedWith(which, why);
  all.push_back(which);
  for (size_t body : all)
    if (body == which || states[body] == State::waiting) {
      states[body] = State::refused;
      reasons[body] = why;
      for (size_t member : bodies[body].members)
        if (!isLeftOut[member])
          noteRefused(member, why);
    }
}

void Frontier::note(size_t which, const Body *measured) {
  if (measured)
    bodies.note(which, *measured);
  if (measured && measured->status == Costed::refused)
    return refuse(which, measured->why);
  bool isKnown = measured && measured->status == Costed::done;
  states[which] = isKnown ? State::known : State::unknowable;
  size_t many = bodies[which].members.size(); // more are placed by themselves
  for (size_t i = 0; i < many; ++i)
    if (size_t member = bodies[which].members[i]; !isLeftOut[member])
      place(member, which);
}

} // namespace meshwork::tune
