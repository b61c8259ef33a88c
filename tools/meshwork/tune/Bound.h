// What no plan of a choice can take less than, without compiling it. Nothing
// here is more than a plan's own figures (test/EndToEnd/test_tune.py compares),
// so what is left out for it is not the best.
#pragma once

#include "lib/Cost/Machine.h"
#include "lib/Spec/Spec.h"
#include "tools/meshwork/tune/Choice.h"
#include "tools/meshwork/tune/Facts.h"

namespace meshwork::tune {

class Bound {
public:
  /// What --fixed says: which layers each stage has, what gradients are, and
  /// whether the compiler chooses something.
  struct Given {
    bool layers = false, gradients = false, isOpen = false;
  };
  /// `spec` has the keys that are no part of the choices.
  Bound(const spec::Spec &spec, const Facts &facts, Given given);

  /// Seconds of a step: all flops of the model, shared evenly, at the rates of
  /// work without limit of size, and how long a pipeline takes to fill.
  double seconds(const Choice &choice) const;
  /// Bytes of the rank that needs most: weights, gradients and what the
  /// optimizer keeps, shared evenly.
  double bytes(const Choice &choice) const;

  double global() const { return ofStep; }
  double microbatches(const Choice &choice) const;
  /// Seconds of a step, if all stages together take so many for a microbatch.
  double ofPipeline(const Choice &choice, double ofMicrobatch) const;
  /// Of so many of the model's parameters, on each rank that has a part.
  double storedBytes(const Choice &choice, double parameters) const;
  /// Likewise, of masters and what else the optimizer keeps, wherever it lies.
  double stateBytes(const Choice &choice, double parameters) const;

private:
  double ofSequence; // seconds of one on one rank
  double parameters;
  double weights, states, gradients; // bytes of a parameter
  double gathered;                   // likewise, of weights that were gathered
  double sums;     // of a gradient that several microbatches add to
  uint32_t ofStep; // sequences
};

} // namespace meshwork::tune
