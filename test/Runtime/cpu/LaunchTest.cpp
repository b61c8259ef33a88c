// Kernel libraries and Launch. TEST_KERNELS is the path of TestKernels.c's
// shared object.
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "test/Runtime/cpu/TestProgram.h"

namespace meshwork::runtime::test {
namespace {

std::vector<uint8_t> readCode() {
  std::ifstream file(TEST_KERNELS, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Problem {
  TestProgram program;
  plan::LaunchT op;
  Values a = randomValues(1001, DType::f32, 1);
  Values b = randomValues(1001, DType::f32, 2);

  Problem() {
    program.code = readCode();
    program.kernels.emplace_back();
    program.kernels[0].symbol = "test_add";
    program.kernels[0].num_args = 3;
    op.args = {program.add(DType::f32, {1001}, a),
               program.add(DType::f32, {1001}, b),
               program.add(DType::f32, {1001})};
    op.num_outputs = 1;
    op.items = 1001;
  }
  std::string message() { return std::string(program.run(op).message()); }
};

TEST(Launch, RunsEveryItem) {
  for (int threads : {1, 2, 3}) {
    Problem problem;
    absl::Status status = problem.program.run(problem.op, {.threads = threads});
    ASSERT_TRUE(status.ok()) << status;
    Values expected(1001);
    for (int i = 0; i < 1001; ++i)
      expected[i] = static_cast<float>(problem.a[i] + 2 * problem.b[i]);
    EXPECT_LE(maxDifference(problem.program.read(problem.op.args[2]), expected),
              0x1p-22);
  }
}

TEST(Launch, StartsAtTheView) {
  Problem problem;
  uint32_t buffer = problem.program.addBuffer(DType::f32, 100);
  uint32_t view =
      problem.program.addView(buffer, DType::f32, {10}, {1}, /*first=*/40);
  problem.op.args[2] = view;
  problem.op.items = 10;
  ASSERT_TRUE(problem.program.run(problem.op).ok());
  EXPECT_FALSE(std::isnan(problem.program.read(view)[9]));
}

TEST(KernelLibrary, NamesAMissingSymbol) {
  Problem problem;
  problem.program.kernels[0].symbol = "test_subtract";
  EXPECT_EQ(problem.message(), "the plan's code has no symbol "
                               "\"test_subtract\" for kernel #0");
}

TEST(KernelLibrary, RefusesWhatIsNoSharedObject) {
  Problem problem;
  problem.program.code.assign(100, 7);
  EXPECT_EQ(problem.message(),
            "the plan's code is not a 64-bit x86 ELF shared object");
  problem.program.code.resize(3);
  EXPECT_EQ(problem.message(),
            "the plan's code has 3 bytes, too few for a shared object");
  problem.program.code.clear();
  EXPECT_EQ(problem.message(), "the plan names 1 kernels but holds no code");
  problem.program.code = readCode();
  problem.program.code.resize(200); // Only the header is left.
  EXPECT_EQ(problem.message().rfind("the loader refused the plan's code: ", 0),
            0u)
      << problem.message();
}

TEST(KernelLibrary, NeedsNoCodeWithoutKernels) {
  Problem problem;
  problem.program.kernels.clear();
  problem.program.code.clear();
  EXPECT_EQ(problem.message(),
            "instruction \"under.test\" (Launch): kernel 0 does not exist");
  plan::FillT fill;
  fill.dst = problem.op.args[2];
  EXPECT_TRUE(problem.program.run(fill).ok());
}

} // namespace
} // namespace meshwork::runtime::test
