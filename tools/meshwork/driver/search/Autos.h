// What a spec leaves open, one function for each. A file has the ways of one
// choice, what they change, and what is said of the one that is taken.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/codegen/plan/PlanWriter.h"

namespace meshwork::driver {

/// What has been chosen: a line each, and what the plan says of it.
struct Said {
  std::string text;
  std::vector<codegen::Choice> choices = {};

  /// Adds a line: what `print` prints.
  void add(llvm::function_ref<void(llvm::raw_ostream &)> print);
};

/// A compilation that has come to a choice.
struct AtChoice {
  mlir::ModuleOp module; // as the phase before the choice leaves it
  spec::Spec &spec;      // gets what is chosen
  Said &said;
  /// Gets what all phases that are left make of the module, where the choice
  /// needed that and nothing else is left to choose.
  mlir::OwningOpRef<mlir::ModuleOp> &finished;
};

// Each does nothing where the spec leaves it nothing to choose, and fails by a
// fault of the compiler, which is told. What all ways are refused for is told
// when the one is compiled that the spec gets then.

bool isContextOpen(const spec::Spec &spec);
/// `context.method`, before "step": the method with which a step should take
/// least time; "gathered" without attention.
mlir::LogicalResult chooseContext(const AtChoice &at);

bool isExchangeOpen(const spec::Spec &spec);
/// `experts.exchange`, before "shard": how tokens of each layer reach their
/// experts in least time. All start gathered; layers of one form after those of
/// another are tried exchanged, with those before as they were chosen. Where
/// forms differ, their ops say it and the spec stays.
mlir::LogicalResult chooseExchange(const AtChoice &at);

bool isZeroOpen(const spec::Spec &spec);
/// `zero.gathered` and `zero.reduce`, before "shard": the fastest way that fits
/// the memory of a rank, each with all that is chosen later.
mlir::LogicalResult chooseZero(const AtChoice &at);

/// `pipeline.layers`, before "pipeline", where balanced layers need more than
/// there is: of the layouts that fit the one with the least work in its slowest
/// stage, else the one that needs least. README.md tells how it goes with
/// choices that come later.
mlir::LogicalResult chooseLayers(const AtChoice &at);

/// `pipeline.schedule`, before "pipeline": the seconds that the search for a
/// schedule goes by, and how many microbatches a rank may keep. The smallest
/// number where none fits.
mlir::LogicalResult chooseSchedule(const AtChoice &at);

/// `recompute.policy`, before "recompute": a policy for each layer, so that
/// least is computed again of what fits; all "full" where nothing does.
mlir::LogicalResult chooseRecompute(const AtChoice &at);

} // namespace meshwork::driver
