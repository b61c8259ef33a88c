// Products of linear layers in FP8: what they multiply is scaled by one number
// for each tensor, rounded to 8 bits, and the sums are scaled back.
//
// Formats: Micikevicius et al., arXiv 2209.05433: e4m3 for weights and
// activations, e5m2 for gradients. The tensor's largest magnitude comes to lie
// just below the format's largest number.
//
// Delayed scaling: Micikevicius et al., too, and what NVIDIA's Transformer
// Engine calls so; there the largest of a number of steps, here of all,
// forgotten by halves, which is one number to keep.
#include "dialects/transformer/Facts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/transform/Passes.h"
#include <cmath>
#include <map>

using namespace mlir;
namespace meshwork::transform {
#define GEN_PASS_DEF_QUANTIZEPASS
#include "passes/transform/Passes.h.inc"
namespace {
using namespace transformer;

/// What each size of an FP8 product on tensor cores is a multiple of: 16 bytes
/// of either operand's dense dim, and of a result's (cuBLAS, 8-bit data types).
constexpr int64_t unit = 16;

/// A gradient of an activation: the loss's, or what the backward pass made.
bool isGradient(Value value) {
  Operation *op = value.getDefiningOp();
  return op && (isBackward(op) || isa<HeadLossGradOp>(op));
}

/// Linear layers multiply with a parameter; their backward products do, too, or
/// make a parameter's gradient.
bool isOfLinearLayer(ContractOp op) {
  auto isParameter = [](Value value) {
    return isa_and_nonnull<ParameterOp>(value.getDefiningOp());
  };
  return isParameter(op.getLhs()) || isParameter(op.getRhs()) ||
         (isBackward(op) && llvm::any_of(op->getUsers(), [](Operation *user) {
            return isa<AccumulateOp>(user);
          }));
}

/// The letters of `of` that are, or are not, in `in`.
std::string letters(StringRef of, StringRef in, bool wanted) {
  std::string result;
  llvm::copy_if(of, std::back_inserter(result),
                [&](char c) { return in.contains(c) == wanted; });
  return result;
}

/// So many steps without a larger one, and a remembered magnitude is half.
constexpr int stepsOfHalf = 16;

struct Scale {
  Value scale, inverse; // tensor<f32>
};

/// A power of two, so that scaling rounds nothing and any device's bits are the
/// same: the largest one that keeps `amax` within the format. Both formats' end
/// is 1.75 * 2^e. NaN where `amax` is not finite, so that it is not hidden by a
/// value that FP8 can hold; the inverse is finite always.
SmallVector<Value> powersOfTwo(ImplicitLocOpBuilder &b, Value amax,
                               int64_t maxExponent) {
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  auto power = [&](Value biasedExponent) -> Value {
    return arith::BitcastOp::create(
        b, b.getF32Type(),
        arith::ShLIOp::create(b, biasedExponent, number(23)));
  };
  Value bits = arith::BitcastOp::create(b, b.getI32Type(), amax);
  // Above 1.75 the sum carries into the exponent.
  Value exponent = arith::ShRUIOp::create(
      b, arith::AddIOp::create(b, bits, number(0x1fffff)), number(23));
  Value scale =
      arith::SubIOp::create(b, number(2 * 127 + maxExponent), exponent);
  scale = arith::MinSIOp::create(b, arith::MaxSIOp::create(b, scale, number(1)),
                                 number(253));
  Value isFinite = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, bits,
                                         number(0x7f800000));
  Value nan = arith::ConstantOp::create(
      b, b.getF32FloatAttr(std::numeric_limits<float>::quiet_NaN()));
  return {arith::SelectOp::create(b, isFinite, power(scale), nan),
          power(arith::SubIOp::create(b, number(254), scale))};
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

/// The largest number of a format.
double largestOf(int64_t maxExponent) { return std::ldexp(1.75, maxExponent); }

/// For delayed scaling.
struct Delayed {
  func::FuncOp update; // null: scales come from the tensors as they are
  double targets = 1;  // of a step
};

class Quantization {
public:
  Quantization(func::FuncOp function, const llvm::StringMap<int64_t> &splits,
               Delayed delayed)
      : function(function), splits(splits), delayed(delayed),
        builder(function.getContext()) {}

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
    return !isBatched && sizeOf(lhs, op.getLhs(), result, true) % unit == 0 &&
           sizeOf(rhs, op.getRhs(), result, true) % unit == 0 &&
           sizeOf(lhs, op.getLhs(), result, false) % unit == 0;
  }

  void note(const Operand &operand, Operation *user) {
    orders[{operand.value.getAsOpaquePointer(), isBackward(user)}].insert(
        operand.dims);
  }

  ContractOp quantize(const Product &of) {
    ContractOp op = of.op;
    builder.setInsertionPoint(op);
    Scale ofLhs = scaleOf(of.lhs.value, op), ofRhs = scaleOf(of.rhs.value, op);
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

  bool isDelayed(Value value) const {
    return delayed.update &&
           !isa_and_nonnull<ParameterOp>(value.getDefiningOp());
  }

  /// Beside its first use, which for an activation is in the forward pass.
  Scale scaleOf(Value value, ContractOp user) {
    Scale &known = scales[value];
    if (known.scale)
      return known;
    Value largest = magnitudeOf(value, user);
    bool isLater = isDelayed(value);
    if (isLater)
      largest = remembered(value, largest, user);
    int64_t maxExponent = isGradient(value) ? 15 : 8; // 57344 and 448
    // What nothing is known of: see README.md.
    double first =
        largestOf(maxExponent) / (isGradient(value) ? delayed.targets : 1);
    OpBuilder::InsertionGuard guard(builder);
    if (isLater)
      builder.setInsertionPointAfterValue(largest);
    auto powers = MapOp::create(
        builder, value.getLoc(), {scalarType(), scalarType()}, largest,
        [&](OpBuilder &b, mlir::Location loc, ValueRange x) {
          ImplicitLocOpBuilder inner(loc, b);
          return powersOfTwo(inner, isLater ? orElse(inner, x[0], first) : x[0],
                             maxExponent);
        });
    // Of no pass and no layer where it is known before the step.
    if (!isLater)
      inheritFacts(user, powers);
    return known = {powers.getResult(0), powers.getResult(1)};
  }

  /// `value`, or `other` where it is 0.
  static Value orElse(ImplicitLocOpBuilder &b, Value value, double other) {
    Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0)),
          isZero =
              arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, value, zero);
    return arith::SelectOp::create(
        b, isZero,
        arith::ConstantOp::create(b,
                                  b.getF32FloatAttr(static_cast<float>(other))),
        value);
  }

  Type scalarType() { return RankedTensorType::get({}, builder.getF32Type()); }

  Value magnitudeOf(Value value, Operation *user) {
    mlir::Location loc = value.getLoc();
    Value magnitudes =
        buildMap(builder, loc, value.getType(), value,
                 [](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
                   return math::AbsFOp::create(b, x[0]);
                 });
    Value amax = ReduceOp::create(builder, loc, Reduction::max, magnitudes,
                                  dimsOf(value));
    for (Value made : {magnitudes, amax})
      inheritFacts(user, made.getDefiningOp());
    return amax;
  }

  /// The weight of a product, or the one that it makes the gradient of.
  static StringRef weightOf(ContractOp product) {
    for (Value operand : {product.getLhs(), product.getRhs()})
      if (auto weight = operand.getDefiningOp<ParameterOp>())
        return weight.getName();
    for (Operation *user : product->getUsers())
      if (auto accumulate = dyn_cast<AccumulateOp>(user))
        return accumulate.getName();
    llvm_unreachable("isOfLinearLayer");
  }

  /// The largest magnitude of the steps before. `now` is kept for the next.
  Value remembered(Value value, Value now, ContractOp user) {
    StringRef weight = weightOf(user);
    std::string what = isGradient(value) ? "gradient" : "input";
    size_t uses = ++slots[(weight + " " + what).str()];
    if (uses > 1) // of a weight that several products have
      what += std::to_string(uses);
    StringAttr slot = builder.getStringAttr(what + "_magnitude"),
               slotNow = builder.getStringAttr(what + "_now");
    StateKey kept{StateKind::optimizer, weight, slot.getValue()},
        step{StateKind::magnitude, weight, slotNow.getValue()};
    auto accumulate = AccumulateOp::create(builder, now.getLoc(), step, now);
    inheritFacts(user, accumulate);
    keep(kept, step);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.getBody().front());
    return StateOp::create(builder, now.getLoc(), scalarType(), kept);
  }

  static Value gradNorm(Block &update) {
    for (auto assign : update.getOps<AssignOp>())
      if (assign.getKind() == StateKind::grad_norm)
        return assign.getValue();
    llvm_unreachable("QuantizePass looks");
  }

  /// At the end of the step the larger one is remembered: that of the step, or
  /// the one before, which is forgotten by halves.
  void keep(const StateKey &kept, const StateKey &step) {
    Block &body = delayed.update.getBody().front();
    ImplicitLocOpBuilder b(delayed.update.getLoc(), builder.getContext());
    // Where the other states are read, whose sums over ranks begin there.
    b.setInsertionPointToStart(&body);
    Value before = StateOp::create(b, scalarType(), kept),
          now = StateOp::create(b, scalarType(), step);
    b.setInsertionPoint(body.getTerminator());
    // As weights wait for it: a step may end without an update.
    Value norm = gradNorm(body);
    Value next = buildMap(
        b, b.getLoc(), scalarType(), {before, now, norm},
        [](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
          Value share = arith::ConstantOp::create(
              i, i.getF32FloatAttr(std::exp2f(-1.0f / stepsOfHalf)));
          Value larger = arith::MaximumFOp::create(
              i, arith::MulFOp::create(i, x[0], share), x[1]);
          Value zero = arith::MulFOp::create(
              i, x[2], arith::ConstantOp::create(i, i.getF32FloatAttr(0)));
          return arith::AddFOp::create(i, larger, zero);
        });
    setNotBefore(next.getDefiningOp());
    AssignOp::create(b, kept, next);
  }

  /// The operand, scaled and rounded. What a gradient's other product reads is
  /// made here, too: one kernel then reads the gradient once for both.
  Value quantized(const Operand &operand, const Scale &scale, Operation *user) {
    Key key = {operand.value.getAsOpaquePointer(), isBackward(user)};
    auto copyOf = [&](DimsAttr dims) -> Value & {
      return copies[{key, dims.getAsOpaquePointer()}];
    };
    if (!copyOf(operand.dims))
      for (DimsAttr dims : orders[key])
        copyOf(dims) = buildCopy({operand.value, dims}, scale, user);
    return copyOf(operand.dims);
  }

  /// Whether one kernel can make value and copy. Others wait for their use:
  /// else all weights would be there in 8 bits, too, from the start, and a
  /// kernel that finds a maximum stores a transposed copy element by element.
  bool isMadeWithValue(const Operand &operand, Operation *user) const {
    Operation *producer = operand.value.getDefiningOp();
    return isDelayed(operand.value) && producer &&
           isBackward(producer) == isBackward(user) &&
           operand.dims == dimsOf(operand.value);
  }

  Value buildCopy(const Operand &operand, const Scale &scale, Operation *user) {
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
                   if (!isDelayed(operand.value))
                     return scaled;
                   // An infinity would become the largest number: it is NaN.
                   return arith::AddFOp::create(
                       b, scaled, arith::SubFOp::create(b, x[0], x[0]));
                 });
    inheritFacts(user, copy.getDefiningOp());
    if (!isMadeWithValue(operand, user))
      setNotBefore(copy.getDefiningOp());
    return copy;
  }

  func::FuncOp function;
  const llvm::StringMap<int64_t> &splits;
  Delayed delayed;
  OpBuilder builder;
  llvm::DenseMap<Value, Scale> scales;
  llvm::StringMap<size_t> slots; // by weight and what it is multiplied with
  using Key = std::pair<const void *, bool>; // value, in the backward pass
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
    auto microbatch = getOperation().lookupSymbol<func::FuncOp>("microbatch");
    if (!microbatch) {
      getOperation().emitError()
          << "expected a function @microbatch; run -transformer-autodiff first";
      return signalPassFailure();
    }
    llvm::StringMap<int64_t> ranks;
    for (const options::DimSplit &split : splits)
      ranks[split.name] = split.value;
    auto update = getOperation().lookupSymbol<func::FuncOp>("update");
    if (delayed && (!update || !hasNorm(update) || targets < 1)) {
      getOperation().emitError()
          << "delayed scaling: expected a function @update that assigns the "
             "gradient norm, and at least one target of a step";
      return signalPassFailure();
    }
    Quantization(
        microbatch, ranks,
        {delayed ? update : func::FuncOp(), static_cast<double>(targets)})
        .run();
  }
};
} // namespace
} // namespace meshwork::transform
