#include "passes/partition/Reasons.h"

using namespace mlir;
namespace meshwork::partition {
using namespace transformer;
using namespace sharding;

static constexpr StringLiteral sinceMark = ", since ";

StringRef withoutCause(StringRef reason) {
  return reason.split(sinceMark).first;
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
std::string Reasons::ofSum(Value value, const Axes &left) const {
  SmallVector<FactorAxis> list;
  for (const FactorAxis &one : shardings.sums.lookup(value))
    if (llvm::none_of(left, [&](AxisId axis) {
          return mesh.axes[axis].name == one.axis;
        }))
      list.push_back(one);
  bool isMax =
      shardings.actual.lookup(value).reduction == sharding::Reduction::max;
  if (list.empty())
    return (isMax ? "is a maximum over " : "is a sum over ") +
           axesText(shardings.actual.lookup(value).partial);
  return (isMax ? "takes the maximum over " : "sums over ") +
         sharding::textOf(list);
}

std::string Reasons::ofState(StateKind kind, StringRef name, Value value,
                             const Sharding &stored) const {
  std::string state =
      (stringifyStateKind(kind) + (name.empty() ? "" : " of " + name)).str();
  Axes split = furtherAxes(stored, shardings.home.lookup(value)),
       whole = furtherAxes(shardings.home.lookup(value), stored);
  std::string place =
      !split.empty()
          ? state + " is stored over " + axesText(split) + " (zero.stage)"
      : whole.empty() ? state + " is kept"
                      : state + " is stored whole over " + axesText(whole) +
                            ", its optimizer is split (zero.stage)";
  return shardings.actual.lookup(value).partial.empty()
             ? "is written where " + place
             : ofSum(value, stored.partial) + "; " + place;
}

std::string Reasons::ofHome(Value value) const {
  if (!shardings.actual.lookup(value).partial.empty())
    return ofSum(value, shardings.home.lookup(value).partial);
  Axes split =
      furtherAxes(shardings.actual.lookup(value), shardings.home.lookup(value));
  if (!isa_and_nonnull<transformer::ParameterOp>(value.getDefiningOp()))
    return "is computed split over " + axesText(split);
  return "is stored over " + axesText(split) +
         " (zero.stage) and computed with whole";
}

std::string Reasons::ofOperand(Operation *op, const FactorTable &table,
                               unsigned tensor, ArrayRef<Axes> decided,
                               ArrayRef<Proposal> proposed) const {
  const Sharding lies = shardings.home.lookup(table.tensor(tensor));
  std::vector<std::string> parts;
  for (auto [f, factor] : llvm::enumerate(table.factors())) {
    int64_t dim = table.dimOf(tensor, factor);
    if (dim < 0)
      continue;
    for (AxisId axis : lies.dims[dim])
      if (!llvm::is_contained(decided[f], axis))
        parts.push_back(ofLost(table, f, axis, decided, proposed));
    for (AxisId axis : decided[f])
      if (!llvm::is_contained(lies.dims[dim], axis))
        parts.push_back(
            "takes " +
            factorAxis(notes, mesh, table, f, axis, proposed).text());
  }
  Value user = op->getNumResults() ? op->getResult(0) : Value();
  std::string name =
      user ? notesOn(user).name : op->getName().stripDialect().str();
  return "for " + name +
         (parts.empty() ? "" : ", which " + llvm::join(parts, ", and "));
}

std::string Reasons::ofLost(const FactorTable &table, size_t factor,
                            AxisId axis, ArrayRef<Axes> decided,
                            ArrayRef<Proposal> proposed) const {
  std::string dim = table.factors()[factor].name.str(),
              name = mesh.axes[axis].name;
  if (table.factors()[factor].kind == Factor::whole)
    return "needs all of " + dim + " in one place";
  for (auto [winner, axes] : llvm::enumerate(decided)) {
    if (winner == factor || !llvm::is_contained(axes, axis))
      continue;
    std::string annotation =
        factorAxis(notes, mesh, table, winner, axis, proposed).annotation;
    return "needs all of " + dim + " while " + name + " splits " +
           table.factors()[winner].name.str() +
           (annotation.empty() ? "" : " (" + annotation + ")") +
           sinceMark.str() +
           table.whyStronger(winner, factor, axis, mesh, proposed);
  }
  return "needs all of " + dim +
         ", which its other tensors do not split over " + name;
}

} // namespace meshwork::partition
