// What has no kernel is an error that says so.
#include "test/Codegen/Kernel.h"

using namespace meshwork::codegen::test;
namespace {

constexpr const char *cluster = R"(
#d = #transformer.dims<rows, heads, cols>
!x = tensor<$R, #d>
!r = $S
func.func @f(%x: !x) -> !r {
  %r = transformer.fused rows <rows> cols <$C> ins(%x : !x) -> !r {
  ^bb0(%a: !x):
    %y = $O
    transformer.yield %y : $Y
  }
  return %r : !r
}
)";

struct Bad {
  const char *name, *shape, *result, *cols, *op, *yielded, *message;
};

class ErrorTest : public testing::TestWithParam<Bad> {};

TEST_P(ErrorTest, IsReported) {
  const Bad &bad = GetParam();
  Kernel kernel(fill(cluster, {{"R", bad.shape},
                               {"S", bad.result},
                               {"C", bad.cols},
                               {"O", bad.op},
                               {"Y", bad.yielded}}),
                "native");
  EXPECT_FALSE(kernel.isCompiled());
  EXPECT_NE(kernel.errors().find(bad.message), std::string::npos)
      << kernel.errors();
}

#define ROWS "tensor<4xf32, #transformer.dims<rows>>"
#define MAP(type, body)                                                        \
  "transformer.map ins(%a : !x) -> " type " {\n^bb0(%p: f32):\n" body "}"
INSTANTIATE_TEST_SUITE_P(
    Clusters, ErrorTest,
    testing::Values(
        Bad{"PartOfCols", "4x3x8xf32",
            "tensor<4x3xf32, #transformer.dims<rows, heads>>", "heads, cols",
            "transformer.reduce add %a over <cols> : !x -> tensor<4x3xf32, "
            "#transformer.dims<rows, heads>>",
            "tensor<4x3xf32, #transformer.dims<rows, heads>>",
            "reduces 1 of 2 cols of its cluster, expected all or none"},
        Bad{"Dynamic", "4x?x8xf32", ROWS, "heads, cols",
            "transformer.reduce add %a over <heads, cols> : !x -> " ROWS, ROWS,
            "expected a static shape"},
        Bad{"NoChunks", "4x3x8xf32",
            "tensor<3x8xf32, #transformer.dims<heads, cols>>", "heads, cols",
            "transformer.reduce add %a over <rows> : !x -> tensor<3x8xf32, "
            "#transformer.dims<heads, cols>>",
            "tensor<3x8xf32, #transformer.dims<heads, cols>>",
            "expected a leading dim `chunk` as it is reduced over rows"},
        Bad{"RollElsewhere", "4x3x8xf32", "!x", "cols, heads",
            "transformer.roll %a by 1 : !x", "!x",
            "rolls 'cols', expected the last of the cluster's cols"},
        Bad{"UnknownCol", "4x3x8xf32", "!x", "heads, cols, vocab",
            "transformer.roll %a by 1 : !x", "!x",
            "walks dim 'vocab' that none of its tensors has"},
        Bad{"Math", "4x3x8xf32", "!x", "heads, cols",
            MAP("!x", "%f = math.acosh %p : f32\ntransformer.yield %f : f32\n"),
            "!x", "'math.acosh' has no CPU code"}),
    [](const auto &info) { return info.param.name; });

TEST(ArchTest, UnknownOneIsNamed) {
  Kernel kernel("", "x86-64-v5");
  EXPECT_NE(kernel.errors().find("target arch is 'x86-64-v5', expected native, "
                                 "x86-64-v3 or x86-64-v4"),
            std::string::npos)
      << kernel.errors();
}

} // namespace
