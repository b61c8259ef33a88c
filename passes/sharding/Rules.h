// What a spec says of shardings: axes, a rule for each dim, pins of parameters.
//
//   Rules rules(context, onError);
//   rules.setAxes(spec.mesh);
//   rules.setRules(spec.shard);
//   rules.setPins(spec.pins);
//   const Rule *rule = rules.ruleOf("heads");
//
// Everything wrong is reported through `onError`, which begins an error.
#pragma once

#include "lib/Spec/Spec.h"
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

/// Keeps references into what it is given.
class Rules {
public:
  /// Takes the key of the spec that is to blame.
  using OnError =
      std::function<mlir::InFlightDiagnostic(const llvm::Twine &key)>;
  Rules(mlir::MLIRContext *context, OnError onError)
      : context(context), onError(std::move(onError)) {}

  /// Outermost first.
  void setAxes(llvm::ArrayRef<spec::Axis> axes);
  /// Axes that the mesh does not have, or that are named twice, are left out.
  bool setRules(llvm::ArrayRef<spec::ShardRule> given);
  bool setPins(llvm::ArrayRef<spec::TensorPin> given);

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
  bool keepKnown(Rule &rule) const;

  mlir::MLIRContext *context;
  OnError onError;
  llvm::SmallVector<mlir::StringAttr> axisNames;
  llvm::SmallVector<int64_t> axisSizes;
  llvm::SmallVector<Rule> byDim;
  std::vector<Pin> pins;
};

} // namespace meshwork::sharding
