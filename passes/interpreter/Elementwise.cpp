// map, reduce and roll, and the randomness of dropout.
#include "passes/interpreter/Evaluate.h"
#include "passes/interpreter/ScalarProgram.h"

#include "llvm/ADT/bit.h"
#include <Random123/philox.h>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {

static uint32_t drawWord(RandomInputs random, uint32_t stream, uint64_t index) {
  auto word = [](double value) {
    return static_cast<uint32_t>(static_cast<int32_t>(value));
  };
  philox4x32_key_t key = {{word(random.seed), stream}};
  philox4x32_ctr_t counter = {{static_cast<uint32_t>(index),
                               static_cast<uint32_t>(index >> 32),
                               word(random.step), 0}};
  return philox4x32_R(10, counter, key).v[0];
}

double dropoutFactor(RandomInputs random, uint32_t stream, double rate,
                     uint64_t index) {
  if (random.firstSample < 0) // an evaluation keeps all
    return 1;
  uint32_t drawn = drawWord(random, stream, index);
  // The factor is an f32, in kernels and in the plan.
  return drawn >= rate * 0x1p32 ? static_cast<float>(1 / (1 - rate)) : 0;
}

double stochasticallyRounded(double value, RandomInputs random, uint32_t stream,
                             uint64_t index) {
  auto single = static_cast<float>(value);
  if (!std::isfinite(single))
    return single;
  constexpr uint32_t high = 0xffff0000;
  auto bits = llvm::bit_cast<uint32_t>(single);
  uint32_t raised = bits + (drawWord(random, stream, index) & ~high);
  auto rounded = llvm::bit_cast<float>(raised & high);
  return std::isfinite(rounded) ? rounded : llvm::bit_cast<float>(bits & high);
}

double roundedToF8(double value, Type format) {
  auto range = isa<Float8E5M2Type>(format)
                   ? std::tuple(3, -14, 57344.0) // significand bits, least
                   : std::tuple(4, -6, 448.0);   // exponent, largest number
  auto [bits, minExponent, largest] = range;
  if (value == 0 || std::isnan(value))
    return value;
  if (std::fabs(value) >= largest)
    return std::copysign(largest, value);
  int unit = std::max(std::ilogb(value), minExponent) - (bits - 1);
  double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  return std::fabs(rounded) > largest ? std::copysign(largest, value) : rounded;
}

static double roundedToI8(double value) {
  return std::isnan(value) ? -127
                           : std::nearbyint(std::clamp(value, -127.0, 127.0));
}

static Results evaluate(MapOp op, ArrayRef<Tensor> operands) {
  FailureOr<ScalarProgram> program = ScalarProgram::compile(op);
  if (failed(program))
    return failure();
  auto space = tensorType(op.getResult(0));
  SmallVector<SmallVector<int64_t>> strides;
  for (Value input : op.getInputs())
    strides.push_back(stridesWithin(tensorType(input), space));
  Tensors results(op.getNumResults(), Tensor::zeros(space));
  int64_t position = 0;
  SmallVector<double> arguments(operands.size());
  forEachIndex(space.getShape(), [&](ArrayRef<int64_t> index) {
    for (size_t i = 0; i < operands.size(); ++i)
      arguments[i] = operands[i][positionOf(index, strides[i])];
    SmallVector<double> values = program->run(arguments, index);
    for (auto [result, value, type] :
         llvm::zip_equal(results, values, op.getResultTypes())) {
      // Rounding to wider types is left out: all of this is in double.
      Type element = cast<RankedTensorType>(type).getElementType();
      result[position] = isF8(element)          ? roundedToF8(value, element)
                         : element.isInteger(8) ? roundedToI8(value)
                                                : value;
    }
    ++position;
  });
  return results;
}

Tensor reduceElements(Reduction kind, RankedTensorType type,
                      const Tensor &input, RankedTensorType result,
                      function_ref<bool(ArrayRef<int64_t>)> counts) {
  bool adds = kind == Reduction::add;
  Tensor combined(result.getShape().vec(),
                  adds ? 0 : -std::numeric_limits<double>::infinity());
  SmallVector<int64_t> strides = stridesWithin(result, type);
  int64_t position = 0;
  forEachIndex(type.getShape(), [&](ArrayRef<int64_t> index) {
    double value = input[position++];
    if (!counts(index))
      return;
    double &into = combined[positionOf(index, strides)];
    if (adds)
      into += value;
    else if (!(value <= into)) // A NaN takes over and stays.
      into = std::isnan(into) ? into : value;
  });
  return combined;
}

static Results evaluate(ReduceOp op, ArrayRef<Tensor> operands) {
  return Tensors{reduceElements(op.getKind(), tensorType(op.getInput()),
                                operands[0], tensorType(op.getResult()),
                                [](ArrayRef<int64_t>) { return true; })};
}

static Results evaluate(RollOp op, ArrayRef<Tensor> operands) {
  Tensor result = Tensor::zeros(op.getType());
  int64_t size = result.getShape().back(), shift = op.getShift();
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t row = i / size * size, within = i % size;
    result[i] = operands[0][row + (within + shift) % size];
  }
  return Tensors{result};
}

void addElementwise(Evaluators &to) {
  to.add<MapOp>(evaluate);
  to.add<ReduceOp>(evaluate);
  to.add<RollOp>(evaluate);
}

} // namespace meshwork::interpreter
