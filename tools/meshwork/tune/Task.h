// What a process of the search compiles, and what its result depends on.
#pragma once

#include "tools/meshwork/tune/Facts.h"
#include "tools/meshwork/tune/Frontier.h"
#include "tools/meshwork/tune/Models.h"

namespace meshwork::tune {

struct Task {
  enum Kind {
    ofBody,
    ofSplit,
    ofStages,
    ofSketch,
    ofBalanced,
    ofChoice,
    ofUsual
  } kind = ofChoice;
  size_t which = 0; // body, choice of the frontier, or usual one
  Choice choice = {};
  uint32_t global = 0; // sequences of a step
  double bound = 0, bytes = 0;

  bool isSketch() const {
    return kind == ofSplit || kind == ofStages || kind == ofSketch;
  }
};

Task::Kind kindOf(const Frontier::Next &next);

/// Compiles it: JSON of a Body, a Sketch or a Costed.
///   ranks  of the search
std::string resultOf(const Task &task, const spec::Spec &spec,
                     const Facts &facts, const Models &models, uint32_t ranks);

/// All that this depends on, beside the program.
///   settled  the spec, as Specs::settledText() says it
std::string contentOf(const Task &task, const std::string &settled,
                      const Facts &facts, uint32_t ranks);

} // namespace meshwork::tune
