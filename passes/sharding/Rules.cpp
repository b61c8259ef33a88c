#include "passes/sharding/Rules.h"

#include "lib/Spec/Diagnostic.h"
#include "llvm/Support/Error.h"

using namespace mlir;
namespace meshwork::sharding {

LogicalResult Rules::readAxes(ArrayRef<std::string> texts) {
  for (const std::string &text : texts) {
    auto [name, size] = StringRef(text).split('=');
    int64_t number = 0;
    if (size.getAsInteger(10, number) || number < 1)
      return onError("mesh.axes")
             << "axis is '" << text << "', expected a form like dp=2";
    axisNames.push_back(StringAttr::get(context, name));
    axisSizes.push_back(number);
  }
  return success();
}

int64_t Rules::sizeOf(StringRef axis) const {
  auto at = llvm::find(axisNames, StringAttr::get(context, axis));
  return axisSizes[at - axisNames.begin()];
}

bool Rules::readRules(ArrayRef<std::string> texts) {
  bool fine = true;
  for (const std::string &text : texts) {
    auto [dim, list] = StringRef(text).split('=');
    Rule rule{dim, {}};
    list.split(rule.axes, '/', -1, /*KeepEmpty=*/false);
    fine &= keepKnown(text, dim, rule.axes);
    byDim.push_back(rule);
  }
  return fine;
}

bool Rules::keepKnown(StringRef rule, StringRef dim,
                      SmallVectorImpl<StringRef> &axes) const {
  SmallVector<StringRef> kept;
  for (StringRef axis : axes)
    if (!hasAxis(StringAttr::get(context, axis)))
      onError("shard." + dim) << "rule '" << rule << "' names axis '" << axis
                              << "', which the mesh does not have";
    else if (llvm::is_contained(kept, axis))
      onError("shard." + dim)
          << "rule '" << rule << "' names axis '" << axis << "' twice";
    else
      kept.push_back(axis);
  bool fine = kept.size() == axes.size();
  axes.assign(kept);
  return fine;
}

const Rule *Rules::ruleOf(StringRef dim) const {
  auto at =
      llvm::find_if(byDim, [&](const Rule &rule) { return rule.dim == dim; });
  return at == byDim.end() ? nullptr : &*at;
}

bool Rules::readPins(ArrayRef<std::string> texts) {
  bool fine = true;
  for (auto [i, text] : llvm::enumerate(texts)) {
    auto [glob, sharding] = StringRef(text).split(' ');
    std::string key = "shard.tensor[" + std::to_string(i) + "]";
    llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob);
    if (pattern) {
      pins.push_back({key, glob, sharding, std::move(*pattern)});
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
