// Passes against what they started from: one whole model, by meaning.
#include "Harness.h"
#include "TinyModel.h"

using namespace meshwork::interpreter;

namespace {

void expectSameState(const Interpreter &actual, const Interpreter &expected,
                     double tolerance) {
  EXPECT_EQ(actual.state.size(), expected.state.size());
  for (const auto &[key, value] : expected.state) {
    ASSERT_TRUE(actual.state.count(key)) << key.name;
    EXPECT_LT(relativeError(actual.state.at(key), value), tolerance)
        << key.name << " kind " << static_cast<int>(key.kind);
  }
}

TEST(Passes, AutodiffIsTheDerivative) {
  EXPECT_EQ(checkDerivative(tinyModel), 19u) << "all parameters";
}

TEST(Passes, AutodiffOfAnyLossIsTheDerivative) {
  for (auto [name, loss] : losses()) {
    SCOPED_TRACE(name);
    EXPECT_EQ(checkDerivative(withLoss(tinyModel, "ln2", loss),
                              {"wte", "ln2", "wd", "wq"}),
              4u);
  }
}

std::string textOf(Program &program) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  program.module()->print(stream);
  return text;
}

/// One pipeline after autodiff against none.
class Rewrites : public testing::TestWithParam<const char *> {};
TEST_P(Rewrites, KeepEveryGradient) {
  std::string start = "transformer-decompose,cse,transformer-autodiff";
  Program before(tinyModel), after(tinyModel);
  before.transform(pipeline(start));
  after.transform(pipeline(start + "," + GetParam()));
  EXPECT_NE(textOf(after), textOf(before)) << "nothing is tested";
  if (std::string(GetParam()).find("fold-bias") != std::string::npos) {
    EXPECT_NE(textOf(after).find(" bias %"), std::string::npos);
  }
  runMicrobatches(before);
  runMicrobatches(after);
  expectSameState(after.interpreter, before.interpreter, 3e-7);
}
INSTANTIATE_TEST_SUITE_P(
    Pipelines, Rewrites,
    testing::Values("canonicalize,cse",
                    "transformer-precision{compute=bf16 gradients=bf16}",
                    "transformer-expand-head{chunk=16}",
                    "transformer-expand-head{chunk=5}",
                    "transformer-expand-head{chunk=1}",
                    "canonicalize,fusion-fold-bias", "fusion-accumulations",
                    "fusion-fuse", MESHWORK_FUSION_PASSES,
                    "transformer-expand-head{chunk=6},canonicalize,"
                    "cse," MESHWORK_FUSION_PASSES));

/// The tiny model with one activation, in rows of 8, which epilogues need.
std::string withPlainGelu() {
  std::string text = tinyModel;
  for (auto [from, to] : {std::pair("x6xf32, #transformer.dims<embed, ffn>",
                                    "x8xf32, #transformer.dims<embed, ffn>"),
                          std::pair("6x4xf32, #transformer.dims<ffn, embed>",
                                    "8x4xf32, #transformer.dims<ffn, embed>"),
                          std::pair("tensor<6xf32, #ff>", "tensor<8xf32, #ff>"),
                          std::pair("!f = tensor<?x?x6x", "!f = tensor<?x?x8x"),
                          std::pair("%f5, %wp", "%f2, %wp")})
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, std::string(from).size(), to);
  return text;
}

TEST(Passes, EpiloguesKeepEveryGradient) {
  std::string start = "transformer-decompose,cse,transformer-autodiff,";
  Program before(withPlainGelu()), after(withPlainGelu());
  before.transform(pipeline(start + MESHWORK_FUSION_PASSES));
  after.transform(
      pipeline(start + MESHWORK_FUSION_PASSES + ",fusion-fold-epilogues"));
  for (const char *epilogue : {" gelu", " gelu_grad", " sum_rhs"})
    EXPECT_NE(textOf(after).find(epilogue), std::string::npos) << epilogue;
  runMicrobatches(before);
  runMicrobatches(after);
  expectSameState(after.interpreter, before.interpreter, 3e-7);
}

} // namespace
