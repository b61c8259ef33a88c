// Compiles without code, as `meshwork compile --estimate` does.
#pragma once

#include "lib/Spec/Spec.h"
#include "tools/meshwork/tune/Costed.h"
#include "tools/meshwork/tune/Facts.h"

namespace meshwork::tune {

/// What the plan of a model should take. Says nothing on stderr.
///   text  the model in the transformer dialect
Costed costOf(const std::string &text, const spec::Spec &spec);

struct Compiled {
  Costed costed;
  double secondsOfMicrobatch = 0; // forward and backward; of one stage
  uint64_t storedBytes = 0;       // what always lives; of the first rank
};
/// The same of the model with so many of its layers.
Compiled compileShallow(const std::string &text, const spec::Spec &spec,
                        int64_t layers);

/// Reads a model, in a child whose time and memory are bounded by the size of
/// its text, and looks at one sequence of its step. Messages go to stderr; an
/// exit code.
///   spec  of one rank, with a microbatch of one sequence
int readFacts(const std::string &modelText, const std::string &path,
              const spec::Result &spec, Facts &facts);

} // namespace meshwork::tune
