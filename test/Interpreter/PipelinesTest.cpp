// Each pipeline that test/Equivalence/test_pipelines.py runs, on tiny models in
// the reference interpreter: loss, gradients and updated states are those of
// one rank. The list of cases is that test's. The interpreter runs each rank's
// part of a microbatch, one microbatch after the other. That test covers the
// order of a schedule's table.
#include "TinyConfigs.h"

#include <fstream>
#include <sstream>

using namespace meshwork::interpreter;

namespace {

constexpr int64_t vocabulary = 12;

/// A line of the list, by the names in its first line.
using Case = std::map<std::string, std::string>;

std::vector<std::string> cells(const std::string &line) {
  std::vector<std::string> list;
  std::stringstream rest(line);
  for (std::string cell; std::getline(rest, cell, ',');)
    list.push_back(cell);
  return list;
}

std::vector<Case> listedCases() {
  std::ifstream file(MESHWORK_PIPELINES);
  std::string line;
  std::getline(file, line);
  std::vector<std::string> names = cells(line);
  std::vector<Case> cases;
  while (std::getline(file, line)) {
    Case &one = cases.emplace_back();
    for (auto [name, cell] : llvm::zip_equal(names, cells(line)))
      one[name] = cell;
  }
  return cases;
}

std::string modelOf(llvm::StringRef name) {
  int64_t layers = name.consume_back("-deep") ? 8 : 4;
  if (name == "llama")
    return tinyLlama({.keyHeads = 2, .layers = layers});
  return tinyGpt2({.layers = layers, .drops = name == "gpt2-dropout"});
}

/// What the list calls a layout beside the pipeline.
struct Beside {
  std::string axes; // of [mesh]
  int64_t data = 1; // ranks that split the batch
  std::string sections = "";
};

Beside besideOf(const std::string &name) {
  const std::string split = "[shard]\nresidual_sequence = [\"tp\"]\n";
  const std::map<std::string, Beside> known = {
      {"one", {"\"dp=1\""}},
      {"dp2", {"\"dp=2\"", 2}},
      {"zero1", {"\"dp=2\"", 2, "[zero]\nstage = 1\n"}},
      {"zero2", {"\"dp=2\"", 2, "[zero]\nstage = 2\n"}},
      {"zero3", {"\"dp=3\"", 3, "[zero]\nstage = 3\n"}},
      {"tp2", {"\"tp=2\""}},
      {"tp2-sp", {"\"tp=2\"", 1, split}},
      {"zero1-tp2", {"\"dp=2\", \"tp=2\"", 2, split + "[zero]\nstage = 1\n"}},
      {"zero3-tp2", {"\"dp=2\", \"tp=2\"", 2, split + "[zero]\nstage = 3\n"}},
      {"cp2",
       {"\"cp=2\"", 1,
        "[shard]\nsequence = [\"cp\"]\n[context]\nmethod = \"gathered\"\n"}}};
  auto found = known.find(name);
  EXPECT_NE(found, known.end()) << "no layout is called '" << name << "'";
  return found == known.end() ? Beside{} : found->second;
}

std::string documentsOf(const std::string &name) {
  if (name == "joined")
    return "";
  return name == "apart" ? allOfDocuments : "documents = \"separate\"";
}

/// [mesh] to [optimizer]; `micro` samples of each of `data` ranks.
std::string specOf(const Case &one, const std::string &axes, int64_t micro,
                   int64_t data) {
  int64_t step = micro * data * std::stoi(one.at("microbatches"));
  return "[mesh]\naxes = [" + axes +
         "]\n[batch]\nglobal = " + std::to_string(step) +
         "\nmicro = " + std::to_string(micro) + "\nsequence = 7\n" +
         documentsOf(one.at("documents")) +
         "\n[precision]\ncompute = \"f32\"\n[optimizer]\n"
         "clip_grad_norm = 0.5\n";
}

std::string pipelineOf(const Case &one) {
  std::string text = "[recompute]\npolicy = \"" + one.at("recompute") +
                     "\"\n[pipeline]\nschedule = \"" + one.at("schedule") +
                     "\"\n";
  if (!one.at("virtual_stages").empty())
    text += "virtual_stages = " + one.at("virtual_stages") + "\n";
  if (one.at("target") == "gpu")
    text += "[target]\ndevice = \"cuda\"\narch = \"sm_80\"\n";
  return text;
}

StepResult stepOf(const Case &one, const std::string &spec) {
  Compiled compiled(modelOf(one.at("model")), spec);
  EXPECT_TRUE(compiled.program) << spec << compiled.diagnostics;
  if (!compiled.program)
    return {};
  StepResult result =
      runStep(compiled, randomStep(compiled, vocabulary, 1,
                                   std::stoi(one.at("microbatches"))));
  EXPECT_EQ(compiled.runAsPlan(vocabulary), "");
  return result;
}

/// What one rank computes with the samples of all; kept, since many ask.
const StepResult &oneRank(const Case &one, int64_t samples) {
  static std::map<std::string, StepResult> known;
  std::string spec = specOf(one, "\"dp=1\"", samples, 1);
  auto [entry, isNew] = known.try_emplace(one.at("model") + spec);
  if (isNew)
    entry->second = stepOf(one, spec);
  return entry->second;
}

/// A quarter of the cases a test, so that ctest can share them out.
class ListedPipelines : public testing::TestWithParam<int> {};
TEST_P(ListedPipelines, MeanWhatOneRankMeans) {
  std::vector<Case> cases = listedCases();
  ASSERT_GE(cases.size(), 60u) << MESHWORK_PIPELINES;
  for (size_t i = GetParam(); i < cases.size(); i += 4) {
    const Case &one = cases[i];
    Beside beside = besideOf(one.at("layout"));
    int64_t micro = beside.data == 3 ? 1 : 2;
    std::string spec =
        specOf(one, "\"pp=" + one.at("stages") + "\", " + beside.axes, micro,
               beside.data) +
        beside.sections + pipelineOf(one);
    SCOPED_TRACE(one.at("model") + "\n" + spec);
    EXPECT_EQ(
        compareSteps(stepOf(one, spec), oneRank(one, micro * beside.data)), "");
  }
}
INSTANTIATE_TEST_SUITE_P(Quarters, ListedPipelines, testing::Range(0, 4));

} // namespace
