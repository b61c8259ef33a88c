#include "test/Spec/SpecErrors.h"

namespace meshwork::spec {
namespace {

TEST(SpecErrors, Zero) {
  expectSetError("zero.axes=[\"dp\"]", "zero.axes: has no meaning in stage 0");
  EXPECT_THAT(errorsOf(good + "[zero]\nstage = 1\naxes = []\n"),
              HasSubstr("zero.axes: splits state over no axis"));
  EXPECT_THAT(errorsOf(good + "[zero]\nstage = 1\naxes = [\"dq\"]\n"),
              HasSubstr("zero.axes: found axis \"dq\""));
  EXPECT_THAT(
      errorsOf(good + "[zero]\nstage = 1\naxes = [\"tp\"]\n",
               {"mesh.axes=[\"dp=2\", \"tp=2\"]"}),
      HasSubstr("zero.axes: found axis \"tp\", expected axes that split the "
                "batch"));
}

// Ranks that have parts of a sequence have other tokens, too.
TEST(SpecErrors, ZeroOverAxesOfTheSequence) {
  const char *mesh = "mesh.axes=[\"dp=2\", \"cp=2\", \"tp=2\"]";
  for (const char *axes : {"[\"dp\", \"cp\"]", "[\"cp\", \"dp\"]", "[\"cp\"]"})
    EXPECT_TRUE(parse(good, "s.toml",
                      {mesh, "zero.stage=3", std::string("zero.axes=") + axes})
                    .spec)
        << axes;
  EXPECT_THAT(errorsOf(good, {mesh, "zero.stage=3", "zero.axes=[\"tp\"]"}),
              HasSubstr("found axis \"tp\", expected axes that split the batch "
                        "or the sequence (shard.batch, shard.sequence); write "
                        "zero.axes = [\"dp\", \"cp\"]"));
  EXPECT_THAT(errorsOf(good, {"mesh.axes=[\"cp=2\"]", "zero.stage=3"}),
              HasSubstr("write zero.axes = [\"cp\"]"));
}

// Advice names axes that the mesh has, or says how it gets one.
TEST(SpecErrors, ZeroWithoutAnAxisOfTheBatch) {
  EXPECT_EQ(errorsOf(good, {"mesh.axes=[\"tp=2\"]", "zero.stage=3"}),
            "--set zero.stage=3: error: zero.stage: splits state over no "
            "axis, expected axes that split the batch or the sequence; no "
            "axis of the mesh does; add one to "
            "mesh.axes, like \"dp=2\", or leave [zero] out\n");
  EXPECT_THAT(errorsOf(good, {"mesh.axes=[\"tp=2\"]", "zero.stage=3",
                              "zero.axes=[\"dp\"]"}),
              testing::AllOf(HasSubstr("zero.axes: found axis \"dp\", expected "
                                       "axes that split the batch"),
                             Not(HasSubstr("did you mean"))));
  EXPECT_THAT(errorsOf(good, {"mesh.axes=[\"a=2\"]", "shard.batch=[\"a\"]",
                              "zero.stage=1"}),
              HasSubstr("or the sequence; write zero.axes = [\"a\"]"));
}

TEST(SpecErrors, AxesThatWeightsStaySplitOver) {
  auto errorsWith = [](const char *gathered, const char *stage = "3") {
    return errorsOf(good, {"mesh.axes=[\"dp=2\", \"fsdp=2\", \"cp=2\"]",
                           "batch.global=16", "zero.axes=[\"dp\", \"fsdp\"]",
                           std::string("zero.stage=") + stage,
                           std::string("zero.gathered=") + gathered});
  };
  EXPECT_THAT(errorsWith("[\"cp\"]"),
              HasSubstr("zero.gathered: found axis \"cp\", expected axes of "
                        "zero.axes ([\"dp\", \"fsdp\"]); add it there, or "
                        "leave it out"));
  EXPECT_THAT(errorsWith("[\"dp\", \"dp\"]"),
              HasSubstr("zero.gathered: found axis \"dp\" again"));
  EXPECT_THAT(errorsWith("[]"),
              HasSubstr("zero.gathered: names no axis, expected some of "
                        "zero.axes; for weights that stay whole until the "
                        "backward pass write \"keep\""));
  EXPECT_THAT(
      errorsWith("[\"fsdp\", \"dp\"]"),
      HasSubstr("zero.gathered: names all of zero.axes, so that nothing "
                "is left to gather once a step: that is \"free\""));
  EXPECT_THAT(errorsWith("[3]"), HasSubstr("zero.gathered: found"));
  EXPECT_THAT(errorsWith("fre"),
              HasSubstr("expected \"free\", \"keep\" or \"auto\", or an array "
                        "of axes of zero.axes"));
  EXPECT_THAT(errorsWith("auto"),
              HasSubstr("zero.gathered: \"auto\" takes what fits "
                        "expect.memory_per_rank, or the memory.capacity of "
                        "target.machine, which are missing"));
  EXPECT_THAT(errorsWith("[\"fsdp\"]", "2"),
              HasSubstr("zero.gathered: has no meaning in stage 2"));
}

TEST(SpecErrors, TypesThatWeightsTravelIn) {
  auto errorsWith = [](std::vector<std::string> settings) {
    settings.emplace_back("zero.stage=3");
    return errorsOf(good, settings);
  };
  EXPECT_THAT(errorsWith({"zero.weights=int4"}),
              HasSubstr("zero.weights: found \"int4\", expected \"compute\", "
                        "\"fp8\" or \"int8\""));
  EXPECT_THAT(errorsWith({"zero.weights=int8", "precision.matmul=fp8"}),
              HasSubstr("zero.weights: found \"int8\" with precision.matmul "
                        "\"fp8\", whose products read weights in FP8; write "
                        "\"fp8\""));
  EXPECT_THAT(errorsWith({"zero.weights=fp8", "precision.matmul=fp8",
                          "precision.weight_casts=microbatch"}),
              HasSubstr("zero.weights: found \"fp8\" with "
                        "precision.weight_casts \"microbatch\", which rounds "
                        "weights after they have travelled"));
}

TEST(SpecErrors, TypesThatGradientsTravelIn) {
  auto errorsWith = [](std::vector<std::string> settings) {
    settings.emplace_back("zero.stage=2");
    return errorsOf(good, settings);
  };
  EXPECT_THAT(errorsWith({"zero.gradients=fp8"}),
              HasSubstr("zero.gradients: found \"fp8\", expected "
                        "\"precision\", \"int8\" or \"int4\""));
  EXPECT_THAT(errorsWith({"zero.gradients=int8", "zero.gradient_block=15"}),
              HasSubstr("zero.gradient_block: found 15, expected a whole "
                        "number from 16 to 65536"));
  for (const char *given :
       {"zero.gradient_block=64", "zero.gradient_error=true",
        "zero.gradient_error=false"}) {
    std::string setting = given, key = setting.substr(0, setting.find('='));
    EXPECT_THAT(errorsWith({setting}),
                HasSubstr(key + ": has no meaning with zero.gradients "
                                "\"precision\""));
  }
}

} // namespace
} // namespace meshwork::spec
