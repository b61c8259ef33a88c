// Lists and the instructions that several ops are lowered to.
#include "passes/schedule/ProgramBuilder.h"
#include "dialects/transformer/Facts.h"
#include "passes/analysis/CopiedParameter.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {

ProgramBuilder::ProgramBuilder(ProgramOp program, ModuleOp module)
    : OpBuilder(program.getContext()), program(program) {
  module.walk([&](transformer::ParameterOp op) {
    if (auto layer = layerOf(op))
      layers[op.getName()] = *layer;
  });
  setInsertionPointToEnd(&program.getBody().front());
  once = addList(ListKind::once, 0);
  step = addList(ListKind::step, 0);
}

ListOp ProgramBuilder::addList(ListKind kind, int64_t stage) {
  auto list = ListOp::create(*this, program.getLoc(), kind, stage);
  list.getBody().emplaceBlock();
  return list;
}

void ProgramBuilder::beginList(ListKind kind, int64_t stage) {
  setInsertionPointToEnd(&program.getBody().front());
  toEndOf(addList(kind, stage));
}

void ProgramBuilder::fill(Location loc, const Twine &what, const Place &place) {
  Value at = view(loc, place);
  FillOp::create(*this, loc, getStringAttr(what), i64(0), i64(bytesOf(place)),
                 getF32FloatAttr(0), at);
}

void ProgramBuilder::fillAtStepStart(const Twine &what, Place place) {
  place.shape = {ShapedType::getNumElements(place.shape)};
  place.strides = {1};
  InsertionGuard guard(*this);
  toEndOf(step);
  fill(program.getLoc(), what, place);
}

void ProgramBuilder::copyBlock(Location loc, StringRef what, int64_t dim,
                               const Place &from, const Place &first,
                               const Place &to) {
  Value number = view(loc, first), source = view(loc, from),
        target = view(loc, to);
  CopyBlockOp::create(*this, loc, getStringAttr(what), i64(0),
                      i64(2 * bytesOf(to)), i64(dim), source, number, target);
}

namespace {
/// The parameter that an instruction is called after; "" when none.
struct Origin {
  StringRef parameter;
  bool isGradient; // it makes that parameter's gradient
};
} // namespace

static Origin originOf(Operation *op) {
  if (StringAttr noted = parameterOfCopy(op))
    return {noted.getValue(), false}; // of a quantized product
  Origin origin{"", false};
  for (Operation *user : op->getUsers())
    if (stateUseOf(user) == StateUse::adds && !usedStateOf(user)->name.empty())
      origin = {usedStateOf(user)->name, true};
  for (Value operand : op->getOperands()) {
    if (!origin.parameter.empty())
      break;
    Operation *def = operand.getDefiningOp();
    if (stateUseOf(def) == StateUse::reads)
      origin.parameter = usedStateOf(def)->name;
    else if (StringAttr name = analysis::copiedParameter(operand))
      origin.parameter = name.getValue();
  }
  return origin;
}

StringAttr ProgramBuilder::sourceOf(Operation *op) {
  auto [parameter, isGradient] = originOf(op);
  if (parameter.empty())
    return getStringAttr(op->getName().stripDialect());
  return getStringAttr(parameter + (isGradient ? " (gradient)" : ""));
}

void ProgramBuilder::noteLayer(Operation *op, Operation *before) {
  auto known = layers.find(originOf(op).parameter);
  std::optional<int64_t> layer =
      known == layers.end() ? layerOf(op) : std::optional(known->second);
  Block *block = getInsertionBlock();
  if (!layer || block->empty())
    return;
  for (Operation *made = before ? before->getNextNode() : &block->front(); made;
       made = made->getNextNode())
    if (isInstruction(made) && !isa<CollectiveOp>(made))
      setLayer(made, layer);
}

} // namespace meshwork::schedule
