// How everything that is "auto" is chosen, and advice is found: ways are
// compiled on copies, without code, and the best is kept.
//
//   Copies copies{module, "shard"};
//   auto tried = tryAll<Context>(methods, [&](Context method) {
//     spec.context = method;
//     return copies.compile(spec);
//   });
//   if (failed(tried)) // a fault of the compiler, which was told
//     return failure();
//   if (const Tried<Context> *best = bestOf(*tried, limit))
//     use(best->way);
#pragma once

#include "mlir/IR/OwningOpRef.h"
#include "tools/meshwork/driver/Trial.h"
#include "tools/meshwork/driver/search/Better.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace meshwork::driver {

/// What compiling a way came to: nothing where the spec is refused, as it is
/// with heads that ranks do not divide. A failure is a fault of the compiler.
using Outcome = mlir::FailureOr<std::optional<Trial>>;

/// What ways are compiled from. They say nothing, unless there is a fault.
struct Copies {
  mlir::ModuleOp module; // as the phase before `first` leaves it
  llvm::StringRef first; // of the phases that a way goes through
  /// tryPhases, or tryChoosing: whether what is "auto" in these phases is
  /// chosen for each way.
  mlir::FailureOr<Trial> (*run)(mlir::ModuleOp, spec::Spec,
                                llvm::StringRef) = tryPhases;

  mlir::OwningOpRef<mlir::ModuleOp> copy() const;
  /// Compiles a copy that may have been changed, or a new one.
  Outcome compile(mlir::ModuleOp fresh, const spec::Spec &spec) const;
  Outcome compile(const spec::Spec &spec) const;
};

template <typename Way> struct Tried {
  Way way;
  std::optional<Trial> trial; // nothing: refused
};

/// Compiles the ways that `next` names, one after the other, until it names
/// none. `next` sees all that were `tried`, here or before. A fault ends it.
template <typename Way>
mlir::FailureOr<std::vector<Tried<Way>>>
tryWays(llvm::function_ref<std::optional<Way>(llvm::ArrayRef<Tried<Way>>)> next,
        llvm::function_ref<Outcome(const Way &)> compile,
        std::vector<Tried<Way>> tried = {}) {
  while (std::optional<Way> way = next(tried)) {
    Outcome outcome = compile(*way);
    if (failed(outcome))
      return mlir::failure();
    tried.push_back({std::move(*way), std::move(*outcome)});
  }
  return tried;
}

/// Compiles each of a list.
template <typename Way>
mlir::FailureOr<std::vector<Tried<Way>>>
tryAll(const std::vector<Way> &ways,
       llvm::function_ref<Outcome(const Way &)> compile) {
  auto next = [&](llvm::ArrayRef<Tried<Way>> tried) {
    return tried.size() < ways.size() ? std::optional(ways[tried.size()])
                                      : std::nullopt;
  };
  return tryWays<Way>(next, compile);
}

/// The best by isBetter(), of equal ones the first; null where all are refused.
template <typename Way>
const Tried<Way> *bestOf(llvm::ArrayRef<Tried<Way>> tried,
                         std::optional<uint64_t> limit) {
  const Tried<Way> *best = nullptr;
  for (const Tried<Way> &one : tried)
    if (one.trial && (!best || isBetter(*one.trial, *best->trial, limit)))
      best = &one;
  return best;
}
template <typename Way>
const Tried<Way> *bestOf(const std::vector<Tried<Way>> &tried,
                         std::optional<uint64_t> limit) {
  return bestOf(llvm::ArrayRef(tried), limit);
}

/// Whether a trial came to something that needs at most `limit` bytes.
inline bool fits(const std::optional<Trial> &trial, uint64_t limit) {
  return trial && trial->bytes <= limit;
}

} // namespace meshwork::driver
