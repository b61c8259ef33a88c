#include "passes/sharding/Rules.h"

#include "lib/Spec/Diagnostic.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"

using namespace mlir;
namespace meshwork::sharding {

void Rules::setAxes(ArrayRef<spec::Axis> axes) {
  for (const spec::Axis &axis : axes) {
    axisNames.push_back(StringAttr::get(context, axis.name));
    axisSizes.push_back(axis.size);
  }
}

int64_t Rules::sizeOf(StringRef axis) const {
  auto at = llvm::find(axisNames, StringAttr::get(context, axis));
  return axisSizes[at - axisNames.begin()];
}

bool Rules::setRules(ArrayRef<spec::ShardRule> given) {
  bool fine = true;
  for (const spec::ShardRule &one : given) {
    byDim.push_back({one.dim, {one.axes.begin(), one.axes.end()}});
    fine &= keepKnown(byDim.back());
  }
  return fine;
}

bool Rules::keepKnown(Rule &rule) const {
  std::string text = (rule.dim + "=" + llvm::join(rule.axes, "/")).str();
  SmallVector<StringRef> kept;
  for (StringRef axis : rule.axes)
    if (!hasAxis(StringAttr::get(context, axis)))
      onError("shard." + rule.dim) << "rule '" << text << "' names axis '"
                                   << axis << "', which the mesh does not have";
    else if (llvm::is_contained(kept, axis))
      onError("shard." + rule.dim)
          << "rule '" << text << "' names axis '" << axis << "' twice";
    else
      kept.push_back(axis);
  bool fine = kept.size() == rule.axes.size();
  rule.axes.assign(kept);
  return fine;
}

const Rule *Rules::ruleOf(StringRef dim) const {
  auto at =
      llvm::find_if(byDim, [&](const Rule &rule) { return rule.dim == dim; });
  return at == byDim.end() ? nullptr : &*at;
}

bool Rules::setPins(ArrayRef<spec::TensorPin> given) {
  bool fine = true;
  for (auto [i, pin] : llvm::enumerate(given)) {
    StringRef glob = pin.name;
    std::string key = "shard.tensor[" + std::to_string(i) + "]";
    llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob);
    if (pattern) {
      pins.push_back({key, glob, pin.dims, std::move(*pattern)});
      continue;
    }
    onError(key) << "'" << glob
                 << "' is no glob: " << llvm::toString(pattern.takeError());
    fine = false;
  }
  return fine;
}

const Pin *Rules::pinOf(StringRef parameter) {
  Pin *first = nullptr;
  for (Pin &pin : pins)
    if (pin.pattern.match(parameter)) {
      if (first)
        pin.before = first->glob;
      else
        ++(first = &pin)->uses;
    }
  return first;
}

std::string Rules::nearestAxis(StringRef name) const {
  std::vector<std::string> known;
  for (StringAttr axis : axisNames)
    known.push_back(axis.str());
  return suggestion(std::string_view(name), known);
}

bool Rules::checkPinsUsed(const std::vector<std::string> &names) const {
  bool fine = true;
  for (const Pin &pin : pins) {
    if (pin.uses)
      continue;
    fine = false;
    InFlightDiagnostic diag = onError(pin.key);
    if (pin.before.empty())
      diag << "no parameter is named '" << pin.glob << "'"
           << suggestion(std::string_view(pin.glob), names);
    else
      diag << "pin '" << pin.glob
           << "' has no effect: all its parameters are pinned by '"
           << pin.before
           << "' before it; the first pin of a parameter holds, so leave one "
              "out or move this one up";
  }
  return fine;
}

} // namespace meshwork::sharding
