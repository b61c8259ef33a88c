// Compiles without code, as `meshwork compile --estimate` does.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"
#include "tools/meshwork/tune/Costed.h"
#include "tools/meshwork/tune/Facts.h"
#include "tools/meshwork/tune/HostTraffic.h"
#include "tools/meshwork/tune/InnerStage.h"
#include "tools/meshwork/tune/Waits.h"

#include <set>

namespace meshwork::tune {

/// What the plan of a model should take. Says nothing on stderr.
Costed costOf(mlir::ModuleOp model, const spec::Spec &spec);

/// The same of a pipeline with balanced stages, whether these fit or not. Where
/// they do, it is what costOf() tells.
Costed costOfBalanced(mlir::ModuleOp model, spec::Spec spec);

struct Compiled {
  Costed costed;
  /// Seconds of one run of each list that is not the last of its step, by
  /// stages.
  schedules::Costs lists;
  Waits waits;              // of these, of the first rank
  double update = 0;        // seconds of a step; likewise
  uint64_t storedBytes = 0; // what always lives; likewise
  ToHost toHost;            // likewise
};
/// The same as costOf(), and more of it.
///   ranks   of the whole search. The spec has fewer; the others share their
///           node with these, and the slowest one's seconds count
///   layers  numbers of those that stay in the model; none: all
Compiled compileWith(mlir::ModuleOp model, const spec::Spec &spec,
                     uint32_t ranks, const std::set<size_t> &layers = {});

/// Cuts all other layers out; whether that can be done.
bool keepLayers(mlir::ModuleOp module, const std::set<size_t> &layers);

/// Reads a model, in a child whose time and memory are bounded by the size of
/// its text, and looks at one sequence of its step. Messages go to stderr; an
/// exit code.
///   spec  of one rank, with a microbatch of one sequence
int readFacts(const std::string &modelText, const std::string &path,
              const spec::Result &spec, Facts &facts);

} // namespace meshwork::tune
