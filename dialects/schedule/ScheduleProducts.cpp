// Verifier of matrix products.
#include "dialects/schedule/Views.h"

using namespace mlir;

namespace meshwork::schedule {
namespace {

/// A product while it is looked at.
struct Product {
  explicit Product(MatmulOp op)
      : op(op), lhs(op.getLhs()), rhs(op.getRhs()), dst(op.getDst()) {}

  LogicalResult verify() {
    if (failed(verifyShapes()) || failed(verifyTypes()) ||
        failed(verifyScales()) || failed(verifyBias()) || failed(verifyAux()))
      return failure();
    switch (op.getEpilogue()) {
    case Epilogue::none:
      return success();
    case Epilogue::gelu:
    case Epilogue::gelu_grad:
      return verifyGelu();
    case Epilogue::sum_lhs:
    case Epilogue::sum_rhs:
      return verifySums();
    }
    llvm_unreachable("all epilogues are there");
  }

private:
  LogicalResult verifyShapes() {
    bool fit = lhs.rank() == 3 && rhs.rank() == 3 && dst.rank() == 3;
    if (fit) {
      int64_t b = lhs.shape[0], m = lhs.shape[1], k = lhs.shape[2],
              n = rhs.shape[2];
      fit = rhs.shape == ArrayRef{b, k, n} && dst.shape == ArrayRef{b, m, n};
    }
    if (!fit)
      return op.emitOpError()
             << "(C1) multiplies " << lhs.type << " and " << rhs.type << " to "
             << dst.type << ", expected [b,m,k] and [b,k,n] to [b,m,n]";
    for (const Strided *view : {&lhs, &rhs, &dst})
      if (view->strides[1] != 1 && view->strides[2] != 1)
        return op.emitOpError() << "(C1) has " << view->type
                                << ", expected an inner stride of 1";
    return success();
  }

  LogicalResult verifyTypes() {
    if (!dst.isWideFloat())
      return op.emitOpError()
             << "(C2) has dst " << dst.type << ", expected f32 or bf16";
    if (lhs.isWideFloat() && lhs.element() == rhs.element())
      return success();
    bool areE5M2 = isa<Float8E5M2Type>(lhs.element()) &&
                   isa<Float8E5M2Type>(rhs.element());
    if (!lhs.isFloat8() || !rhs.isFloat8() || areE5M2)
      return op.emitOpError()
             << "(C2) multiplies " << lhs.type << " and " << rhs.type
             << ", expected both f32 or bf16, or 8 bits and not both f8E5M2";
    if (lhs.strides[2] != 1 || rhs.strides[1] != 1)
      return op.emitOpError() << "(C2) multiplies " << lhs.type << " and "
                              << rhs.type << ", expected dense along k";
    return success();
  }

  LogicalResult verifyScales() {
    size_t expected = lhs.isFloat8() ? 2 : 0;
    if (op.getScales().size() != expected)
      return op.emitOpError() << "(C3) has " << op.getScales().size()
                              << " scales, expected " << expected;
    for (Value scale : op.getScales())
      if (!Strided(scale).isNumber(Float32Type::get(op.getContext())))
        return op.emitOpError() << "(C3) has the scale " << scale.getType()
                                << ", expected one f32";
    return success();
  }

  LogicalResult verifyBias() {
    if (!op.getBias())
      return success();
    Strided bias(op.getBias());
    if (!bias.isWideFloat() || bias.shape != ArrayRef{rhs.shape[2]})
      return op.emitOpError()
             << "(C4) has the bias " << bias.type << ", expected "
             << rhs.shape[2] << " elements of f32 or bf16";
    if (op.getEpilogue() != Epilogue::none &&
        op.getEpilogue() != Epilogue::gelu)
      return op.emitOpError()
             << "(C4) has a bias and the epilogue "
             << stringifyEpilogue(op.getEpilogue()) << ", expected one of them";
    return success();
  }

  LogicalResult verifyAux() {
    if (op.getEpilogue() == Epilogue::none)
      return op.getAux()
                 ? op.emitOpError() << "(C5) has aux without an epilogue"
                 : success();
    if (!lhs.isWideFloat() || lhs.shape[0] != 1)
      return op.emitOpError()
             << "(C5) has lhs " << lhs.type
             << ", expected one product of f32 or bf16 beside an epilogue";
    if (!op.getAux())
      return op.getEpilogue() == Epilogue::gelu
                 ? success()
                 : op.emitOpError() << "(C5) has no aux, expected one of "
                                    << stringifyEpilogue(op.getEpilogue());
    if (op.getEpilogue() != Epilogue::gelu_grad)
      for (Value other : {op.getLhs(), op.getRhs(), op.getDst()})
        if (bufferOf(other) == bufferOf(op.getAux()))
          return op.emitOpError() << "(C5) writes aux in the buffer of another "
                                     "operand, expected one of its own";
    return success();
  }

  LogicalResult verifyGelu() {
    constexpr int64_t unit = 8; // elements that cuBLASLt takes of aux at a time
    if (op.getAccumulate() != Accumulate::no)
      return op.emitOpError() << "(C6) has a GELU and adds to dst";
    if (dst.strides[2] != 1)
      return op.emitOpError()
             << "(C6) has dst " << dst.type << ", expected dense rows";
    if (!op.getAux())
      return success();
    Strided aux(op.getAux());
    if (!aux.has(dst.element(), dst.shape) || aux.strides[2] != 1 ||
        aux.strides[1] < aux.shape[2] || aux.strides[1] % unit != 0)
      return op.emitOpError()
             << "(C6) has aux " << aux.type << ", expected the shape of "
             << dst.type << " in dense rows a multiple of " << unit
             << " elements apart";
    return success();
  }

  LogicalResult verifySums() {
    Strided aux(op.getAux());
    int64_t count = dst.shape[op.getEpilogue() == Epilogue::sum_lhs ? 1 : 2];
    if (!aux.has(dst.element(), {count}) || !aux.isContiguous())
      return op.emitOpError() << "(C7) has aux " << aux.type << ", expected "
                              << count << " dense sums of " << dst.element();
    return success();
  }

  MatmulOp op;
  Strided lhs, rhs, dst;
};
} // namespace

LogicalResult MatmulOp::verify() { return Product(*this).verify(); }

} // namespace meshwork::schedule
