// Sequences that ranks share, in blocks and in zigzag, through all of a model
// but attention: what counts positions takes them from the part's ranges.
#include "Partitioned.h"

#include "dialects/mesh/Mesh.h"

#include <fstream>
#include <sstream>

using namespace meshwork::interpreter;

namespace {

constexpr int64_t vocabulary = 13;

void replaceAll(std::string &text, const std::string &name, int64_t number) {
  for (size_t at; (at = text.find(name)) != std::string::npos;)
    text.replace(at, name.size(), std::to_string(number));
}

std::string modelOf(int64_t sequence) {
  std::ifstream file(MESHWORK_SPLIT_SEQUENCE);
  std::stringstream text;
  EXPECT_TRUE(text << file.rdbuf()) << MESHWORK_SPLIT_SEQUENCE;
  std::string model = text.str();
  replaceAll(model, "SEQUENCE", sequence);
  replaceAll(model, "VOCABULARY", vocabulary);
  return model;
}

std::string specOf(int64_t sequence, const std::string &axes,
                   const std::string &rest) {
  return "[mesh]\naxes = [" + axes + "]\n[batch]\nglobal = 16\nmicro = " +
         (axes.find("dp=2") == std::string::npos ? "8" : "4") +
         "\nsequence = " + std::to_string(sequence) +
         "\n[precision]\ncompute = \"f32\"\n[optimizer]\n"
         "clip_grad_norm = 0.5\n" +
         rest;
}

const StepResult &oneRank(int64_t sequence) {
  static std::map<int64_t, StepResult> known;
  auto [entry, isNew] = known.try_emplace(sequence);
  if (isNew) {
    Compiled one(modelOf(sequence), specOf(sequence, "\"dp=1\"", ""));
    EXPECT_TRUE(one.program) << one.diagnostics;
    if (one.program)
      entry->second = runStep(one, randomStep(one, vocabulary));
  }
  return entry->second;
}

void check(int64_t sequence, const std::string &axes, const std::string &rest) {
  std::string spec = specOf(sequence, axes, rest);
  Compiled many(modelOf(sequence), spec, /*headChunk=*/3);
  ASSERT_TRUE(many.program) << spec << many.diagnostics;
  EXPECT_EQ(compareSteps(runStep(many, randomStep(many, vocabulary)),
                         oneRank(sequence)),
            "")
      << spec;
  EXPECT_EQ(many.runAsPlan(vocabulary), "") << spec;
}

std::string split(const std::string &layout, const std::string &rules = "") {
  return "[shard]\nsequence = [\"cp\"]\n" + rules + "[context]\nlayout = \"" +
         layout + "\"\n";
}

class SplitSequence : public testing::TestWithParam<const char *> {};

/// 16 is even over 2 x 4 chunks, 7 leaves chunks short or empty, 1 leaves ranks
/// with nothing.
TEST_P(SplitSequence, OverOneAxis) {
  for (int64_t sequence : {16, 7, 1})
    for (const char *axes : {"\"cp=2\"", "\"cp=3\"", "\"cp=4\""})
      check(sequence, axes, split(GetParam()));
}

TEST_P(SplitSequence, BesideOthers) {
  for (int64_t sequence : {16, 7}) {
    check(sequence, "\"dp=2\", \"cp=2\"",
          split(GetParam(), "batch = [\"dp\"]\n"));
    check(sequence, "\"dp=2\", \"cp=3\"",
          split(GetParam(), "batch = [\"dp\"]\n") + "[zero]\nstage = 3\n");
    check(sequence, "\"cp=2\", \"tp=2\"",
          split(GetParam(), "vocab = [\"tp\"]\nffn = [\"tp\"]\n"
                            "residual_sequence = [\"tp\"]\n"));
  }
}

TEST_P(SplitSequence, OverTwoAxes) {
  for (int64_t sequence : {16, 7})
    check(sequence, "\"a=2\", \"b=2\"",
          "[shard]\nsequence = [\"a\", \"b\"]\n[context]\nlayout = \"" +
              std::string(GetParam()) + "\"\n");
}
INSTANTIATE_TEST_SUITE_P(Layouts, SplitSequence,
                         testing::Values("block", "zigzag"));

/// Makes each table of positions that of blocks: what the code for one interval
/// would take.
TEST(SplitSequenceMutants, OneIntervalIsNotEnough) {
  Compiled many(modelOf(16), specOf(16, "\"cp=2\"", split("zigzag")));
  ASSERT_TRUE(many.program) << many.diagnostics;
  int tables = 0;
  many.program->module().walk([&](meshwork::mesh::PositionsOp op) {
    meshwork::mesh::DimShardingAttr split = op.getSplit();
    ASSERT_FALSE(split.getZigzag().empty());
    op.setSplitAttr(meshwork::mesh::DimShardingAttr::get(
        split.getContext(), split.getAxes(), {}, false, 0));
    ++tables;
  });
  EXPECT_GT(tables, 0);
  EXPECT_NE(
      compareSteps(runStep(many, randomStep(many, vocabulary)), oneRank(16)),
      "");
}

TEST(SplitSequenceErrors, OnlyAnAxisOfTheDimIsInZigzag) {
  mlir::MLIRContext context;
  context.loadDialect<meshwork::mesh::MeshDialect>();
  std::string error;
  mlir::ScopedDiagnosticHandler handler(
      &context,
      [&](mlir::Diagnostic &diagnostic) { error = diagnostic.str(); });
  auto axis = [&](const char *name) {
    return mlir::StringAttr::get(&context, name);
  };
  mlir::SmallVector<mlir::StringAttr> axes = {axis("dp")},
                                      zigzag = {axis("cp")};
  auto onError = [&] {
    return mlir::emitError(mlir::UnknownLoc::get(&context));
  };
  EXPECT_FALSE(meshwork::mesh::DimShardingAttr::getChecked(
      onError, &context, mlir::ArrayRef<mlir::StringAttr>(axes),
      mlir::ArrayRef<mlir::StringAttr>(zigzag), false, int64_t{0}));
  EXPECT_EQ(error, "(C1) axis \"cp\" is in zigzag, but does not split the dim");
}

} // namespace
