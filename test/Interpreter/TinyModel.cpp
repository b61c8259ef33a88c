#include "TinyModel.h"

#include <cmath>

using meshwork::transformer::ParameterOp;
using meshwork::transformer::StateKind;
using meshwork::transformer::StepInput;

namespace meshwork::interpreter {

static constexpr const char *bind =
    "transformer-bind{batch=4 sequence=4 tokens-per-step=32}";

std::string pipeline(const std::string &passes) {
  return std::string(bind) + "," + passes;
}

Tensor ids(unsigned seed) {
  Tensor tensor = randomTensor({batch, sequence}, seed, 0, 7);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor[i] = std::floor(tensor[i]);
  return tensor;
}

void setWeights(Program &program, mlir::StringRef function) {
  unsigned seed = 100;
  program.function(function).walk([&](ParameterOp op) {
    auto shape =
        meshwork::transformer::tensorType(op.getResult()).getShape().vec();
    program.interpreter.state[{StateKind::master, op.getName().str()}] =
        randomTensor(shape, seed++, -0.7, 0.9);
  });
  program.interpreter.inputs = {{StepInput::seed, 11},
                                {StepInput::step, 3},
                                {StepInput::first_sample, 8}};
}

void runMicrobatches(Program &program) {
  setWeights(program, "microbatch");
  for (unsigned i : {0, 1}) {
    program.interpreter.inputs[StepInput::first_sample] = 8 + batch * i;
    program.run({ids(1 + i), ids(3 + i)}, "microbatch");
  }
}

} // namespace meshwork::interpreter
