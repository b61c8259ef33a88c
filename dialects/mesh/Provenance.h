// Why values lie as they do, for `meshwork explain`: noted by the passes that
// decide it, written into the plan. Kept beside the IR, by the dialect: nothing
// may be decided by it, and text does not carry it.
//
//   Provenance &notes = provenanceOf(module);
//   notes.values[notes.add(value, "lm_head")].dims = ...
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace meshwork::mesh {

/// How a dim came by an axis: an annotation says so, or an op lets it follow a
/// dim of another value.
struct DimCause {
  std::string axis;
  std::string annotation; // a key of the spec, "shard.heads"; "" for an op
  std::string op, factor;
  size_t from = 0; // place in Provenance::values
  size_t fromDim = 0;
};

struct DimStory {
  std::string name;
  std::vector<DimCause> causes; // major axes first; none: not split
};

/// One reshard of a value, and the collectives that it became.
struct Move {
  std::string from, to; // as ShardingAttr prints
  std::string reason;   // what needs it so, and what gave way
  std::string phase;    // forward, backward, update
  struct Step {
    std::string text;      // `all_gather {"tp"} dim 1`
    int64_t bytesSent = 0; // by a rank
  };
  std::vector<Step> steps;
};

struct ValueStory {
  std::string name;
  int64_t layer = -1;   // of the parameter that it is called after; -1: none
  bool isState = false; // kept for a parameter
  std::vector<DimStory> dims;
  std::vector<Move> moves;
  bool inUpdate = false; // of @update
};

struct Provenance {
  std::vector<ValueStory> values;
  /// Reshards that wait for their steps: places of value and move.
  ::llvm::DenseMap<::mlir::Operation *, std::pair<size_t, size_t>> reshards;
  /// Places of values, while they stand in the IR as they were noted.
  ::llvm::DenseMap<::mlir::Value, size_t> places;
  std::map<std::string, unsigned> counts; // values of one name
  std::optional<std::map<std::string, int64_t, std::less<>>>
      layers; // of parameters that have one; noted when first asked for
  ::mlir::Operation *module = nullptr; // that all this is about

  /// The annotation at the end of the chain that gave `axis` to a dim; "" where
  /// none is noted.
  std::string annotationOf(::mlir::Value value, size_t dim,
                           ::llvm::StringRef axis) const;
};

/// The notes on the module around `op`; those on another one are dropped.
Provenance &provenanceOf(::mlir::Operation *op);

/// What was noted on `from` is on `to` from here on, a copy that takes its
/// place. It stands at no place of the IR any more.
void handProvenance(::mlir::ModuleOp from, ::mlir::ModuleOp to);

} // namespace meshwork::mesh
