// contract: the einsum equation, its factors, flops and gradients.
#include "dialects/transformer/Transformer.h"

using namespace mlir;
using namespace meshwork::transformer;

static bool isTerm(StringRef term) {
  llvm::SmallDenseSet<char> seen;
  return !term.empty() && llvm::all_of(term, [&](char c) {
    return c >= 'a' && c <= 'z' && seen.insert(c).second;
  });
}

FailureOr<Equation> Equation::parse(StringRef text) {
  auto [operands, result] = text.split("->");
  auto [lhs, rhs] = operands.split(',');
  if (!isTerm(lhs) || !isTerm(rhs) || !isTerm(result))
    return failure();
  for (char c : (lhs + rhs + result).str())
    if (lhs.contains(c) + rhs.contains(c) + result.contains(c) < 2)
      return failure();
  return Equation{lhs, rhs, result};
}

/// That f8 operands, and only they, come with scales; label C4.
static LogicalResult verifyScales(ContractOp op) {
  bool lhs = isF8(tensorType(op.getLhs()).getElementType()),
       rhs = isF8(tensorType(op.getRhs()).getElementType());
  size_t wanted = lhs && rhs ? 2 : 0;
  if (lhs == rhs && op.getScales().size() == wanted)
    return success();
  return op.emitOpError() << "(C4) multiplies " << op.getLhs().getType()
                          << " by " << op.getRhs().getType() << " with "
                          << op.getScales().size()
                          << " scales, expected two scales for two operands "
                             "of f8, or none for none";
}

LogicalResult ContractOp::verify() {
  FailureOr<Equation> equation = Equation::parse(getEquation());
  if (failed(equation))
    return emitOpError() << "(C1) equation is \"" << getEquation()
                         << "\", expected a form like \"ab,bc->ac\": distinct "
                            "letters in a term, each in two terms at least";
  llvm::SmallDenseMap<char, std::pair<int64_t, StringAttr>> letters;
  using Term = std::pair<StringRef, Value>;
  for (auto [term, value] :
       {Term(equation->lhs, getLhs()), Term(equation->rhs, getRhs()),
        Term(equation->result, getResult())}) {
    auto type = tensorType(value);
    if (static_cast<int64_t>(term.size()) != type.getRank())
      return emitOpError() << "(C1) term \"" << term << "\" has " << term.size()
                           << " letters for " << type;
    for (auto [i, letter] : llvm::enumerate(term)) {
      std::pair<int64_t, StringAttr> dim(type.getDimSize(i),
                                         dimsOf(type).getNames()[i]);
      auto [known, isNew] = letters.try_emplace(letter, dim);
      if (!isNew && known->second != dim)
        return emitOpError()
               << "(C2) letter '" << std::string(1, letter) << "' is dim '"
               << known->second.second.getValue() << "' of size "
               << known->second.first << " and dim '" << dim.second.getValue()
               << "' of size " << dim.first;
    }
  }
  if (failed(verifyScales(*this)))
    return failure();
  if (!getBias())
    return success();
  auto bias = tensorType(getBias());
  auto names = dimsOf(getResult()).getNames();
  if (bias.getRank() > tensorType(getResult()).getRank() ||
      bias.getShape() !=
          tensorType(getResult()).getShape().take_back(bias.getRank()) ||
      dimsOf(bias).getNames() != names.take_back(bias.getRank()))
    return emitOpError() << "(C3) bias is " << bias
                         << ", expected the last dims of " << getType();
  return success();
}

SmallVector<Factor> ContractOp::getFactors() {
  FailureOr<Equation> equation = Equation::parse(getEquation());
  assert(succeeded(equation) && "verified");
  SmallVector<Factor> factors;
  std::string letters = equation->result.str();
  for (char letter : equation->lhs)
    if (!equation->result.contains(letter))
      letters.push_back(letter);
  auto position = [](StringRef term, char letter) {
    size_t at = term.find(letter);
    return at == StringRef::npos ? int64_t{-1} : static_cast<int64_t>(at);
  };
  for (char letter : letters) {
    int64_t l = position(equation->lhs, letter),
            r = position(equation->rhs, letter),
            y = position(equation->result, letter);
    auto holder = tensorType(l >= 0 ? getLhs() : getRhs());
    int64_t at = l >= 0 ? l : r;
    factors.push_back({dimsOf(holder).getNames()[at].getValue(),
                       holder.getDimSize(at),
                       y >= 0 ? Factor::parallel : Factor::reduction,
                       {l, r},
                       {y}});
    factors.back().operandDims.append(getScales().size(), Factor::absent);
    if (getBias())
      factors.back().operandDims.push_back(
          dimsOf(getBias()).find(dimsOf(holder).getNames()[at]));
  }
  return factors;
}

uint64_t ContractOp::getFlops() {
  uint64_t flops = 2;
  for (const Factor &factor : getFactors())
    flops *= factor.size;
  return flops;
}

FailureOr<SmallVector<Value>>
ContractOp::buildGradients(OpBuilder &builder, ValueRange gradients,
                           ArrayRef<bool> needed) {
  FailureOr<Equation> equation = Equation::parse(getEquation());
  if (failed(equation) || getBias() || !getScales().empty())
    return emitOpError("has no gradient with a bias or with scales; fold "
                       "biases and quantize after autodiff");
  auto [l, r, y] = *equation;
  SmallVector<Value> result(2);
  if (needed[0])
    result[0] = ContractOp::create(
        builder, getLoc(), getLhs().getType(),
        builder.getStringAttr(y + "," + r + "->" + l), gradients[0], getRhs());
  // lhs first: both products then run over rows of tokens.
  if (needed[1])
    result[1] = ContractOp::create(
        builder, getLoc(), getRhs().getType(),
        builder.getStringAttr(l + "," + y + "->" + r), getLhs(), gradients[0]);
  return result;
}
