// Facts about ops, and what their attributes may be. The labels are those of
// the dialect's description.
#include "dialects/transformer/Facts.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::transformer {

PassKind passOf(Operation *op) {
  auto pass =
      dyn_cast_or_null<PassKindAttr>(op->getDiscardableAttr(facts::pass));
  return pass ? pass.getValue() : PassKind::forward;
}

bool isBackward(Operation *op) { return passOf(op) != PassKind::forward; }

void setPass(Operation *op, PassKind pass) {
  if (pass == PassKind::forward)
    op->removeDiscardableAttr(facts::pass);
  else
    op->setDiscardableAttr(facts::pass,
                           PassKindAttr::get(op->getContext(), pass));
}

void setNotBefore(Operation *op) {
  op->setDiscardableAttr(facts::notBefore, UnitAttr::get(op->getContext()));
}

void setKept(Operation *op) {
  op->setDiscardableAttr(facts::kept, UnitAttr::get(op->getContext()));
}

bool isKept(Operation *op) {
  return op->getDiscardableAttr(facts::kept) != nullptr;
}

bool isOfStep(Operation *op) {
  return op->getDiscardableAttr(facts::ofStep) != nullptr;
}

void setOfStep(Operation *op) {
  op->setDiscardableAttr(facts::ofStep, UnitAttr::get(op->getContext()));
}

void setConstant(Operation *op, bool isConstant) {
  if (isConstant)
    op->setDiscardableAttr(facts::constant, UnitAttr::get(op->getContext()));
  else
    op->removeDiscardableAttr(facts::constant);
}

bool isConstant(Operation *op) {
  return op->getDiscardableAttr(facts::constant) != nullptr;
}

bool staysBehind(Operation *op) {
  return passOf(op) == PassKind::recomputed ||
         op->getDiscardableAttr(facts::notBefore);
}

std::optional<int64_t> layerOf(Operation *op) {
  auto layer =
      dyn_cast_or_null<IntegerAttr>(op->getDiscardableAttr(facts::layer));
  if (auto parameter = dyn_cast<ParameterOp>(op))
    layer = parameter.getLayerAttr();
  return layer ? std::optional<int64_t>(layer.getInt()) : std::nullopt;
}

void setLayer(Operation *op, std::optional<int64_t> layer) {
  if (layer)
    op->setDiscardableAttr(
        facts::layer,
        IntegerAttr::get(IntegerType::get(op->getContext(), 64), *layer));
}

int64_t stageOf(Operation *op) {
  auto stage =
      dyn_cast_or_null<IntegerAttr>(op->getDiscardableAttr(facts::stage));
  return stage ? stage.getInt() : 0;
}

void setStage(Operation *op, int64_t stage) {
  if (stage == 0)
    op->removeDiscardableAttr(facts::stage);
  else
    op->setDiscardableAttr(
        facts::stage,
        IntegerAttr::get(IntegerType::get(op->getContext(), 64), stage));
}

static void inheritBlock(Operation *op, Operation *made) {
  if (!isa<ParameterOp>(made))
    setLayer(made, layerOf(op));
  setStage(made, stageOf(op));
}

/// Parts of a body, which may have no op around them yet, are not told of: what
/// stands around them tells.
void OfSameBlock::notifyOperationInserted(Operation *made,
                                          OpBuilder::InsertPoint from) {
  if (before)
    before->notifyOperationInserted(made, from);
  Operation *around = made->getParentOp();
  bool isPart = !around || isa<MapOp, FusedOp>(around);
  if (made->getNumOperands() != 0 && !isPart)
    inheritBlock(of, made);
}

bool isHead(Operation *op) { return op->hasAttr(facts::head); }

void setHead(Operation *op) {
  op->setDiscardableAttr(facts::head, UnitAttr::get(op->getContext()));
}

StringAttr parameterOfCopy(Operation *op) {
  return dyn_cast_or_null<StringAttr>(op->getDiscardableAttr(facts::parameter));
}

Type gradientTypeOf(ModuleOp module) {
  auto type = module->getAttrOfType<TypeAttr>(facts::gradientType);
  return type ? type.getValue() : Type(Float32Type::get(module.getContext()));
}

void inheritFacts(Operation *op, Operation *made) {
  setPass(made, passOf(op));
  inheritBlock(op, made);
  if (isOfStep(op))
    setOfStep(made);
}

void inheritFactsSince(Operation *before, Operation *op) {
  for (Operation *made = before ? before->getNextNode()
                                : &op->getBlock()->front();
       made != op; made = made->getNextNode())
    inheritFacts(op, made);
}

static FunctionOpInterface functionOf(BlockArgument argument) {
  return cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
}

StringRef inputOf(BlockArgument argument) {
  constexpr StringRef usual[] = {"tokens", "targets", "documents"};
  unsigned number = argument.getArgNumber();
  if (auto told = functionOf(argument).getArgAttrOfType<StringAttr>(
          number, facts::input))
    return told.getValue();
  return number < std::size(usual) ? usual[number] : StringRef();
}

void setInput(BlockArgument argument, StringRef input) {
  functionOf(argument).setArgAttr(
      argument.getArgNumber(), facts::input,
      StringAttr::get(argument.getContext(), input));
}

Value addInput(FunctionOpInterface function, StringRef input, Type type) {
  for (BlockArgument argument : function.getArguments())
    if (inputOf(argument) == input)
      return argument;
  unsigned position = function.getNumArguments();
  (void)function.insertArgument(position, type, {}, function.getLoc());
  BlockArgument added = function.getArgument(position);
  if (inputOf(added) != input)
    setInput(added, input);
  return added;
}

static constexpr StringLiteral everyFact[] = {
    facts::pass,     facts::notBefore, facts::kept,  facts::ofStep,
    facts::constant, facts::head,      facts::layer, facts::stage};

bool isFact(StringRef attribute) {
  return llvm::is_contained(everyFact, attribute);
}

void dropFacts(Operation *op) {
  for (StringRef fact : everyFact)
    op->removeDiscardableAttr(fact);
}

} // namespace meshwork::transformer

//===-- Verification --------------------------------------------------------//

namespace {
bool isPass(Attribute value) {
  auto pass = dyn_cast<PassKindAttr>(value);
  return pass && pass.getValue() != PassKind::forward;
}
bool isName(Attribute value) {
  auto name = dyn_cast<StringAttr>(value);
  return name && !name.empty();
}
bool isGradientType(Attribute value) {
  auto type = dyn_cast<TypeAttr>(value);
  return type && isWideFloat(type.getValue());
}
bool isPositive(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isInteger(64) && number.getInt() > 0;
}
bool isLayer(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isInteger(64) && number.getInt() >= 0 &&
         number.getInt() < mostLayers;
}
bool isStage(Attribute value) { return isLayer(value) && isPositive(value); }
bool isF64(Attribute value) {
  auto number = dyn_cast<FloatAttr>(value);
  return number && number.getType().isF64();
}
bool isUnit(Attribute value) { return isa<UnitAttr>(value); }

struct Declared {
  StringRef name;
  bool ofModule;
  bool (*isValid)(Attribute);
  const char *label, *expected;
};
constexpr Declared declared[] = {
    {facts::pass, false, isPass, "(F2)",
     "#transformer.pass<backward> or #transformer.pass<recomputed>"},
    {facts::notBefore, false, isUnit, "(F3)", "no value"},
    {facts::kept, false, isUnit, "(F11)", "no value"},
    {facts::ofStep, false, isUnit, "(F12)", "no value"},
    {facts::constant, false, isUnit, "(F13)", "no value"},
    {facts::head, false, isUnit, "(F7)", "no value"},
    {facts::parameter, false, isName, "(F4)", "the name of a parameter"},
    {facts::layer, false, isLayer, "(F5)", "an i64 from 0 to 65535"},
    {facts::stage, false, isStage, "(F9)", "an i64 from 1 to 65535"},
    {facts::gradientType, true, isGradientType, "(F6)", "f32 or bf16"},
    {facts::maxPositions, true, isPositive, "(F6)", "a positive i64"},
    {facts::balanceCoefficient, true, isF64, "(F6)", "an f64"},
    {facts::config, true, isName, "(F8)", "the text of a config.json"},
    {facts::modelFlops, true, isF64, "(F6)", "an f64"},
    {facts::palmAttentionFlops, true, isF64, "(F6)", "an f64"},
};

std::string namesOf(bool ofModule) {
  SmallVector<StringRef> names;
  for (const Declared &one : declared)
    if (one.ofModule == ofModule)
      names.push_back(one.name);
  return llvm::join(names, ", ");
}
} // namespace

LogicalResult
TransformerDialect::verifyOperationAttribute(Operation *op,
                                             NamedAttribute attribute) {
  bool ofModule = isa<ModuleOp>(op);
  const auto *known = llvm::find_if(declared, [&](const Declared &one) {
    return one.name == attribute.getName().strref() && one.ofModule == ofModule;
  });
  if (known == std::end(declared))
    return op->emitOpError()
           << "(F1) has the attribute '" << attribute.getName().strref()
           << "', which means nothing on it; expected one of "
           << namesOf(ofModule);
  if (known->isValid(attribute.getValue()))
    return success();
  return op->emitOpError() << known->label << " '" << known->name << "' is "
                           << attribute.getValue() << ", expected "
                           << known->expected;
}

static LogicalResult refuse(Operation *op, NamedAttribute attribute) {
  return op->emitOpError() << "(F1) an argument or result has the attribute '"
                           << attribute.getName().strref()
                           << "', which means nothing there";
}

LogicalResult
TransformerDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned,
                                             NamedAttribute attribute) {
  constexpr StringRef known[] = {"documents", "document_positions",
                                 "inner_targets", "target_counts"};
  if (attribute.getName() != facts::input)
    return refuse(op, attribute);
  auto input = dyn_cast<StringAttr>(attribute.getValue());
  if (input && llvm::is_contained(known, input.getValue()))
    return success();
  return op->emitOpError() << "(F10) '" << facts::input << "' is "
                           << attribute.getValue() << ", expected one of "
                           << llvm::join(ArrayRef(known), ", ");
}

LogicalResult TransformerDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned, NamedAttribute attribute) {
  return refuse(op, attribute);
}
