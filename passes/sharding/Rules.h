// What a spec says of shardings: axes, a rule for each dim, pins of parameters.
//
//   Rules rules(context, onError);
//   rules.readAxes({"dp=2", "tp=4"});
//   rules.readRules({"heads=tp", "batch=dp"});
//   rules.readPins({"wte.weight [{\"tp\"}, {}]"});
//   const Rule *rule = rules.ruleOf("heads");
//
// Everything wrong is reported through `onError`, which begins an error.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/GlobPattern.h"
#include <string>
#include <vector>

namespace meshwork::sharding {

/// A dim's name and the axes that split it, as the user named them.
struct Rule {
  llvm::StringRef dim;
  llvm::SmallVector<llvm::StringRef> axes;
};

/// A parameter's pin: the whole sharding, as written.
struct Pin {
  std::string key; // of the spec: "shard.tensor[2]"
  llvm::StringRef glob, text;
  llvm::GlobPattern pattern;
  unsigned uses = 0;
  // A pin that has a parameter which this one matches too.
  llvm::StringRef before = {};
};

/// Keeps references into the texts that it reads.
class Rules {
public:
  /// Takes the key of the spec that is to blame.
  using OnError =
      std::function<mlir::InFlightDiagnostic(const llvm::Twine &key)>;
  Rules(mlir::MLIRContext *context, OnError onError)
      : context(context), onError(std::move(onError)) {}

  /// "dp=2", outermost first. Stops at the first error.
  mlir::LogicalResult readAxes(llvm::ArrayRef<std::string> texts);
  /// "dim=axis/axis", the major one first. Axes that the mesh does not have, or
  /// that are named twice, are left out.
  bool readRules(llvm::ArrayRef<std::string> texts);
  /// "glob sharding".
  bool readPins(llvm::ArrayRef<std::string> texts);

  /// Axes as the user gave them.
  llvm::ArrayRef<mlir::StringAttr> names() const { return axisNames; }
  llvm::ArrayRef<int64_t> sizes() const { return axisSizes; }
  bool hasAxis(mlir::StringAttr name) const {
    return llvm::is_contained(axisNames, name);
  }
  /// Of an axis that it has.
  int64_t sizeOf(llvm::StringRef axis) const;

  /// Null where there is none.
  const Rule *ruleOf(llvm::StringRef dim) const;
  /// The first pin that names the parameter, which counts as a use of it.
  const Pin *pinOf(llvm::StringRef parameter);
  /// Whether each pin was used; an error for each that was not, with the
  /// nearest of `names`, those of all parameters.
  bool checkPinsUsed(const std::vector<std::string> &names) const;
  /// `; did you mean "tp"?`, or nothing.
  std::string nearestAxis(llvm::StringRef name) const;

private:
  bool keepKnown(llvm::StringRef rule, llvm::StringRef dim,
                 llvm::SmallVectorImpl<llvm::StringRef> &axes) const;

  mlir::MLIRContext *context;
  OnError onError;
  llvm::SmallVector<mlir::StringAttr> axisNames;
  llvm::SmallVector<int64_t> axisSizes;
  llvm::SmallVector<Rule> byDim;
  std::vector<Pin> pins;
};

} // namespace meshwork::sharding
