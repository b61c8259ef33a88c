// Whole optimizer steps of one model: AdamW against its formula, and several
// ranks against one.
#include "Harness.h"
#include "TinyModel.h"

#include <cmath>

using namespace meshwork::interpreter;
using meshwork::transformer::ParameterOp;
using meshwork::transformer::StateKind;
using meshwork::transformer::StepInput;

namespace {

/// AdamW and clipping, written out for each element.
TEST(Passes, UpdateIsAdamW) {
  Program program(tinyModel);
  program.transform(
      pipeline("transformer-decompose,transformer-autodiff,transformer-build-"
               "update{settings=beta1=0.9,beta2=0.95,epsilon=1e-4,"
               "weight_decay=0.1 clip-grad-norm=0.05}"));
  runMicrobatches(program);
  auto &state = program.interpreter.state;
  unsigned seed = 500;
  program.function("microbatch").walk([&](ParameterOp op) {
    auto shape =
        state.at({StateKind::master, op.getName().str()}).getShape().vec();
    state[{StateKind::optimizer, op.getName().str(), "first_moment"}] =
        randomTensor(shape, seed++, -0.1, 0.1);
    state[{StateKind::optimizer, op.getName().str(), "second_moment"}] =
        randomTensor(shape, seed++, 0, 0.1);
  });
  double rate = 0.01, correction1 = 1 - std::pow(0.9, 3),
         correction2 = 1 - std::pow(0.95, 3), square = 0;
  program.interpreter.inputs[StepInput::step] = 2;
  program.interpreter.inputs[StepInput::learning_rate] = rate;
  auto before = state;
  for (const auto &[key, value] : before)
    if (key.kind == StateKind::gradient)
      for (double element : value.getElements())
        square += element * element;
  ASSERT_GT(std::sqrt(square), 0.05) << "else nothing is clipped";
  program.run({}, "update");
  EXPECT_NEAR(state.at({StateKind::grad_norm, ""})[0], std::sqrt(square),
              1e-12);
  program.function("microbatch").walk([&](ParameterOp op) {
    auto name = op.getName().str();
    auto at = [&](StateKind kind, const char *slot = "") {
      return before.at({kind, name, slot});
    };
    Tensor w = at(StateKind::master),
           m = at(StateKind::optimizer, "first_moment"),
           v = at(StateKind::optimizer, "second_moment"),
           g = at(StateKind::gradient);
    bool decays = op.getShapeInFile().size() >= 2;
    for (int64_t i = 0; i < w.size(); ++i) {
      double gradient = g[i] * 0.05 / (std::sqrt(square) + 1e-6);
      m[i] = 0.9 * m[i] + 0.1 * gradient;
      v[i] = 0.95 * v[i] + 0.05 * gradient * gradient;
      w[i] -= decays ? rate * 0.1 * w[i] : 0;
      w[i] -=
          rate * (m[i] / correction1) / (std::sqrt(v[i] / correction2) + 1e-4);
    }
    EXPECT_LT(relativeError(state.at({StateKind::master, name}), w), 1e-7)
        << name;
    auto keptAs = [&](const char *slot) {
      return state.at({StateKind::optimizer, name, slot});
    };
    EXPECT_LT(relativeError(keptAs("first_moment"), m), 1e-6) << name;
    EXPECT_LT(relativeError(keptAs("second_moment"), v), 1e-6) << name;
  });
}

/// Rank r has samples [r, r + 1) * batch / numRanks of each microbatch.
void runStep(Program &program, mlir::MutableArrayRef<Interpreter> ranks) {
  int64_t local = batch / static_cast<int64_t>(ranks.size());
  setWeights(program, "microbatch");
  auto part = [&](const Tensor &whole, int64_t rank) {
    auto own =
        whole.getElements().slice(rank * local * sequence, local * sequence);
    return Tensor({local, sequence},
                  std::vector<double>(own.begin(), own.end()));
  };
  for (Interpreter &rank : ranks) {
    rank = program.interpreter;
    for (const auto &[key, value] : program.interpreter.state)
      for (const char *slot : {"first_moment", "second_moment"})
        rank.state[{StateKind::optimizer, key.name, slot}] =
            Tensor(value.getShape().vec());
    rank.inputs[StepInput::learning_rate] = 0.1;
  }
  for (unsigned i : {0, 1}) {
    std::vector<mlir::SmallVector<Tensor>> arguments;
    for (auto [r, rank] : llvm::enumerate(ranks)) {
      rank.inputs[StepInput::first_sample] =
          static_cast<double>(8 + batch * i + r * local);
      arguments.push_back({part(ids(1 + i), r), part(ids(3 + i), r)});
    }
    ASSERT_TRUE(
        succeeded(runRanks(program.function("microbatch"), ranks, arguments)))
        << program.diagnostics;
  }
  std::vector<mlir::SmallVector<Tensor>> none(ranks.size());
  ASSERT_TRUE(succeeded(runRanks(program.function("update"), ranks, none)))
      << program.diagnostics;
}

class Splits : public testing::TestWithParam<int> {};
TEST_P(Splits, EveryRankEndsWithTheWeightsOfOne) {
  std::string start =
      "transformer-decompose,cse,transformer-autodiff,transformer-build-update";
  Program one(tinyModel), many(tinyModel);
  one.transform(pipeline(start));
  std::vector<Interpreter> single(1), ranks(GetParam());
  ASSERT_NO_FATAL_FAILURE(runStep(one, single));
  many.transform(pipeline(
      start + ",sharding-annotate{axes=dp=" + std::to_string(GetParam()) +
      " rules=batch=dp},sharding-propagate,sharding-shard-states,"
      "sharding-propagate{function=update},partition-insert-reshards,"
      "partition-localize,transformer-expand-head{chunk=3},canonicalize,"
      "cse," MESHWORK_FUSION_PASSES));
  ASSERT_NO_FATAL_FAILURE(runStep(many, ranks));
  for (const Interpreter &rank : ranks)
    for (const auto &[key, value] : single[0].state)
      if (key.kind == StateKind::master || key.kind == StateKind::loss ||
          key.kind == StateKind::grad_norm)
        EXPECT_LT(relativeError(rank.state.at(key), value), 1e-6) << key.name;
}
INSTANTIATE_TEST_SUITE_P(Ranks, Splits, testing::Values(1, 2, 4));

} // namespace
