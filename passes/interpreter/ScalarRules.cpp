// What each op of a body computes.
#include "passes/interpreter/ScalarProgram.h"

#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {
namespace {

using Operands = ArrayRef<double>;
using Rule = ScalarRule;

/// A rule of the operands alone.
template <typename Function> Rule of(Function function) {
  return [=](Operands x, ArrayRef<int64_t>) -> double { return function(x); };
}

int32_t toInt(double value) { return static_cast<int32_t>(value); }
/// Integer arithmetic wraps at 32 bits, as in the machine.
double wrap(uint32_t value) { return static_cast<int32_t>(value); }
uint32_t bits(double value) { return static_cast<uint32_t>(toInt(value)); }

bool compare(arith::CmpFPredicate predicate, double x, double y) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(x) || std::isnan(y);
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::AlwaysTrue:
    return true;
  case P::ORD:
    return !unordered;
  case P::UNO:
    return unordered;
  case P::OEQ:
    return x == y;
  case P::OGT:
    return x > y;
  case P::OGE:
    return x >= y;
  case P::OLT:
    return x < y;
  case P::OLE:
    return x <= y;
  case P::ONE:
    return !unordered && x != y;
  case P::UEQ:
    return unordered || x == y;
  case P::UGT:
    return unordered || x > y;
  case P::UGE:
    return unordered || x >= y;
  case P::ULT:
    return unordered || x < y;
  case P::ULE:
    return unordered || x <= y;
  case P::UNE:
    return x != y;
  }
  llvm_unreachable("all predicates are handled");
}

bool compare(arith::CmpIPredicate predicate, double x, double y) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return x == y;
  case P::ne:
    return x != y;
  case P::slt:
    return x < y;
  case P::sle:
    return x <= y;
  case P::sgt:
    return x > y;
  case P::sge:
    return x >= y;
  case P::ult:
    return bits(x) < bits(y);
  case P::ule:
    return bits(x) <= bits(y);
  case P::ugt:
    return bits(x) > bits(y);
  case P::uge:
    return bits(x) >= bits(y);
  }
  llvm_unreachable("all predicates are handled");
}

double maximum(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? NAN : std::fmax(x, y);
}
double minimum(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? NAN : std::fmin(x, y);
}

Rule constantRule(arith::ConstantOp op) {
  double value;
  if (auto number = dyn_cast<FloatAttr>(op.getValue()))
    value = number.getValueAsDouble();
  else if (auto integer = dyn_cast<IntegerAttr>(op.getValue()))
    value = integer.getType().isInteger(1)
                ? static_cast<double>(integer.getValue().getZExtValue())
                : static_cast<double>(integer.getValue().getSExtValue());
  else
    return {};
  return of([=](Operands) { return value; });
}

Rule floatRule(Operation *op) {
  return llvm::TypeSwitch<Operation *, Rule>(op)
      .Case([](arith::AddFOp) {
        return of([](Operands x) { return x[0] + x[1]; });
      })
      .Case([](arith::SubFOp) {
        return of([](Operands x) { return x[0] - x[1]; });
      })
      .Case([](arith::MulFOp) {
        return of([](Operands x) { return x[0] * x[1]; });
      })
      .Case([](arith::DivFOp) {
        return of([](Operands x) { return x[0] / x[1]; });
      })
      .Case([](arith::NegFOp) { return of([](Operands x) { return -x[0]; }); })
      .Case([](arith::MaximumFOp) {
        return of([](Operands x) { return maximum(x[0], x[1]); });
      })
      .Case([](arith::MinimumFOp) {
        return of([](Operands x) { return minimum(x[0], x[1]); });
      })
      .Case([](arith::MaxNumFOp) {
        return of([](Operands x) { return std::fmax(x[0], x[1]); });
      })
      .Case([](arith::MinNumFOp) {
        return of([](Operands x) { return std::fmin(x[0], x[1]); });
      })
      .Case([](math::RoundEvenOp) {
        return of([](Operands x) { return std::nearbyint(x[0]); });
      })
      .Case([](math::AbsFOp) {
        return of([](Operands x) { return std::fabs(x[0]); });
      })
      .Case([](math::ExpOp) {
        return of([](Operands x) { return std::exp(x[0]); });
      })
      .Case([](math::LogOp) {
        return of([](Operands x) { return std::log(x[0]); });
      })
      .Case([](math::TanhOp) {
        return of([](Operands x) { return std::tanh(x[0]); });
      })
      .Case([](math::ErfOp) {
        return of([](Operands x) { return std::erf(x[0]); });
      })
      .Case([](math::SqrtOp) {
        return of([](Operands x) { return std::sqrt(x[0]); });
      })
      .Case([](math::RsqrtOp) {
        return of([](Operands x) { return 1 / std::sqrt(x[0]); });
      })
      .Case([](math::FmaOp) {
        return of([](Operands x) { return std::fma(x[0], x[1], x[2]); });
      })
      .Case([](arith::CmpFOp cmp) {
        return of([p = cmp.getPredicate()](Operands x) {
          return compare(p, x[0], x[1]);
        });
      })
      // Rounding to a storage type is left out: all of this is in double.
      .Case<arith::ExtFOp, arith::TruncFOp>(
          [](auto) { return of([](Operands x) { return x[0]; }); })
      .Default([](Operation *) { return Rule(); });
}

/// Bits are those of the nearest f32.
Rule bitcastRule(arith::BitcastOp op) {
  if (op.getType().isF32())
    return of(
        [](Operands x) -> double { return llvm::bit_cast<float>(bits(x[0])); });
  return of([](Operands x) {
    return wrap(llvm::bit_cast<uint32_t>(static_cast<float>(x[0])));
  });
}

Rule integerRule(Operation *op) {
  return llvm::TypeSwitch<Operation *, Rule>(op)
      .Case([](arith::AddIOp) {
        return of([](Operands x) { return wrap(bits(x[0]) + bits(x[1])); });
      })
      .Case([](arith::SubIOp) {
        return of([](Operands x) { return wrap(bits(x[0]) - bits(x[1])); });
      })
      .Case([](arith::MulIOp) {
        return of([](Operands x) { return wrap(bits(x[0]) * bits(x[1])); });
      })
      .Case([](arith::AndIOp) {
        return of([](Operands x) { return wrap(bits(x[0]) & bits(x[1])); });
      })
      .Case([](arith::OrIOp) {
        return of([](Operands x) { return wrap(bits(x[0]) | bits(x[1])); });
      })
      .Case([](arith::ShLIOp) {
        return of([](Operands x) { return wrap(bits(x[0]) << bits(x[1])); });
      })
      .Case([](arith::ShRUIOp) {
        return of([](Operands x) { return wrap(bits(x[0]) >> bits(x[1])); });
      })
      .Case([](arith::MaxSIOp) {
        return of([](Operands x) { return std::max(x[0], x[1]); });
      })
      .Case([](arith::MinSIOp) {
        return of([](Operands x) { return std::min(x[0], x[1]); });
      })
      .Case([](arith::BitcastOp cast) { return bitcastRule(cast); })
      .Case([](arith::SIToFPOp) { return of([](Operands x) { return x[0]; }); })
      .Case([](arith::FPToSIOp) {
        return of([](Operands x) -> double { return toInt(x[0]); });
      })
      .Case([](arith::CmpIOp cmp) {
        return of([p = cmp.getPredicate()](Operands x) {
          return compare(p, x[0], x[1]);
        });
      })
      .Case([](arith::SelectOp) {
        return of([](Operands x) { return x[0] != 0 ? x[1] : x[2]; });
      })
      .Default([](Operation *) { return Rule(); });
}

/// A rank's part counts positions in the whole space, from where it begins.
Rule drawRule(DrawOpInterface op, RankedTensorType space) {
  SmallVector<int64_t> sizes(op.getSpace().value_or(space.getShape()));
  SmallVector<int64_t> strides = stridesWithin(
      RankedTensorType::get(sizes, space.getElementType(), space.getEncoding()),
      space);
  auto strideOf = [&](StringAttr name) -> int64_t {
    int64_t dim = dimsOf(space).find(name);
    return dim < 0 ? 0 : strides[dim];
  };
  SmallVector<int64_t> offsetStrides; // of the first sample and the offsets
  offsetStrides.push_back(strideOf(StringAttr::get(op.getContext(), "batch")));
  if (ArrayAttr dims = op.getDimsAttr())
    for (StringAttr name : dims.getAsRange<StringAttr>())
      offsetStrides.push_back(strideOf(name));
  uint32_t stream = op.getStream();
  std::optional<double> rate;
  if (auto mask = dyn_cast<DropoutMaskOp>(op.getOperation()))
    rate = mask.getRate().convertToDouble();
  return [=](Operands x, ArrayRef<int64_t> index) {
    int64_t position = positionOf(index, strides);
    for (auto [i, stride] : llvm::enumerate(offsetStrides))
      position += toInt(x[2 + i]) * stride;
    RandomInputs random{x[0], x[1], x[2]};
    auto at = static_cast<uint64_t>(position);
    return rate ? dropoutFactor(random, stream, *rate, at)
                : stochasticallyRounded(x.back(), random, stream, at);
  };
}
} // namespace

ScalarRule ruleOf(Operation *op, RankedTensorType space) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return constantRule(constant);
  if (auto draw = dyn_cast<DrawOpInterface>(op))
    return drawRule(draw, space);
  if (auto index = dyn_cast<IndexOp>(op)) {
    int64_t dim = dimsOf(space).find(index.getDimAttr());
    if (dim < 0)
      return {};
    return [=](Operands, ArrayRef<int64_t> at) -> double { return at[dim]; };
  }
  if (Rule rule = floatRule(op))
    return rule;
  return integerRule(op);
}

} // namespace meshwork::interpreter
