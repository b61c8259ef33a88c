#include "passes/sharding/Rules.h"

#include "llvm/Support/Error.h"

using namespace mlir;
namespace meshwork::sharding {

LogicalResult Rules::readAxes(ArrayRef<std::string> texts) {
  for (const std::string &text : texts) {
    auto [name, size] = StringRef(text).split('=');
    int64_t number = 0;
    if (size.getAsInteger(10, number) || number < 1)
      return onError() << "axis is '" << text << "', expected a form like dp=2";
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
    fine &= keepKnown(text, rule.axes);
    byDim.push_back(rule);
  }
  return fine;
}

bool Rules::keepKnown(StringRef rule, SmallVectorImpl<StringRef> &axes) const {
  SmallVector<StringRef> kept;
  for (StringRef axis : axes)
    if (!hasAxis(StringAttr::get(context, axis)))
      onError() << "rule '" << rule << "' names axis '" << axis
                << "', which the mesh does not have";
    else if (llvm::is_contained(kept, axis))
      onError() << "rule '" << rule << "' names axis '" << axis << "' twice";
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
  for (const std::string &text : texts) {
    auto [glob, sharding] = StringRef(text).split(' ');
    llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob);
    if (pattern) {
      pins.push_back({glob, sharding, std::move(*pattern)});
      continue;
    }
    onError() << "shard.tensor: '" << glob
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

bool Rules::checkPinsUsed() const {
  bool fine = true;
  for (const Pin &pin : pins) {
    if (pin.uses)
      continue;
    fine = false;
    InFlightDiagnostic diag = onError() << "shard.tensor: ";
    if (pin.before.empty())
      diag << "no parameter is named '" << pin.glob << "'";
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
