// Collectives as instructions, in buckets: neighbours of one kind travel
// together.
#pragma once

#include "passes/schedule/ProgramBuilder.h"
#include "passes/schedule/ReducedGradients.h"

namespace meshwork::schedule {

/// Whether a collective works on state as it lies.
bool readsState(::mlir::Operation *collective);

/// Holds back the last collectives until one comes that does not travel with
/// them, or something else runs that may need what they bring.
class Buckets {
public:
  /// `mostBytes` of a bucket. `sumsInAnyOrder`: of bf16, between ranks.
  Buckets(ProgramBuilder &builder, Placement &placement,
          ReducedGradients &gradients, int64_t mostBytes, bool sumsInAnyOrder)
      : builder(builder), placement(placement), gradients(gradients),
        mostBytes(mostBytes), sumsInAnyOrder(sumsInAnyOrder) {}

  ::mlir::LogicalResult add(mesh::CollectiveOpInterface op);
  /// Writes the instruction of what is held back.
  void flush();

private:
  struct Bucket {
    mesh::CollectiveOpInterface first;
    CollectiveKind kind;
    Reduction reduction;
    ::llvm::SmallVector<int64_t> sources, dims, toDims;
    ::llvm::SmallVector<::mlir::Value> inputs = {}, outputs = {};
    int64_t bytes = 0;
    ::llvm::SmallVector<std::pair<Place, Place>, 1> places = {}; // of the views
  };

  static Bucket bucketOf(mesh::CollectiveOpInterface op);
  static bool conflict(const Bucket &a, const Bucket &b);
  ::mlir::FailureOr<Place> placeOfResult(mesh::CollectiveOpInterface op,
                                         const Place &input);
  bool fits(const Bucket &next) const;
  bool mayReorder(const Bucket &bucket) const;

  ProgramBuilder &builder;
  Placement &placement;
  ReducedGradients &gradients;
  int64_t mostBytes;
  bool sumsInAnyOrder;
  std::optional<Bucket> pending;
};

} // namespace meshwork::schedule
