#include "TinyModel.h"

#include <cmath>

using meshwork::transformer::ParameterOp;
using meshwork::transformer::StateKind;
using meshwork::transformer::StepInput;

namespace meshwork::interpreter {

static constexpr const char *bind =
    "transformer-bind{batch=4 sequence=4 microbatches=2}";

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

const std::vector<std::pair<std::string, std::string>> &losses() {
  static const std::string scalars =
      " : tensor<f32>, tensor<f32> -> tensor<f32>\n";
  static const std::vector<std::pair<std::string, std::string>> all = {
      {"scaled",
       R"(%loss = transformer.map ins(%the_head : tensor<f32>) -> tensor<f32> {
        ^bb0(%of_map: f32):
          %factor = arith.constant 0.3 : f32
          %scaled = arith.mulf %of_map, %factor : f32
          transformer.yield %scaled : f32
        }
)"},
      {"squared", "%loss = transformer.mul %the_head, %the_head" + scalars},
      {"two heads", "%loss = transformer.add %the_head, %half" + scalars},
      {"less the product of both",
       "%extra = transformer.mul %the_head, %half" + scalars +
           "%loss = transformer.sub %the_head, %extra" + scalars},
      {"with a penalty of a weight",
       "%squares = transformer.mul %weight, %weight : !of_w, !of_w -> !of_w\n"
       "%extra = transformer.reduce add %squares over <embed> : !of_w -> "
       "tensor<f32>\n"
       "%loss = transformer.add %extra, %the_head" +
           scalars}};
  return all;
}

std::string withLoss(const std::string &model, const std::string &weight,
                     const std::string &loss) {
  size_t head = model.find("%loss = transformer.head_loss"),
         end = model.find("return %loss");
  std::string line = model.substr(head + 5, end - head - 5), half = line;
  half.replace(half.find("scale 1.0"), 9, "scale 0.5");
  std::string tail = loss;
  size_t made = model.find("%" + weight + " = "),
         type = model.find(" : ", made) + 3;
  std::string ofWeight = model.substr(type, model.find('\n', type) - type);
  auto replace = [&](const std::string &from, const std::string &to) {
    for (size_t i; (i = tail.find(from)) != std::string::npos;)
      tail.replace(i, from.size(), to);
  };
  replace("!of_w", ofWeight);
  replace("%weight", "%" + weight);
  return model.substr(0, head) + "%the_head" + line + "%half" + half + tail +
         model.substr(end);
}

void runMicrobatches(Program &program) {
  setWeights(program, "microbatch");
  for (unsigned i : {0, 1}) {
    program.interpreter.inputs[StepInput::first_sample] = 8 + batch * i;
    program.run({ids(1 + i), ids(3 + i)}, "microbatch");
  }
}

unsigned checkDerivative(const std::string &text,
                         const std::set<std::string> &names) {
  Program model(text);
  model.transform(pipeline("cse"));
  setWeights(model, "loss");
  Program step(text);
  step.transform(pipeline("transformer-decompose,cse,transformer-autodiff"));
  runMicrobatches(step);
  auto loss = [&] {
    double sum = 0;
    for (unsigned i : {0, 1}) {
      model.interpreter.inputs[StepInput::first_sample] = 8 + batch * i;
      sum += model.run({ids(1 + i), ids(3 + i)}, "loss")[0][0];
    }
    return sum;
  };
  EXPECT_NEAR(step.interpreter.state.at({StateKind::loss, ""})[0], loss(),
              1e-12);
  unsigned count = 0;
  for (auto &[key, weight] : model.interpreter.state) {
    if (!names.empty() && !names.contains(key.name))
      continue;
    Tensor original = weight;
    Tensor expected = finiteDifferences(
        [&, &weight = weight](const Tensor &moved) {
          weight = moved;
          return loss();
        },
        original);
    weight = original;
    EXPECT_LT(relativeError(
                  step.interpreter.state.at({StateKind::gradient, key.name}),
                  expected),
              1e-6)
        << key.name;
    ++count;
  }
  return count;
}

} // namespace meshwork::interpreter
