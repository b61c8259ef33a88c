// A model and a spec, compiled for all ranks and run: what each rank holds is
// cut from global tensors before, and put together after.
//
//   Compiled many(model, spec);
//   ASSERT_TRUE(many.program) << many.diagnostics;
//   expectSameStep(runStep(many, data), runStep(one, data));
#pragma once

#include "Harness.h"
#include "lib/Sharding/Sharding.h"
#include "passes/pipelines/Pipelines.h"
#include "passes/verify/RunPlan.h"

#include <map>
#include <memory>
#include <set>

namespace meshwork::interpreter {

/// How a state lies on the ranks between instructions.
struct Layout {
  std::vector<int64_t> shape; // global
  sharding::Sharding sharding;
};

/// A program after the phases up to `fuse`.
struct Compiled {
  /// `model` and `spec` are texts as the user's files hold them. A spec or
  /// model that is refused leaves no program, and the reasons in `diagnostics`.
  /// Tokens of a chunk of the head: `headChunk`. Stops after the phase `until`.
  Compiled(const std::string &model, const std::string &spec,
           int64_t headChunk = 256, const std::string &until = "fuse");

  int64_t numRanks() const { return mesh.numRanks(); }
  /// Whether each coordinate along `stageAxis` has a step of its own.
  bool isCut() const;
  mlir::StringRef stageAxis() const { return spec->pipeline.axis; }
  sharding::AxisId stageAxisId() const;
  /// Whether a rank has this state: that of a parameter of its stages.
  bool isHeld(const StateKey &key, int64_t rank) const;
  /// Goes on to a plan, all but its kernels' code. False, and why in
  /// `diagnostics`, where that fails or the launcher would refuse it.
  bool becomesPlan(uint32_t vocabulary);
  /// A copy, as `change` makes it, goes on to a plan, which is run on all
  /// ranks, byte by byte. What differs from one rank, "" when nothing does.
  using Change = llvm::function_ref<void(mlir::ModuleOp)>;
  std::string runAsPlan(uint32_t vocabulary, Change change = nullptr,
                        verify::Places places = verify::Places::arena);
  verify::StepData dataOfPlan(uint32_t vocabulary) const;
  /// What one rank makes of that; null after a failure of the test.
  const verify::StepEnd *oneRank(const verify::StepData &data) const;

  const spec::Spec &ofSpec() const { return *spec; }

  std::unique_ptr<Program> program;
  std::string diagnostics;
  sharding::Mesh mesh; // empty: one rank, whole tensors
  std::map<StateKey, Layout> states;
  std::map<StateKey, Layout> totals; // the loss, which @update adds up in place
  std::vector<Layout> arguments;     // of @microbatch
  std::vector<std::string> inputs;   // what each of them is

private:
  bool runPhase(const pipelines::Phase &phase, int64_t headChunk);
  void readArguments();
  void readStates();
  std::string model, until;
  std::optional<spec::Spec> spec;
};

/// What a step starts from, global: of each microbatch the arguments, tokens
/// and targets and maybe what is made of where documents begin; and the state
/// of every parameter.
struct StepData {
  std::vector<std::vector<Tensor>> microbatches;
  std::map<StateKey, Tensor> state;
};
/// Random data for the model of a compiled program, a function of `seed`.
StepData randomStep(const Compiled &compiled, int64_t vocabulary,
                    unsigned seed = 1, int microbatches = 2);

/// States after the microbatches and after the update: one tensor for each copy
/// that the ranks hold. Empty, with a failure of the test, when it cannot run.
struct StepResult {
  std::map<StateKey, std::vector<Tensor>> gradients, updated;
  /// States with something else than zeros behind the end of a rank's part.
  std::set<std::string> paddedStates;
};
StepResult runStep(Compiled &compiled, const StepData &data);

/// Runs, and gives no failure but false.
bool tryStep(Compiled &compiled, const StepData &data, StepResult &result);

/// What differs, one line each: padding that is not zero, a copy from the
/// others (bitwise), or from `expected` by more than `tolerance` in the 2-norm,
/// relative. Empty: nothing.
std::string compareSteps(const StepResult &actual, const StepResult &expected,
                         double tolerance = 1e-9);

} // namespace meshwork::interpreter
