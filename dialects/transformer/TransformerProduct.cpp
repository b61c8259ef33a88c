// product: a contract with an epilogue.
#include "dialects/transformer/Dims.h"

using namespace mlir;
using namespace meshwork::transformer;

/// Each letter of the equation with its dim, or an error; label C1.
static LogicalResult verifyLetters(ProductOp op, const Equation &equation) {
  llvm::SmallDenseMap<char, std::pair<int64_t, StringAttr>> letters;
  using Term = std::pair<StringRef, Value>;
  for (auto [term, value] :
       {Term(equation.lhs, op.getLhs()), Term(equation.rhs, op.getRhs()),
        Term(equation.result, op.getResult())}) {
    auto type = tensorType(value);
    if (static_cast<int64_t>(term.size()) != type.getRank())
      return op.emitOpError() << "(C1) term \"" << term << "\" has "
                              << term.size() << " letters for " << type;
    for (auto [i, letter] : llvm::enumerate(term)) {
      std::pair<int64_t, StringAttr> dim(type.getDimSize(i),
                                         dimsOf(type).getNames()[i]);
      if (!letters.try_emplace(letter, dim).second && letters[letter] != dim)
        return op.emitOpError() << "(C1) letter '" << std::string(1, letter)
                                << "' is two different dims";
    }
  }
  for (char c : equation.lhs)
    if (equation.rhs.contains(c) && equation.result.contains(c))
      return op.emitOpError() << "(C1) letter '" << std::string(1, c)
                              << "' is in all terms, expected one product";
  return success();
}

static LogicalResult verifyInputs(ProductOp op) {
  auto result = op.getResult().getType();
  bool isGradient = op.getEpilogue() == Epilogue::gelu_grad;
  if (op.getBias()) {
    auto bias = tensorType(op.getBias());
    bool fits = op.getEpilogue() == Epilogue::gelu &&
                bias.getRank() < result.getRank() &&
                bias.getShape() == result.getShape().take_back(bias.getRank());
    if (!fits)
      return op.emitOpError()
             << "(C2) has a bias of " << bias << ", expected the last dims of "
             << result << " beside gelu only";
  }
  if ((op.getInput() != nullptr) == isGradient &&
      (!isGradient || op.getInput().getType() == result))
    return success();
  return op.emitOpError() << "(C2) has "
                          << (op.getInput() ? "an input" : "no input")
                          << ", expected one of the result's type beside "
                             "gelu_grad, and only there";
}

/// What sums of `operand` are: the dims that the product keeps.
static RankedTensorType sumsOf(Value operand, StringRef term, StringRef result,
                               Type element) {
  auto type = tensorType(operand);
  SmallVector<int64_t> shape = {1};
  SmallVector<StringAttr> names = {
      StringAttr::get(type.getContext(), dims::chunks)};
  for (auto [i, letter] : llvm::enumerate(term))
    if (result.contains(letter)) {
      shape.push_back(type.getDimSize(i));
      names.push_back(dimsOf(type).getNames()[i]);
    }
  return namedType(shape, DimsAttr::get(type.getContext(), names), element);
}

static LogicalResult verifyAux(ProductOp op, const Equation &equation) {
  auto result = op.getResult().getType();
  RankedTensorType expected;
  bool isOptional = false;
  switch (op.getEpilogue()) {
  case Epilogue::gelu:
    expected = result;
    isOptional = true;
    break;
  case Epilogue::gelu_grad:
    break;
  case Epilogue::sum_lhs:
    expected = sumsOf(op.getLhs(), equation.lhs, equation.result,
                      result.getElementType());
    break;
  case Epilogue::sum_rhs:
    expected = sumsOf(op.getRhs(), equation.rhs, equation.result,
                      result.getElementType());
    break;
  }
  bool fits =
      op.getAux() ? op.getAux().getType() == expected : isOptional || !expected;
  if (fits)
    return success();
  InFlightDiagnostic error = op.emitOpError() << "(C3) has ";
  if (op.getAux())
    error << "aux of " << op.getAux().getType();
  else
    error << "no aux";
  if (expected)
    return error << ", expected " << expected;
  return error << ", expected none";
}

LogicalResult ProductOp::verify() {
  FailureOr<Equation> equation = Equation::parse(getEquation());
  if (failed(equation))
    return emitOpError() << "(C1) equation is \"" << getEquation()
                         << "\", expected a form like \"ab,bc->ac\"";
  if (failed(verifyLetters(*this, *equation)) || failed(verifyInputs(*this)))
    return failure();
  return verifyAux(*this, *equation);
}

uint64_t ProductOp::getFlops() {
  FailureOr<Equation> equation = Equation::parse(getEquation());
  uint64_t flops = 2;
  for (int64_t size : tensorType(getResult()).getShape())
    flops *= size;
  for (auto [i, letter] : llvm::enumerate(equation->lhs))
    if (!equation->result.contains(letter))
      flops *= tensorType(getLhs()).getDimSize(i);
  return flops;
}
