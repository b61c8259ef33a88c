// What cannot be read, and launches that do not fit.
#include "test/Emulator/Snippet.h"

namespace meshwork::ptx {
namespace {

absl::Status parsed(const std::string &body) {
  return Kernels::fromText(kernelText<uint32_t>(body)).status();
}

TEST(Parse, WhatIsUnknownIsNamedWithItsLine) {
  EXPECT_TRUE(failsWith(parsed("\ntcgen05.fence::before_thread_sync;"),
                        "line 14: this instruction is not modelled: "
                        "tcgen05.fence::before_thread_sync"));
  EXPECT_TRUE(failsWith(parsed("add.rz.f32 %d, %d, %d;"),
                        "modifier .rz is not modelled"));
  EXPECT_TRUE(failsWith(parsed("add.e4m3 %d, %d, %d;"), "a type"));
  EXPECT_TRUE(failsWith(parsed("mov.b32 %d, %unknown;"),
                        "'%unknown' is no register, variable or number"));
  EXPECT_TRUE(
      failsWith(parsed("mov.b64 %d, %rd1;"), "has 32 bits, expected 64"));
  EXPECT_TRUE(failsWith(parsed("bra NOWHERE;"), "branches to a label"));
  EXPECT_TRUE(failsWith(parsed("L: L: mov.b32 %d, 0;"), "is there twice"));
  EXPECT_TRUE(failsWith(parsed("mov.b32 %d, 1"), "expected ',' or ';'"));
  EXPECT_TRUE(failsWith(parsed("call f;"), "has no body in this module"));
  EXPECT_TRUE(
      failsWith(parsed("ld.shared.b32 %d, [pd];"), "in another state space"));
  EXPECT_TRUE(failsWith(parsed("ld.param.b64 %rd1, [pd+4];"),
                        "reads beyond the parameters"));
}
TEST(Parse, FunctionsThatNobodyCallsAreReadToo) {
  EXPECT_TRUE(
      failsWith(Kernels::fromText(".version 8.0\n.target sm_80\n"
                                  ".func (.param .b32 r) f(.param .b32 a)\n{\n"
                                  ".reg .b32 %r<2>; ld.param.b32 %r1, [a];\n"
                                  "st.param.b32 [r], %r1; ret; dp9a.u32 %r1; }")
                    .status(),
                "line 6: this instruction is not modelled: dp9a.u32 %r1"));
}
TEST(Parse, Headers) {
  EXPECT_TRUE(failsWith(Kernels::fromText(".version 8.0").status(), ".target"));
  EXPECT_TRUE(failsWith(Kernels::fromText(".target x86").status(), "sm_80"));
  Kernels kernels = Kernels::fromText(".version 8.4\n.target sm_90a\n");
  ASSERT_TRUE(kernels.status().ok());
  EXPECT_EQ(kernels.module->architecture(), 90);
  EXPECT_TRUE(kernels.module->onlyThisDevice());
  EXPECT_EQ(kernels.module->version(), 84);
}

TEST(Launch, ShapesAreChecked) {
  Kernels kernels = Kernels::fromText(
      ".version 8.0 .target sm_80 .address_size 64\n"
      ".visible .entry k(.param .u32 n) .maxntid 64, 1, 1 { ret; }\n"
      ".visible .entry exact() .reqntid 32, 2, 1 { ret; }\n");
  ASSERT_TRUE(kernels.status().ok()) << kernels.status();
  EXPECT_TRUE(kernels.launch("k", {.grid = {}, .block = {64}}, 1u).ok());
  EXPECT_TRUE(failsWith(kernels.launch("k", {.grid = {}, .block = {65}}, 1u),
                        ".maxntid says 64"));
  EXPECT_TRUE(failsWith(kernels.launch("exact", {.grid = {}, .block = {64}}),
                        ".reqntid says 32x2x1"));
  EXPECT_TRUE(failsWith(kernels.launch("k", {.grid = {0}}, 1u), "is 0"));
  EXPECT_TRUE(failsWith(kernels.launch("exact", {.grid = {}, .block = {1025}}),
                        "at most 1024"));
  EXPECT_TRUE(failsWith(kernels.launch("k", {}, uint64_t(1)),
                        "has 4 bytes, found an argument of 8"));
  EXPECT_TRUE(failsWith(kernels.launch("k", {}), "1 parameters, found 0"));
  EXPECT_TRUE(failsWith(kernels.launch("other", {}), "no kernel 'other'"));
}

} // namespace
} // namespace meshwork::ptx
