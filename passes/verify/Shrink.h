// Makes a model and a spec small enough to run every rank in seconds. It keeps
// what a compiler may get wrong: sizes that do not divide, ranks without
// elements, heads that share a key, windows, the order of a schedule.
#pragma once

#include "lib/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"

namespace meshwork::verify {

struct SmallStep {
  spec::Spec spec;
  uint32_t vocabulary = 0;
  int64_t headChunk = 0; // tokens of a chunk of the head
  /// One line for each thing that is smaller, or not as in the large step.
  std::vector<std::string> said;
};

/// Makes `model`, as it was read, small. `vocabulary` is the number of tokens
/// that it knows. Fails with a diagnostic where the small model or spec is not
/// sound.
mlir::FailureOr<SmallStep> shrink(mlir::ModuleOp model, const spec::Spec &spec,
                                  uint32_t vocabulary);

} // namespace meshwork::verify
