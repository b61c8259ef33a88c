// What a stage between two others takes for a microbatch. Choices with other
// numbers of stages on each rank have the same lists, and so have schedules
// that split the backward pass. So one sketch tells of all of them.
#pragma once

#include "lib/Schedules/Table.h"
#include "tools/meshwork/tune/Choice.h"

namespace meshwork::tune {

/// Seconds of one run that is not the last of its step. The backward pass is
/// whole, or in two parts.
struct OfLists {
  double forward = 0, backward = 0, inputGrad = 0, weightGrad = 0;
};

OfLists listsOf(const schedules::Costs &costs, size_t stage);

/// With one layer, and with two.
struct InnerStage {
  OfLists one, two;
  bool isKnown() const { return two.forward > 0; }
};

/// Whether weights or gradients of a choice move for each microbatch.
bool movesInLists(const Choice &choice);

/// The choice whose sketch tells it of `choice`: with as few stages as have
/// one between two others.
Choice fewestStages(Choice choice);

/// Whether that tells more than the body of `choice`: what moves at the ends of
/// a list is not hidden by its work, and a split backward pass may be split
/// anywhere.
bool isToldByStages(const Choice &choice);

} // namespace meshwork::tune
