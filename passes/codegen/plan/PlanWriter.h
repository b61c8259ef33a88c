// Writes a plan: the schedule, table by table, and the kernels' machine code.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dialects/schedule/Schedule.h"
#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/codegen/plan/PlanCode.h"
#include "passes/codegen/plan/ProvenanceTables.h"

namespace meshwork::codegen {

/// What the compiler chose where the spec says "auto".
struct Choice {
  std::string key, value; // "experts.exchange", "gathered"
  std::string why;        // "layers 0-3: a step should take 3.1 ms with ..."
  /// What a step should take with each value that was tried, in milliseconds.
  std::vector<std::pair<std::string, double>> stepMs = {};
};

/// What a plan says of its origin.
struct PlanSource {
  std::string name; // the model's file
  std::string ir;   // the model as text
  uint32_t vocabulary = 0;
  Origins origins; // of the spec's keys
  std::vector<Choice> choices = {};
};

/// What a rank of each scheduled program in `module` needs on `device`, in
/// bytes: the arena and the libraries' scratch of one thread. `meshwork
/// explain` shows the same.
mlir::FailureOr<std::vector<uint64_t>> programBytes(mlir::ModuleOp module,
                                                    spec::Device device);

/// The bytes of a plan file, frame included, for a module with one scheduled
/// program and its kernel functions. Kernels are compiled for `target`.
/// Errors, as diagnostics: a program without an arena, a kernel that has no
/// code, a plan above 2 GiB, or one that the launcher's own check refuses.
mlir::FailureOr<std::vector<char>> writePlan(mlir::ModuleOp module,
                                             const spec::Spec &spec,
                                             const PlanTarget &target,
                                             const PlanSource &source);

/// The plan for a CPU that `module` would become, without its kernels' code,
/// which takes most of the time of a small plan. Errors are those of writePlan.
mlir::FailureOr<std::vector<char>> planWithoutCode(mlir::ModuleOp module,
                                                   const spec::Spec &spec,
                                                   const PlanSource &source);

/// The plan for the spec's device as far as what `explain` tells of its memory,
/// work and time: without code, the model or reasons but `choices`, and not
/// checked.
mlir::FailureOr<std::vector<char>>
planToEstimate(mlir::ModuleOp module, const spec::Spec &spec,
               std::vector<Choice> choices = {});

} // namespace meshwork::codegen
