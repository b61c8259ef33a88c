// Products of linear layers in FP8: what they multiply is scaled by one number
// for each tensor, rounded to 8 bits, and the sums are scaled back.
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "lib/Plan/Float8Sizes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/transform/Passes.h"
#include "passes/transform/RoundedExperts.h"
#include "passes/transform/Scales.h"
#include <map>

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_QUANTIZEPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;
using plan::float8Unit;

/// Whether some op reads the product in f32, whatever its operands are.
bool isReadInF32(ContractOp op) {
  return !isBackward(op) && op.getType().getElementType() !=
                                tensorType(op.getLhs()).getElementType();
}

/// Linear layers multiply with a parameter; their backward products do, too, or
/// make a parameter's gradient.
bool isOfLinearLayer(ContractOp op) {
  if (isReadInF32(op))
    return false;
  auto isParameter = [](Value value) {
    return isa_and_nonnull<ParameterOp>(value.getDefiningOp());
  };
  return isParameter(op.getLhs()) || isParameter(op.getRhs()) ||
         (isBackward(op) && llvm::any_of(op->getUsers(), [](Operation *user) {
            return isa<AccumulateOp>(user);
          }));
}

/// The weight of a product, or the one that it makes the gradient of.
StringRef weightOf(ContractOp product) {
  for (Value operand : {product.getLhs(), product.getRhs()})
    if (auto weight = operand.getDefiningOp<ParameterOp>())
      return weight.getName();
  for (Operation *user : product->getUsers())
    if (auto accumulate = dyn_cast<AccumulateOp>(user))
      return accumulate.getName();
  llvm_unreachable("isOfLinearLayer");
}

/// The letters of `of` that are, or are not, in `in`.
std::string letters(StringRef of, StringRef in, bool wanted) {
  std::string result;
  llvm::copy_if(of, std::back_inserter(result),
                [&](char c) { return in.contains(c) == wanted; });
  return result;
}

/// An operand of a product, and how its dims are ordered there.
struct Operand {
  Value value;
  DimsAttr dims;
};

/// A product whose operands have the summed dims last, in one order: tensor
/// cores of sm_90 multiply 8-bit operands along their dense dim alone.
struct Product {
  ContractOp op;
  Operand lhs, rhs;
  std::string equation;
};

Operand operandOf(Value value, StringRef term, StringRef wanted) {
  SmallVector<StringAttr> names;
  for (char letter : wanted)
    names.push_back(dimsOf(value).getNames()[term.find(letter)]);
  return {value, DimsAttr::get(value.getContext(), names)};
}

Product productOf(ContractOp op, const Equation &equation) {
  auto [lhs, rhs, result] = equation;
  std::string summed = letters(lhs, result, false);
  std::string rows = letters(result, lhs, true) + summed,
              columns = letters(result, rhs, true) + summed;
  return {op, operandOf(op.getLhs(), lhs, rows),
          operandOf(op.getRhs(), rhs, columns),
          (rows + "," + columns + "->" + result).str()};
}

class Quantization {
public:
  Quantization(func::FuncOp function, const llvm::StringMap<int64_t> &splits,
               When when, bool tiles)
      : function(function), splits(splits), scales(function, when),
        tiles(tiles), builder(function.getContext()) {}

  void run() {
    SmallVector<ContractOp> products(function.getOps<ContractOp>());
    SmallVector<Product> chosen;
    for (ContractOp op : products) {
      FailureOr<Equation> equation = Equation::parse(op.getEquation());
      if (succeeded(equation) && isOfLinearLayer(op) && fits(op, *equation))
        chosen.push_back(productOf(op, *equation));
    }
    for (const Product &product : chosen)
      for (const Operand &operand : {product.lhs, product.rhs})
        note(operand, product.op);
    // Values stay what they were noted as until all are quantized.
    SmallVector<ContractOp> replacements = llvm::map_to_vector(
        chosen, [&](const Product &product) { return quantize(product); });
    for (auto [product, replacement] : llvm::zip_equal(chosen, replacements)) {
      product.op.getResult().replaceAllUsesWith(replacement.getResult());
      product.op->erase();
    }
    RoundedExperts(function, scales).run();
    scales.finish();
  }

private:
  /// Whether it is one product of sizes that tensor cores take, on each rank.
  bool fits(ContractOp op, const Equation &equation) {
    auto sizeOf = [&](StringRef of, Value value, StringRef in, bool wanted) {
      int64_t size = 1;
      for (auto [i, letter] : llvm::enumerate(of)) {
        if (in.contains(letter) != wanted)
          continue;
        auto split = splits.find(dimsOf(value).getNames()[i].getValue());
        size *= llvm::divideCeil(tensorType(value).getDimSize(i),
                                 split == splits.end() ? 1 : split->second);
      }
      return size;
    };
    auto [lhs, rhs, result] = equation;
    bool isBatched = llvm::any_of(result, [&, l = lhs, r = rhs](char c) {
      return l.contains(c) && r.contains(c);
    });
    return !isBatched &&
           sizeOf(lhs, op.getLhs(), result, true) % float8Unit == 0 &&
           sizeOf(rhs, op.getRhs(), result, true) % float8Unit == 0 &&
           sizeOf(lhs, op.getLhs(), result, false) % float8Unit == 0;
  }

  void note(const Operand &operand, Operation *user) {
    orders[keyOf(operand.value, user)].insert(operand.dims);
  }

  ContractOp quantize(const Product &of) {
    ContractOp op = of.op;
    builder.setInsertionPoint(op);
    StringRef weight = weightOf(op);
    Scale ofLhs = scales.of(of.lhs.value, op, weight),
          ofRhs = scales.of(of.rhs.value, op, weight);
    Value left = quantized(of.lhs, ofLhs, op),
          right = quantized(of.rhs, ofRhs, op);
    auto product = ContractOp::create(
        builder, op.getLoc(), op.getType(), builder.getStringAttr(of.equation),
        left, right, ValueRange{ofLhs.inverse, ofRhs.inverse}, Value());
    product->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    for (Value operand : {op.getLhs(), op.getRhs()})
      if (auto weight = operand.getDefiningOp<ParameterOp>())
        product->setDiscardableAttr(facts::parameter, weight.getNameAttr());
    return product;
  }

  Type formatOf(Value value) {
    return isGradient(value) ? Type(builder.getType<Float8E5M2Type>())
                             : Type(builder.getType<Float8E4M3FNType>());
  }

  /// The operand, scaled and rounded. What another product of a gradient, or of
  /// a weight of the step, reads is made here, too: one kernel then reads it
  /// once for both.
  Value quantized(const Operand &operand, const Scale &scale, Operation *user) {
    Key key = keyOf(operand.value, user);
    auto copyOf = [&](DimsAttr dims) -> Value & {
      return copies[{key, dims.getAsOpaquePointer()}];
    };
    if (!copyOf(operand.dims))
      for (DimsAttr dims : orders[key])
        copyOf(dims) = buildCopy({operand.value, dims}, scale, user);
    return copyOf(operand.dims);
  }

  /// Whether one kernel can make value and copy. Others wait for their use:
  /// else all weights would be there in 8 bits, too, from the start, and
  /// without tiles a kernel that finds a maximum stores a transposed copy
  /// element by element.
  bool isMadeWithValue(const Operand &operand, Operation *user) const {
    Operation *producer = operand.value.getDefiningOp();
    return scales.isDelayed(operand.value) && producer &&
           isBackward(producer) == isBackward(user) &&
           (tiles || operand.dims == dimsOf(operand.value));
  }

  Value buildCopy(const Operand &operand, const Scale &scale, Operation *user) {
    OpBuilder::InsertionGuard guard(builder);
    if (scales.isOfStep(operand.value))
      builder.setInsertionPointAfterValue(scale.scale);
    auto type = tensorType(operand.value);
    SmallVector<int64_t> shape;
    for (StringAttr name : operand.dims.getNames())
      shape.push_back(type.getDimSize(dimsOf(type).find(name)));
    Value copy =
        buildMap(builder, operand.value.getLoc(),
                 namedType(shape, operand.dims, formatOf(operand.value)),
                 {operand.value, scale.scale},
                 [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
                   Value scaled = arith::MulFOp::create(b, x[0], x[1]);
                   if (!scales.isDelayed(operand.value))
                     return scaled;
                   // An infinity would become the largest number: it is NaN.
                   return arith::AddFOp::create(
                       b, scaled, arith::SubFOp::create(b, x[0], x[0]));
                 });
    scales.setFacts(copy.getDefiningOp(), operand.value, user);
    if (!scales.isOfStep(operand.value) && !isMadeWithValue(operand, user))
      setNotBefore(copy.getDefiningOp());
    return copy;
  }

  func::FuncOp function;
  const llvm::StringMap<int64_t> &splits;
  Scales scales;
  bool tiles;
  OpBuilder builder;
  // Value, in the backward pass, layer.
  using Key = std::tuple<const void *, bool, int64_t>;
  Key keyOf(Value value, Operation *user) const {
    return {value.getAsOpaquePointer(),
            isBackward(user) && !scales.isOfStep(value),
            scales.ownerOf(value, user)};
  }
  std::map<Key, llvm::SetVector<DimsAttr>> orders;
  std::map<std::pair<Key, const void *>, Value> copies; // by dims
};

struct QuantizePass : impl::QuantizePassBase<QuantizePass> {
  using QuantizePassBase::QuantizePassBase;

  static bool hasNorm(func::FuncOp update) {
    return llvm::any_of(update.getOps<AssignOp>(), [](AssignOp op) {
      return op.getKind() == StateKind::grad_norm;
    });
  }

  void runOnOperation() override {
    func::FuncOp microbatch = microbatchOf(getOperation());
    if (!microbatch)
      return signalPassFailure();
    llvm::StringMap<int64_t> ranks;
    for (const options::DimSplit &split : splits)
      ranks[split.name] = split.value;
    auto update = functionOf(getOperation(), StepFunction::update);
    bool remembers = delayed || RoundedExperts::areIn(microbatch);
    if (remembers && (!update || !hasNorm(update) || targets < 1)) {
      getOperation().emitError()
          << (delayed ? "delayed scaling" : "experts in FP8")
          << ": expected a function @update that assigns the gradient norm, "
             "and at least one target of a step";
      return signalPassFailure();
    }
    Quantization(
        microbatch, ranks,
        {{update, static_cast<double>(targets), delayed}, weightsPerStep},
        tiles)
        .run();
  }
};
} // namespace
} // namespace meshwork::transform
