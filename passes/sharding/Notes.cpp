// Names and words for `meshwork explain`.
#include "passes/sharding/Notes.h"

#include "dialects/transformer/Facts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::sharding {
namespace {

/// "model.norm" of "model.norm.weight".
StringRef moduleOf(StringRef parameter) {
  parameter.consume_back(".weight") || parameter.consume_back(".bias");
  return parameter;
}

/// The state that `value` is added to, by its name; "" when none.
std::string accumulatedInto(Value value) {
  for (Operation *user : value.getUsers())
    if (auto accumulate = dyn_cast<AccumulateOp>(user)) {
      std::string kind = stringifyStateKind(accumulate.getKind()).str();
      return accumulate.getName().empty()
                 ? kind + " of a microbatch"
                 : (accumulate.getName() + " (" + kind + " of a microbatch)")
                       .str();
    }
  return "";
}

/// What the operand that was computed last is called, up to its op.
std::string baseOf(Operation *op) {
  const mesh::Provenance &notes = mesh::provenanceOf(op);
  int64_t last = -1;
  for (Value operand : op->getOperands())
    if (auto known = notes.places.find(operand); known != notes.places.end())
      last = std::max(last, static_cast<int64_t>(known->second));
  return last < 0
             ? std::string()
             : StringRef(notes.values[last].name).split('/').first.str() + "/";
}

/// The parameter that `op` reads, or, of a quantized product, whose copy.
StringRef parameterOf(Operation *op) {
  if (StringAttr noted = parameterOfCopy(op))
    return noted.getValue();
  SmallVector<Value> operands(op->getOperands());
  for (Value operand : llvm::reverse(operands))
    if (auto parameter = operand.getDefiningOp<transformer::ParameterOp>())
      return parameter.getName();
  return "";
}

std::string nameOf(Value value) {
  constexpr const char *arguments[] = {"tokens", "targets", "documents"};
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getArgNumber() < std::size(arguments)
               ? arguments[argument.getArgNumber()]
               : "argument " + std::to_string(argument.getArgNumber());
  Operation *op = value.getDefiningOp();
  if (auto parameter = dyn_cast<transformer::ParameterOp>(op))
    return parameter.getName().str();
  if (auto state = dyn_cast<StateOp>(op)) {
    std::string kind = stringifyStateKind(state.getKind()).str();
    return state.getName().empty()
               ? kind
               : (state.getName() + " (" + kind + ")").str();
  }
  if (std::string state = accumulatedInto(value); !state.empty())
    return state;
  if (StringRef parameter = parameterOf(op); !parameter.empty()) {
    bool isGradient = isBackward(op) || isa<HeadLossGradOp>(op);
    return moduleOf(parameter).str() + (isGradient ? " (input gradient)" : "");
  }
  return baseOf(op) + op->getName().stripDialect().str();
}
} // namespace

size_t placeOf(Value value) {
  mesh::Provenance &notes =
      mesh::provenanceOf(value.getParentRegion()->getParentOp());
  if (auto known = notes.places.find(value); known != notes.places.end())
    return known->second;
  std::string name = nameOf(value);
  if (unsigned before = notes.counts[name]++)
    name += " " + std::to_string(before + 1);
  auto function =
      dyn_cast<func::FuncOp>(value.getParentRegion()->getParentOp());
  mesh::ValueStory story{
      name, {}, {}, function && function.getName() == "update"};
  if (auto type = dyn_cast<RankedTensorType>(value.getType()))
    for (StringAttr dim : dimsOf(type).getNames())
      story.dims.push_back({dim.str(), {}});
  notes.values.push_back(std::move(story));
  return notes.places[value] = notes.values.size() - 1;
}

mesh::ValueStory &notesOn(Value value) {
  size_t place = placeOf(value);
  return mesh::provenanceOf(value.getParentRegion()->getParentOp())
      .values[place];
}

void nameAll(Operation *function) {
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != function && op->getParentOp() != function)
      return WalkResult::skip();
    for (Value value : op == function
                           ? ValueRange(op->getRegion(0).getArguments())
                           : ValueRange(op->getResults()))
      if (isa<RankedTensorType>(value.getType()))
        placeOf(value);
    return WalkResult::advance();
  });
}

void noteAnnotation(Value value, size_t dim, ArrayRef<StringAttr> axes,
                    const Twine &key) {
  for (StringAttr axis : axes)
    notesOn(value).dims[dim].causes.push_back(
        {axis.str(), key.str(), "", "", 0, 0});
}

std::string overLayers(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  for (StringRef &part : parts)
    if (!part.empty() && llvm::all_of(part, llvm::isDigit))
      part = "*";
  return llvm::join(parts, ".");
}

std::string FactorAxis::text() const {
  return factor + ", which " + axis + " splits" +
         (annotation.empty() ? "" : " (" + annotation + ")");
}

FactorAxis factorAxis(const mesh::Provenance &notes, const Mesh &mesh,
                      const FactorTable &table, size_t factor, AxisId axis,
                      ArrayRef<Proposal> proposals) {
  FactorAxis found{mesh.axes[axis].name, table.factors()[factor].name.str(),
                   ""};
  for (auto [t, proposal] : llvm::enumerate(proposals)) {
    int64_t dim = table.dimOf(t, table.factors()[factor]);
    if (found.annotation.empty() && proposal.dims && dim >= 0 &&
        llvm::is_contained((*proposal.dims)[dim], axis))
      found.annotation = notes.annotationOf(table.tensor(t), dim, found.axis);
  }
  return found;
}

std::string textOf(ArrayRef<FactorAxis> list) {
  return llvm::join(
      llvm::map_range(list, [](const FactorAxis &one) { return one.text(); }),
      ", and ");
}

} // namespace meshwork::sharding
