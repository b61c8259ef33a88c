// The mesh dialect: include this one.
//
//   MeshAttr mesh = meshOf(op);                     // of the module around it
//   ShardingAttr sharding = shardingOf(value);      // null: none is set
#pragma once

#include "dialects/transformer/Transformer.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "meshwork/Plan/Ranges.h"

#include <memory>

namespace meshwork::mesh {
struct Provenance;
}

#include "dialects/mesh/MeshDialect.h.inc"
#include "dialects/mesh/MeshEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/mesh/MeshAttrs.h.inc"

namespace meshwork::mesh {

/// What a collective does with the tensors of a group, in the words of Plan.fbs
/// at Collective.
struct Movement {
  ::std::optional<CollectiveKind> kind; // none: each rank has what it takes
  Reduction reduction = Reduction::sum;
  int64_t dim = 0, toDim = 0; // 0 where they mean nothing
  ::llvm::ArrayRef<int64_t> sources = {};

  /// Whether all ranks of a group then have the same.
  bool givesAllTheSame() const {
    return kind == CollectiveKind::all_reduce ||
           kind == CollectiveKind::all_gather;
  }
};

/// What an op asks of a rank's part of a dim.
struct PartNumbers {
  enum Kind {
    coordinate, // where it begins
    extent,     // how many elements it has
    positions   // which elements these are
  };
  Kind kind;
  DimShardingAttr split;
  int64_t size;    // elements of the whole dim
  int64_t hop = 0; // the part of the rank so many places before this one
};

} // namespace meshwork::mesh

#include "dialects/mesh/MeshInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/mesh/MeshOps.h.inc"

namespace meshwork::mesh {

/// The mesh of the module around `op`; null where there is none.
MeshAttr meshOf(::mlir::Operation *op);
/// The sharding of a result or a function argument; null where none is set.
ShardingAttr shardingOf(::mlir::Value value);
void setSharding(::mlir::Value value, ShardingAttr sharding);
/// Parses `[{"tp"}, {?}]`, or the full form, after an error at `onError`.
::mlir::FailureOr<ShardingAttr>
parseSharding(::llvm::StringRef text, ::mlir::MLIRContext *context,
              ::llvm::function_ref<::mlir::InFlightDiagnostic()> onError);
/// Fails, with what is wrong added to `onError`, unless `sharding` has an entry
/// for each dim of `type` and names axes of `mesh`. Null: not looked at.
::llvm::LogicalResult
checkSharding(ShardingAttr sharding, ::mlir::Type type, MeshAttr mesh,
              ::llvm::function_ref<::mlir::InFlightDiagnostic()> onError);
/// How rank 0 takes part in each split of a dim.
::std::vector<layout::Cut> cutsOf(MeshAttr mesh, DimShardingAttr split);
/// "tp" of "tp:(1)2": the axis as the user named it.
::llvm::StringRef wholeAxis(::llvm::StringRef part);

} // namespace meshwork::mesh
