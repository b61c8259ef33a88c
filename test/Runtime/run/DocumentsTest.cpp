// Where documents begin, from the file to what a plan computes with it: the
// plan's table is looked up at these positions, so that its loss is their mean.
#include "RunCase.h"
#include "runtime/io/SafeTensors.h"
#include "runtime/io/Tokens.h"
#include "test/Runtime/io/MegatronFile.h"
#include <nlohmann/json.hpp>
#include <sstream>

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {
using plan::PlanT;

constexpr size_t length = 16;

/// The tiny plan, which reads documents, or what is made of them, in place of
/// tokens and has no other input of the batch, as a stage amid a pipeline.
PlanT documentsPlan(const TinyOptions &tiny = {},
                    plan::InputKind kind = plan::InputKind::documents) {
  PlanT plan = tinyPlan(tiny);
  uint32_t documents = addDocuments(plan);
  plan::ProgramT &p = *plan.programs[0];
  p.inputs.back()->kind = kind;
  opOf<plan::EmbeddingT>(*forwardOf(p)[0]).ids = documents;
  opOf<plan::EmbeddingGradT>(*forwardOf(p)[2]).ids = documents;
  p.inputs.erase(p.inputs.begin(), p.inputs.begin() + 2);
  return plan;
}

class Documents : public RunCase {
protected:
  /// Row i of the table is i / 256, and stays so. A mean of 128 positions below
  /// 16 is then exact in f32, in any order.
  void SetUp() override {
    RunCase::SetUp();
    std::vector<float> rows(256 * 8);
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] = static_cast<float>(i / 8) / 256;
    std::vector<TensorToWrite> tensors = {
        {"wte.weight", {256, 8}, rows.data()}};
    options.init = temporary("rows.safetensors");
    ASSERT_TRUE(writeSafeTensors(options.init, tensors).ok());
    options.learningRate.rate = 0;
  }
  std::vector<float> lossesOf(const PlanT &plan) {
    options.metrics = fresh("metrics");
    absl::Status status = runPlan(plan);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<float> losses;
    std::istringstream text(readFile(options.metrics));
    for (std::string line; std::getline(text, line);)
      losses.push_back(nlohmann::json::parse(line)["loss"].get<float>());
    return losses;
  }
  /// The same from the samples' tokens; `begins` tells whether a document
  /// begins at a token that comes after another one.
  template <typename Begins>
  std::vector<float> lossesByHand(const Begins &begins,
                                  bool ofPositions = false) const {
    auto source = TokenSource::open(
        {options.data[0], options.dataType, options.tokenizer, 256, length});
    EXPECT_TRUE(source.ok()) << source.status();
    std::vector<float> losses;
    for (uint64_t step = 0; step < options.steps; ++step) {
      double sum = 0;
      for (uint32_t sample = 0; sample < 8; ++sample) {
        std::vector<int32_t> ids(length), next(length);
        EXPECT_TRUE((*source)
                        ->sample(0, {step, sample},
                                 {absl::MakeSpan(ids), absl::MakeSpan(next)})
                        .ok());
        for (size_t i = 0, begin = 0; i < length; ++i) {
          if (i > 0 && begins(ids[i - 1], ids[i]))
            begin = i;
          sum += static_cast<double>(ofPositions ? i - begin : begin);
        }
      }
      losses.push_back(static_cast<float>(sum / (8 * length) / 256));
    }
    EXPECT_GT(losses[0], 0);
    return losses;
  }
};

TEST_F(Documents, reachThePlanOnEveryRank) {
  options.documentEnd = 'c';
  std::vector<float> ends =
      lossesByHand([](int32_t before, int32_t) { return before == 'c'; });
  for (uint32_t ranks : {1u, 2u, 4u})
    EXPECT_EQ(
        lossesOf(documentsPlan({.ranks = ranks, .microbatches = 4 / ranks})),
        ends);
  options.documentEnd.reset();
  options.documentBegin = 'c';
  std::vector<float> begins =
      lossesByHand([](int32_t, int32_t token) { return token == 'c'; });
  EXPECT_EQ(lossesOf(documentsPlan({.microbatches = 4})), begins);
  EXPECT_NE(begins, ends);
}

TEST_F(Documents, positionsBeginAnewWithThem) {
  options.documentBegin = 'c';
  std::vector<float> positions =
      lossesByHand([](int32_t, int32_t token) { return token == 'c'; },
                   /*ofPositions=*/true);
  for (uint32_t ranks : {1u, 2u})
    EXPECT_EQ(
        lossesOf(documentsPlan({.ranks = ranks, .microbatches = 4 / ranks},
                               plan::InputKind::document_positions)),
        positions);
}

TEST_F(Documents, comeFromAnIndexWithoutOptions) {
  MegatronIndex index;
  std::vector<uint8_t> ids(256);
  std::iota(ids.begin(), ids.end(), uint8_t{0});
  writeFile(temporary("pair.bin"), ids.data(), ids.size());
  index.type = 1; // u8
  index.lengths.assign(64, 4);
  index.offsets.clear();
  for (int64_t i = 0; i < 64; ++i)
    index.offsets.push_back(4 * i);
  index.sequences = 64;
  index.starts = {0};
  for (int64_t i = 1; i <= 32; ++i) // of two sequences, eight tokens
    index.starts.push_back(2 * i);
  index.documents = index.starts.size();
  options.data = {temporary("pair.idx")};
  options.tokenizer.clear();
  writeFile(options.data[0], index.bytes().data(), index.bytes().size());
  EXPECT_EQ(
      lossesOf(documentsPlan({.microbatches = 4})),
      lossesByHand([](int32_t, int32_t token) { return token % 8 == 0; }));
}

TEST_F(Documents, mustBeToldApart) {
  expectExit(documentsPlan(), 64,
             "text\": does not tell where its documents begin, which the plan "
             "needs (batch.documents, batch.positions or "
             "batch.document_end_loss of its spec say so); give "
             "--document-begin ID");
  options.documentEnd = 10;
  expectExit(documentsPlan(), 65, "token 10 does not occur in \"");
  options.documentEnd = 256;
  expectExit(documentsPlan(), 64, "--document-end 256, expected 0 to 255");
  options.documentBegin = 10;
  expectExit(documentsPlan(), 64,
             "--document-begin and --document-end exclude each other");
  options.documentBegin.reset();
  options.documentEnd.reset();
  options.steps = 0; // no file is read
  EXPECT_TRUE(runPlan(documentsPlan()).ok());
}

TEST_F(Documents, areNotToldToAPlanThatDoesNotAsk) {
  options.documentEnd = 'c';
  expectExit(tinyPlan(), 64,
             "--document-end is given, but the plan does not tell documents "
             "apart: compile it with --set 'batch.documents=\"separate\"', "
             "'batch.positions=\"document\"' or batch.document_end_loss=false, "
             "or leave the option out");
  options.validateOnly = true;
  expectExit(tinyPlan(), 64, "--document-end is given");
  EXPECT_TRUE(runPlan(documentsPlan()).ok());
  options.documentEnd.reset();
  options.documentBegin = 'c';
  expectExit(tinyPlan(), 64, "--document-begin is given");
}

} // namespace
} // namespace meshwork::runtime::test
