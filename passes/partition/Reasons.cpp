#include "passes/partition/Reasons.h"
#include "dialects/transformer/Facts.h"
#include "meshwork/Plan/LayerNames.h"

using namespace mlir;
namespace meshwork::partition {
using namespace transformer;
using namespace sharding;

std::string sentence(const Reason &reason, const std::string &text) {
  return reason.user.empty()
             ? text
             : "for " + reason.user + (text.empty() ? "" : ", which " + text);
}

static Reason of(std::string text, std::vector<std::string> annotations = {}) {
  return {"", -1, text, text, std::move(annotations)};
}

/// The same reason with more words.
static void append(Reason &reason, StringRef between, const Reason &more) {
  bool isFirst = reason.text.empty();
  for (auto [text, part] : {std::pair(&reason.text, &more.text),
                            std::pair(&reason.told, &more.told)})
    *text += (isFirst ? "" : between.str()) + *part;
  for (const std::string &key : more.annotations)
    if (!key.empty() && !llvm::is_contained(reason.annotations, key))
      reason.annotations.push_back(key);
}

/// Axes that split `all` and not `some`.
static Axes furtherAxes(const Sharding &all, const Sharding &some) {
  Axes further;
  for (auto [more, less] : llvm::zip_equal(all.dims, some.dims))
    for (AxisId axis : more)
      if (!llvm::is_contained(less, axis))
        further.push_back(axis);
  return further;
}

std::string Reasons::axesText(const Axes &axes) const {
  return llvm::join(
      llvm::map_range(axes, [&](AxisId axis) { return mesh.axes[axis].name; }),
      ", ");
}

/// Why it is partial: only of axes that are summed over now.
Reason Reasons::ofSum(Value value, const Axes &left) const {
  Reason factors;
  for (const FactorAxis &one : shardings.sums.lookup(value))
    if (llvm::none_of(left, [&](AxisId axis) {
          return mesh.axes[axis].name == one.axis;
        }))
      append(factors, ", and ", of(one.text(), {one.annotation}));
  bool isMax =
      shardings.actual.lookup(value).reduction == sharding::Reduction::max;
  if (factors.text.empty())
    return of((isMax ? "is a maximum over " : "is a sum over ") +
              axesText(shardings.actual.lookup(value).partial));
  Reason sum = of(isMax ? "takes the maximum over " : "sums over ");
  append(sum, "", factors);
  return sum;
}

Reason Reasons::ofState(const StateKey &key, Value value,
                        const Sharding &stored) const {
  std::string state =
      key.role().str() +
      (key.name.empty()
           ? ""
           : " of " +
                 plan::overLayers(
                     key.name, layerOf(value.getParentRegion()->getParentOp(),
                                       key.name)));
  Axes split = furtherAxes(stored, shardings.home.lookup(value)),
       whole = furtherAxes(shardings.home.lookup(value), stored);
  Reason place =
      !split.empty()
          ? of(state + " is stored over " + axesText(split) + " (zero.stage)",
               {"zero.stage"})
      : whole.empty() ? of(state + " is kept")
                      : of(state + " is stored whole over " + axesText(whole) +
                               ", its optimizer is split (zero.stage)",
                           {"zero.stage"});
  bool isWhole = shardings.actual.lookup(value).partial.empty();
  Reason reason =
      isWhole ? of("is written where ") : ofSum(value, stored.partial);
  append(reason, isWhole ? "" : "; ", place);
  return reason;
}

Reason Reasons::ofStep(Value value, const Sharding &part) const {
  const Sharding stored = shardings.actual.lookup(value);
  return of("is stored over " + axesText(furtherAxes(stored, part)) +
                " (zero.stage) and gathered over it once a step "
                "(zero.gathered)",
            {"zero.stage", "zero.gathered"});
}

Reason Reasons::ofHome(Value value, const Sharding &part) const {
  if (!shardings.actual.lookup(value).partial.empty())
    return ofSum(value, shardings.home.lookup(value).partial);
  Axes split = furtherAxes(part, shardings.home.lookup(value));
  if (part != shardings.actual.lookup(value))
    return of("stays split over " + axesText(split) +
                  " through the step (zero.gathered) and is computed with "
                  "whole",
              {"zero.gathered"});
  Operation *maker = value.getDefiningOp();
  if (maker && isOfStep(maker))
    return of("is made of the part that is stored over " + axesText(split) +
                  " (zero.stage), and computed with whole",
              {"zero.stage"});
  if (!isa_and_nonnull<transformer::ParameterOp>(maker))
    return of("is computed split over " + axesText(split));
  return of("is stored over " + axesText(split) +
                " (zero.stage) and computed with whole",
            {"zero.stage"});
}

Reason Reasons::ofOperand(Operation *op, const FactorTable &table,
                          unsigned tensor, ArrayRef<Axes> decided,
                          ArrayRef<Proposal> proposed) const {
  const Sharding lies = shardings.home.lookup(table.tensor(tensor));
  Reason reason;
  for (auto [f, factor] : llvm::enumerate(table.factors())) {
    int64_t dim = table.dimOf(tensor, factor);
    if (dim < 0)
      continue;
    for (AxisId axis : lies.dims[dim])
      if (!llvm::is_contained(decided[f], axis))
        append(reason, ", and ", ofLost(table, f, axis, decided, proposed));
    for (AxisId axis : decided[f])
      if (!llvm::is_contained(lies.dims[dim], axis)) {
        FactorAxis taken = factorAxis(notes, mesh, table, f, axis, proposed);
        append(reason, ", and ",
               of("takes " + taken.text(), {taken.annotation}));
      }
  }
  reason.user = op->getName().stripDialect().str();
  if (op->getNumResults() != 0) {
    const mesh::ValueStory &user = notesOn(op->getResult(0));
    reason.user = sharedName(user);
    reason.userLayer = user.layer;
  }
  return reason;
}

Reason Reasons::ofLost(const FactorTable &table, size_t factor, AxisId axis,
                       ArrayRef<Axes> decided,
                       ArrayRef<Proposal> proposed) const {
  std::string dim = table.factors()[factor].name.str(),
              name = mesh.axes[axis].name;
  if (table.factors()[factor].kind == Factor::whole)
    return of("needs all of " + dim + " in one place");
  for (auto [winner, axes] : llvm::enumerate(decided)) {
    if (winner == factor || !llvm::is_contained(axes, axis))
      continue;
    std::string annotation =
        factorAxis(notes, mesh, table, winner, axis, proposed).annotation;
    Reason reason = of("needs all of " + dim + " while " + name + " splits " +
                           table.factors()[winner].name.str() +
                           (annotation.empty() ? "" : " (" + annotation + ")"),
                       {annotation});
    reason.told +=
        ", since " + table.whyStronger(winner, factor, axis, mesh, proposed);
    return reason;
  }
  return of("needs all of " + dim +
            ", which its other tensors do not split over " + name);
}

} // namespace meshwork::partition
