// Names and words for `meshwork explain`.
#include "passes/sharding/Notes.h"

#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "meshwork/Plan/LayerNames.h"
#include "meshwork/Plan/StateNames.h"
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

/// What a value is called, and after which parameter.
struct Called {
  std::string name;
  int64_t layer = -1;
  bool isState = false;
};

/// "weight of a microbatch": a state, which may be of no parameter.
Called stateCalled(Operation *op, const StateKey &key, StringRef more) {
  StringRef parameter = key.name;
  return {plan::stateName(parameter, (key.role() + more).str()),
          layerOf(op, parameter), !parameter.empty()};
}

/// The state that `value` is added to, or that it becomes, by its name.
std::optional<Called> storedInto(Value value) {
  for (Operation *user : value.getUsers()) {
    StateUse use = stateUseOf(user);
    if (use == StateUse::adds)
      return stateCalled(user, *usedStateOf(user), plan::ofMicrobatch);
    if (use == StateUse::writes)
      return stateCalled(user, *usedStateOf(user), plan::afterUpdate);
  }
  return std::nullopt;
}

bool isScalar(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return !type || type.getRank() == 0;
}

/// After the operand that was computed last: what that is called up to its op.
Called calledAfterOperand(Operation *op) {
  const mesh::Provenance &notes = mesh::provenanceOf(op);
  std::string own = op->getName().stripDialect().str();
  int64_t last = -1;
  // A scalar, as the learning rate, says less of a value than a tensor does.
  for (bool ofScalars : {false, true})
    for (Value operand : op->getOperands())
      if (auto known = notes.places.find(operand);
          known != notes.places.end() &&
          (ofScalars ? last < 0 : !isScalar(operand)))
        last = std::max(last, static_cast<int64_t>(known->second));
  if (last < 0)
    return {own};
  const mesh::ValueStory &value = notes.values[last];
  return {StringRef(value.name).split('/').first.str() + "/" + own,
          value.layer};
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

Called nameOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    StringRef input = inputOf(argument);
    return {input.empty()
                ? "argument " + std::to_string(argument.getArgNumber())
                : input.str()};
  }
  Operation *op = value.getDefiningOp();
  if (auto parameter = dyn_cast<transformer::ParameterOp>(op))
    return {parameter.getName().str(), layerOf(op, parameter.getName())};
  if (auto state = dyn_cast<StateOp>(op))
    return stateCalled(op, state.getKey(), "");
  if (auto input = dyn_cast<StepInputOp>(op)) {
    std::string name = stringifyStepInput(input.getKind()).str();
    std::replace(name.begin(), name.end(), '_', ' ');
    return {name};
  }
  if (std::optional<Called> state = storedInto(value))
    return *state;
  if (StringRef parameter = parameterOf(op); !parameter.empty()) {
    bool isGradient = isBackward(op) || isa<HeadLossGradOp>(op);
    StringRef name = moduleOf(parameter);
    return {isGradient ? plan::stateName(name, plan::inputGradient)
                       : name.str(),
            layerOf(op, parameter)};
  }
  return calledAfterOperand(op);
}
} // namespace

size_t placeOf(Value value) {
  mesh::Provenance &notes =
      mesh::provenanceOf(value.getParentRegion()->getParentOp());
  if (auto known = notes.places.find(value); known != notes.places.end())
    return known->second;
  Called called = nameOf(value);
  if (unsigned before = notes.counts[called.name]++)
    called.name += " " + std::to_string(before + 1);
  mesh::ValueStory story{called.name,
                         called.layer,
                         called.isState,
                         {},
                         {},
                         roleOf(value.getParentRegion()->getParentOp()) ==
                             StepFunction::update};
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

int64_t layerOf(Operation *op, StringRef name) {
  mesh::Provenance &notes = mesh::provenanceOf(op);
  if (!notes.layers) {
    notes.layers.emplace();
    if (notes.module)
      notes.module->walk([&](transformer::ParameterOp parameter) {
        if (auto layer = transformer::layerOf(parameter))
          notes.layers->emplace(parameter.getName().str(), *layer);
      });
  }
  auto known = notes.layers->find(std::string_view(name));
  return known == notes.layers->end() ? -1 : known->second;
}

std::string sharedName(const mesh::ValueStory &value) {
  return plan::overLayers(value.name, value.layer);
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

} // namespace meshwork::sharding
