// Verifiers of what the runtime writes before a step and reads after one.
#include "dialects/schedule/Views.h"

using namespace mlir;

namespace meshwork::schedule {
namespace {

bool isOfSequence(InputKind kind) {
  return kind == InputKind::tokens || kind == InputKind::targets ||
         kind == InputKind::documents ||
         kind == InputKind::document_positions ||
         kind == InputKind::inner_targets;
}
bool isPartOfDim(InputKind kind) {
  return kind == InputKind::coordinate || kind == InputKind::extent ||
         kind == InputKind::positions;
}

/// What the view of an input must be, in words, when it is something else.
StringRef expectedOf(InputKind kind, const Strided &view) {
  Type i32 = IntegerType::get(view.type.getContext(), 32);
  bool isTable = view.element() == i32 && view.isContiguous();
  switch (kind) {
  case InputKind::tokens:
  case InputKind::targets:
  case InputKind::documents:
  case InputKind::document_positions:
  case InputKind::inner_targets:
    return isTable && view.rank() == 2 ? "" : "i32 of two dims without gaps";
  case InputKind::positions:
    return isTable && view.rank() == 1 ? "" : "i32 of one dim without gaps";
  case InputKind::random:
  case InputKind::update_random:
    return isTable && view.has(i32, {3}) ? "" : "i32 [3] without gaps";
  case InputKind::coordinate:
  case InputKind::extent:
    return view.isNumber(i32) ? "" : "one i32";
  case InputKind::target_counts:
    return view.element() == Float32Type::get(view.type.getContext()) &&
                   view.rank() == 1 && view.isContiguous()
               ? ""
               : "f32 of one dim without gaps";
  case InputKind::learning_rate:
  case InputKind::bias_correction:
    return view.isNumber(Float32Type::get(view.type.getContext())) ? ""
                                                                   : "one f32";
  }
  llvm_unreachable("all kinds of input are there");
}

LogicalResult verifyDim(InputOp op) {
  InputKind kind = op.getKind();
  bool isSplit = op.getSplitAttr() != nullptr;
  auto size = static_cast<int64_t>(op.getSize());
  if (kind != InputKind::positions && op.getHop() != 0)
    return op.emitOpError()
           << "(C2) " << stringifyInputKind(kind) << " has the hop "
           << op.getHop() << ", which only positions have";
  if (isPartOfDim(kind) ? isSplit && size > 0
                        : size == 0 && (isOfSequence(kind) || !isSplit))
    return success();
  return op.emitOpError() << "(C2) " << stringifyInputKind(kind) << " has "
                          << (isSplit ? "a split" : "no split")
                          << " and the size " << size << ", expected "
                          << (isPartOfDim(kind) ? "a split and a positive size"
                              : isOfSequence(kind) ? "no size"
                                                   : "neither");
}

LogicalResult verifyLayout(InputOp op) {
  bool isNumber = op.getKind() == InputKind::coordinate ||
                  op.getKind() == InputKind::extent;
  if (!isNumber || op.getSplitAttr().isOfBlocks())
    return success();
  return op.emitOpError() << "(C3) " << stringifyInputKind(op.getKind())
                          << " is of parts over " << op.getSplitAttr()
                          << ", expected blocks";
}
} // namespace

LogicalResult InputOp::verify() {
  StringRef kind = stringifyInputKind(getKind());
  if (!isView(getView()))
    return emitOpError() << "(C1) " << kind << " is no schedule.view";
  if (StringRef expected = expectedOf(getKind(), Strided(getView()));
      !expected.empty())
    return emitOpError() << "(C1) " << kind << " is " << getView().getType()
                         << ", expected " << expected;
  if (failed(verifyDim(*this)) || failed(verifyLayout(*this)))
    return failure();
  if (getKind() != InputKind::bias_correction)
    return getBase() ? emitOpError()
                           << "(C4) " << kind << " has a base, expected none"
                     : success();
  double base = getBase() ? getBase()->convertToDouble() : -1;
  return base >= 0 && base < 1 ? success()
                               : emitOpError()
                                     << "(C4) " << kind << " has the base "
                                     << getBaseAttr()
                                     << ", expected one from 0 to below 1";
}

LogicalResult ResultOp::verify() {
  if (!isView(getView()) ||
      !Strided(getView()).isNumber(Float32Type::get(getContext())))
    return emitOpError() << "(C1) is " << getView().getType()
                         << ", expected a schedule.view of one f32";
  return success();
}

} // namespace meshwork::schedule
