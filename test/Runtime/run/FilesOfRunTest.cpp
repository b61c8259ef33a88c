// Files of a run: none is lost because it was named twice, and weights are
// found under the names that repositories give them.
#include "RunCase.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/io/SafeTensors.h"
#include "runtime/save/Weights.h"
#include <filesystem>
#include <sys/stat.h>

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {
namespace fs = std::filesystem;

class FilesOfRun : public RunCase {
protected:
  void SetUp() override {
    RunCase::SetUp();
    options.steps = 1;
  }
};

TEST_F(FilesOfRun, outputsMayNotBeInputs) {
  ASSERT_TRUE(runPlan(tinyPlan()).ok());
  options.init = temporary("start");
  fs::rename(options.save, options.init);
  std::string linked = fresh("linked");
  for (const std::string &input :
       {options.plan, options.data[0], options.init}) {
    std::string before = readFile(input);
    for (std::string RunOptions::*output :
         {&RunOptions::save, &RunOptions::saveGradients, &RunOptions::metrics,
          &RunOptions::trace, &RunOptions::profileJson}) {
      RunOptions bad = options;
      bad.*output = input;
      EXPECT_EQ(exitCodeOf(run(bad)), 64) << input;
      fs::create_symlink(input, linked);
      bad.*output = linked;
      EXPECT_EQ(exitCodeOf(run(bad)), 64) << input;
      fs::remove(linked);
    }
    EXPECT_TRUE(readFile(input) == before) << input;
  }
}

TEST_F(FilesOfRun, outputsMayNotBeEachOther) {
  std::string RunOptions::*outputs[] = {
      &RunOptions::save,  &RunOptions::saveGradients, &RunOptions::metrics,
      &RunOptions::trace, &RunOptions::tensorboard,   &RunOptions::profileJson};
  for (auto first : outputs)
    for (auto second : outputs) {
      if (first == second)
        continue;
      options.save.clear();
      RunOptions bad = options;
      bad.plan = writePlan(tinyPlan(), "plan");
      bad.*first = fresh("one");
      bad.*second = fs::path(bad.*first).parent_path() / "." / "one";
      absl::Status status = run(bad);
      EXPECT_EQ(exitCodeOf(status), 64) << status;
      EXPECT_NE(status.message().find("are one file: name two"),
                std::string::npos)
          << status;
      EXPECT_FALSE(fs::exists(bad.*first));
    }
}

TEST_F(FilesOfRun, outputsMayNotBeFilesOfAFolderOrPair) {
  ASSERT_FALSE(saved(tinyPlan()).empty());
  options.init = temporary("model");
  fs::remove_all(options.init);
  fs::create_directory(options.init);
  fs::rename(options.save, options.init + "/model.safetensors");
  options.save = options.init + "/model.safetensors";
  expectExit(tinyPlan(), 64,
             "--save \"" + options.save + "\" would overwrite --init");
  options.init.clear();
  fs::rename(options.data[0], options.data[0] + ".bin");
  writeText(100, "text.idx");
  options.save = options.data[0] + ".idx";
  options.data[0] += ".bin";
  expectExit(tinyPlan(), 64, "would overwrite --data");
}

TEST_F(FilesOfRun, metricsAreAppendedToALogAndNothingElse) {
  options.metrics = fresh("metrics");
  (void)saved(tinyPlan());
  std::string first = readFile(options.metrics);
  (void)saved(tinyPlan());
  EXPECT_TRUE(readFile(options.metrics).starts_with(first));
  EXPECT_GT(readFile(options.metrics).size(), first.size());
  writeFile(options.metrics, "notes\n", 6);
  expectExit(tinyPlan(), 73, "is no log of earlier runs");
  EXPECT_EQ(readFile(options.metrics), "notes\n");
}

TEST_F(FilesOfRun, everyOutputKeepsTheModeOfTheFileItReplaces) {
  options.saveGradients = fresh("gradients");
  options.trace = fresh("trace");
  options.profileJson = fresh("profile");
  options.metrics = fresh("metrics");
  std::string all[] = {options.save, options.saveGradients, options.trace,
                       options.profileJson, options.metrics};
  for (const std::string &path : all) {
    writeFile(path, "", 0);
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  }
  (void)saved(tinyPlan());
  for (const std::string &path : all) {
    struct stat status;
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u) << path;
    EXPECT_GT(status.st_size, 0) << path;
  }
}

/// Starts from a file that is written here.
class Init : public RunCase {
protected:
  std::vector<float> table = std::vector<float>(256 * 8, 0.25f);
  std::vector<float> mask = std::vector<float>(16, 1);
  std::vector<TensorToWrite> tensors;
  std::string expected; // what the plain file gives

  void SetUp() override {
    RunCase::SetUp();
    options.steps = 0;
    options.init = temporary("start.safetensors");
    for (size_t i = 0; i < table.size(); ++i)
      table[i] += static_cast<float>(i) / 1024;
    add("wte.weight", table);
    expected = written();
    tensors.clear();
  }
  void add(const std::string &name, const std::vector<float> &values) {
    std::vector<uint64_t> shape = {values.size()};
    if (values.size() == table.size())
      shape = {256, 8};
    tensors.push_back({name, shape, values.data()});
  }
  void write() { ASSERT_TRUE(writeSafeTensors(options.init, tensors).ok()); }
  std::string written() {
    write();
    return saved(tinyPlan({.ranks = 2}));
  }
  std::string skipped() {
    std::vector<unsigned char> bytes = encode(tinyPlan());
    auto file = SafeTensorsReader::open(options.init);
    EXPECT_TRUE(file.ok()) << file.status();
    absl::StatusOr<MatchedWeights> match =
        matchWeights(*plan::GetPlan(bytes.data() + plan::frameBytes),
                     *std::move(file), true);
    EXPECT_TRUE(match.ok()) << match.status();
    return match.ok() ? match->skipped : "";
  }
};

TEST_F(Init, findsWeightsWithThePrefixOfTheModelBelowTheHead) {
  for (const char *name : {"transformer.wte.weight", "model.wte.weight"}) {
    tensors.clear();
    add(name, table);
    EXPECT_TRUE(written() == expected) << name;
    EXPECT_EQ(skipped(), "");
  }
  add("wte.weight", table);
  write(); // both: which one is meant?
  expectExit(tinyPlan(), 65, "not in the plan: \"model.wte.weight\"");
}

TEST_F(Init, skipsAndListsWhatRepositoriesHoldBesideWeights) {
  add("transformer.wte.weight", table);
  add("lm_head.weight", table);
  for (const char *layer : {"0", "1", "11"}) {
    add(std::string("transformer.h.") + layer + ".attn.bias", mask);
    add(std::string("h.") + layer + ".attn.masked_bias", mask);
  }
  add("model.layers.0.self_attn.rotary_emb.inv_freq", mask);
  EXPECT_TRUE(written() == expected);
  EXPECT_EQ(skipped(), "h.*.attn.masked_bias (3), lm_head.weight, "
                       "model.layers.*.self_attn.rotary_emb.inv_freq, "
                       "transformer.h.*.attn.bias (3)");
}

TEST_F(Init, skipsAndListsPartsForPictures) {
  add("language_model.wte.weight", table);
  add("vision_tower.encoder.layers.0.mlp.fc1.weight", mask);
  add("vision_tower.encoder.layers.1.mlp.fc1.weight", mask);
  add("model.multi_modal_projector.norm.weight", mask);
  add("gpt_neox.layers.3.attention.bias", mask);
  EXPECT_TRUE(written() == expected);
  EXPECT_EQ(skipped(), "gpt_neox.layers.*.attention.bias, "
                       "model.multi_modal_projector.norm.weight, "
                       "vision_tower.encoder.layers.*.mlp.fc1.weight (2)");
}

TEST_F(Init, takesTheTableOfATiedModelFromItsHeadAlone) {
  add("lm_head.weight", table);
  EXPECT_TRUE(written() == expected);
  EXPECT_EQ(skipped(), "");
}

TEST_F(Init, refusesExtrasThatMightBeWeights) {
  for (const char *name :
       {"h.attn.bias", "h.0.attn.c_attn.bias", "xh.0.attn.bias",
        "h.x.attn.bias", "h.0.mlp.bias", "h.0.attention.bias",
        "layers.0.attn.bias", "my_vision_tower.weight", "my_inv_freq",
        "lm_head.bias"}) {
    tensors.clear();
    add("wte.weight", table);
    add(name, mask);
    write();
    expectExit(tinyPlan(), 65, std::string("not in the plan: \"") + name);
  }
}

TEST_F(Init, aHeadThatDiffersFromItsTiedEmbeddingIsAnError) {
  std::vector<float> head = table;
  head.back() += 1;
  add("wte.weight", table);
  add("lm_head.weight", head);
  write();
  expectExit(tinyPlan(), 65, "\"lm_head.weight\" and \"wte.weight\" differ");
  tensors.back() = {"lm_head.weight", {16}, mask.data()};
  write();
  expectExit(tinyPlan(), 65, "\"lm_head.weight\" and \"wte.weight\" differ");
}

TEST_F(Init, weightsOfAnotherTypeAreRefusedBeforeTheStart) {
  std::string header =
      R"({"wte.weight":{"dtype":"I8","shape":[256,8],"data_offsets":[0,2048]}})";
  uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char *>(&length), sizeof(length));
  bytes += header + std::string(2048, '\0');
  writeFile(options.init, bytes.data(), bytes.size());
  expectExit(tinyPlan(), 65, "is I8, expected F32");
}

} // namespace
} // namespace meshwork::runtime::test
