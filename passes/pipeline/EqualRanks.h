// Ranks of a pipeline whose steps are equal but for names and numbers: of
// layers, of stages and of the ranks that they talk to.
#pragma once

#include <map>

#include "dialects/schedule/Schedule.h"
#include "mlir/IR/AttrTypeSubElements.h"

namespace meshwork::pipeline {

/// What becomes what, from one rank's step to another's.
struct Renaming {
  std::map<::llvm::StringRef, ::llvm::StringRef>
      scopes; // "model.layers.7" of parameters
  std::map<int64_t, int64_t> layers, stages, peers;

  static Renaming from(schedule::EqualRankAttr rank);
  schedule::EqualRankAttr toAttr(::mlir::MLIRContext *context,
                                 int64_t coordinate,
                                 ::mlir::DenseI32ArrayAttr actions) const;
};

/// Renames attributes and locations. What is not named in the Renaming stays.
class Renamer {
public:
  explicit Renamer(const Renaming &names);
  Renamer(const Renamer &) = delete;

  ::mlir::DictionaryAttr operator()(::mlir::DictionaryAttr attributes) {
    return ::llvm::cast<::mlir::DictionaryAttr>(
        replacer.replace(::mlir::Attribute(attributes)));
  }
  /// An op's own attributes and location, not those of ops inside.
  void rename(::mlir::Operation *op);

private:
  ::mlir::Attribute ofDictionary(::mlir::DictionaryAttr attributes);

  const Renaming &names;
  ::mlir::AttrTypeReplacer replacer;
};

/// All ops of a rank's module: what kernels are made of, and how ops hang
/// together, in words; the attributes of the others, which may be renamed.
class RankStep {
public:
  explicit RankStep(::mlir::ModuleOp module);

  /// How this becomes `other`; nothing if they differ in more than names.
  /// Layers and stages keep their order, so that what goes by the order of
  /// their numbers goes the same way.
  std::optional<Renaming> renamingTo(const RankStep &other) const;

private:
  void addValues(::mlir::ValueRange values);
  void addOperation(::mlir::Operation *op);
  void addAttributes(::mlir::Operation *op);
  void addRegions(::mlir::Operation *op);

  std::vector<::mlir::Operation *> ops; // of functions, not those inside
  std::vector<::mlir::DictionaryAttr> attributes; // of each
  std::vector<uintptr_t> words;
  ::llvm::DenseMap<::mlir::Value, uintptr_t> numbers;
};

} // namespace meshwork::pipeline
