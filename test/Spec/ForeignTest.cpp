// Words of other tools are told what to write here, and what they are told is a
// spec.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lib/Spec/Foreign.h"
#include "lib/Spec/Spec.h"

namespace meshwork::spec {
namespace {

using testing::HasSubstr;

/// With an axis of each kind, so that any strategy has ranks to work on.
const std::string mesh =
    R"(["dp=2", "fsdp=2", "tp=2", "pp=2", "cp=2", "up=2"])";

std::string specWith(const std::string &axes) {
  return "mesh.axes = " + axes +
         "\nbatch.global = 32\nbatch.micro = 4\nbatch.sequence = 64\n";
}

std::string errorsOf(const std::string &text,
                     const std::vector<std::string> &overrides = {}) {
  Result result = parse(text, "s.toml", overrides);
  EXPECT_FALSE(result.spec) << "no error in\n" << text;
  return textOf(result.diagnostics);
}

std::string withoutSpaces(std::string line) {
  size_t equals = line.find(" = ");
  return line.substr(0, equals) + "=" + line.substr(equals + 3);
}

/// Keys beside `line` without which it would mean nothing.
std::vector<std::string> beside(const std::string &line) {
  std::vector<std::string> settings = {"shard.sequence=[\"cp\", \"up\"]"};
  if (line.starts_with("zero.gathered") || line.starts_with("zero.weights"))
    settings.emplace_back("zero.stage=3");
  if (line.starts_with("zero.gradients"))
    settings.emplace_back("zero.stage=1");
  if (line.starts_with("zero.gathered = ["))
    settings.emplace_back("zero.axes=[\"dp\", \"fsdp\"]");
  if (line.starts_with("precision.scaling") ||
      line.starts_with("precision.weight_casts"))
    settings.emplace_back("precision.matmul=fp8");
  if (line.starts_with("experts."))
    settings.emplace_back("shard.experts=[\"dp\"]");
  if (line.find("\"auto\"") != line.npos)
    settings.emplace_back("expect.memory_per_rank=1 GiB");
  if (line.starts_with("target.arch") && line.find("sm_") != line.npos)
    settings.emplace_back("target.device=cuda");
  return settings;
}

void expectTaken(const std::string &line) {
  std::vector<std::string> settings = beside(line);
  if (!line.starts_with("mesh.axes"))
    settings.push_back("mesh.axes=" + mesh);
  else
    settings.clear();
  settings.push_back(withoutSpaces(line));
  Result result = parse(specWith(R"(["dp=2"])"), "s.toml", settings);
  EXPECT_TRUE(result.spec) << line << "\n" << textOf(result.diagnostics);
}

TEST(Foreign, EveryAdviceOfAKeyIsALineOfASpec) {
  std::set<std::string> seen;
  for (const ForeignKey &one : foreignKeys()) {
    EXPECT_TRUE(seen.insert(plainOf(one.word)).second) << one.word << " twice";
    std::string write = one.write;
    EXPECT_TRUE(*one.write || *one.note) << one.word;
    if (!write.empty() && !write.starts_with("--"))
      expectTaken(write);
    EXPECT_EQ(findKey(one.word), nullptr) << one.word << " is a key";
    bool isPath = std::string(one.word).find('.') != std::string::npos;
    EXPECT_THAT(errorsOf(specWith(mesh) + (isPath ? "" : "other.") + one.word +
                         " = true\n"),
                HasSubstr(*one.write ? one.write : one.note))
        << one.word;
  }
}

TEST(Foreign, EveryAdviceOfAValueIsTaken) {
  for (const ForeignValue &one : foreignValues()) {
    const Key *key = findKey(one.key);
    ASSERT_TRUE(key) << one.key;
    expectTaken(std::string(one.key) + " = " + one.write);
    std::string line = std::string(one.key) + " = \"" + one.word + "\"";
    std::vector<std::string> settings = beside(line);
    settings.push_back("mesh.axes=" + mesh);
    settings.push_back(withoutSpaces(line));
    EXPECT_THAT(errorsOf(specWith(mesh), settings),
                HasSubstr(std::string("; write ") +
                          (line.starts_with("target.arch") ? "" : one.write)))
        << line;
  }
}

TEST(Foreign, KeysOfTablesThatNoSpecHas) {
  EXPECT_EQ(
      errorsOf("[parallel]\ntp = 8\nother = 3\n[zero_optimization]\n"
               "stage = 2\n[mesh]\naxes = [\"dp=2\"]\ntp = 2\n"
               "[batch]\nglobal = 8\nmicro = 4\nsequence = 64\n"
               "gradient_accumulation = 2\n[unknown]\nx = 1\n"),
      R"(s.toml:2:1: error: unknown key parallel.tp; write mesh.axes = ["tp=8"]; all axes stand in that one list
s.toml:3:1: error: unknown key parallel.other
s.toml:5:1: error: unknown key zero_optimization.stage; write zero.stage = 2
s.toml:8:1: error: unknown key mesh.tp; write mesh.axes = ["tp=2"]; all axes stand in that one list
s.toml:13:1: error: unknown key batch.gradient_accumulation; a step has batch.global / (batch.micro x data-parallel ranks) microbatches: write batch.global to match
s.toml:14:2: error: unknown table [unknown]
)");
}

// What this version does not do is said by name, as a table or as a key.
TEST(Foreign, AdaptersAndChatTemplates) {
  std::string errors = errorsOf(
      "[mesh]\naxes = [\"dp=2\"]\n[batch]\nglobal = 8\nmicro = 4\n"
      "sequence = 64\nlora_rank = 8\nchat_template = \"x\"\n[lora]\nr = 4\n");
  for (const char *part :
       {"batch.lora_rank; this version trains all weights and makes no "
        "adapters (LoRA)",
        "batch.chat_template; this version applies no chat template",
        "unknown table [lora]; this version trains all weights"})
    EXPECT_NE(errors.find(part), std::string::npos) << errors;
}

TEST(Foreign, AKeyOfAnotherSection) {
  EXPECT_THAT(errorsOf(specWith(mesh), {"training.virtual_stages=2"}),
              HasSubstr("did you mean \"pipeline.virtual_stages\"?"));
}

TEST(Foreign, LettersOfAnotherCase) {
  for (auto [key, word, meant] :
       {std::tuple("pipeline.schedule", "1F1B", "1f1b"),
        std::tuple("pipeline.schedule", "Interleaved1F1B", "interleaved-1f1b"),
        std::tuple("optimizer.kind", "AdamW", "adamw"),
        std::tuple("target.device", "CUDA", "cuda")})
    EXPECT_THAT(errorsOf(specWith(mesh), {std::string(key) + "=" + word}),
                HasSubstr(std::string("; write \"") + meant + "\""));
}

TEST(Foreign, AxesThatSplitNothingAreToldTheirLine) {
  for (auto [axis, line] :
       {std::pair("sp", "sequence = [\"sp\"]"),
        std::pair("mp", "heads = [\"mp\"], ffn = [\"mp\"], vocab = [\"mp\"]"),
        std::pair("pipe", "layers = [\"pipe\"]"),
        std::pair("data", "batch = [\"data\"]")}) {
    std::string axes = std::string("[\"") + axis + "=2\"]";
    EXPECT_THAT(errorsOf(specWith(axes)),
                HasSubstr(std::string("Name it in [shard], like ") + line));
    std::string shard = line;
    for (size_t at; (at = shard.find("], ")) != shard.npos;)
      shard.replace(at, 3, "]\n");
    Result result = parse(specWith(axes) + "[shard]\n" + shard + "\n", "s");
    EXPECT_TRUE(result.spec) << textOf(result.diagnostics);
  }
}

TEST(Foreign, TextWithoutQuotes) {
  auto expectHint = [](const std::string &line, const std::string &hint) {
    EXPECT_THAT(errorsOf("[mesh]\n" + line + "\n"),
                testing::AllOf(HasSubstr("s.toml:2:"), HasSubstr(hint + "\n")))
        << line;
  };
  expectHint("axes = [dp=2]", "; text stands in quotes, like \"dp=2\"");
  expectHint("axes = [ \"dp=2\", tp=2 ]",
             "; text stands in quotes, like \"tp=2\"");
  expectHint("compute = bf16 # no quotes",
             "; text stands in quotes, like \"bf16\"");
  expectHint("on = True", "; TOML has true and false in lower case");
  expectHint("axes: 2", "; TOML has key = value");
  EXPECT_THAT(errorsOf("{\"mesh\": 1}"), HasSubstr("a spec is TOML"));
  EXPECT_THAT(errorsOf(specWith(mesh), {"mesh.axes=[dp=2, tp=2]"}),
              HasSubstr("; the shell removes quotes: write --set "
                        "'mesh.axes=[\"dp=2\", \"tp=2\"]'"));
}

} // namespace
} // namespace meshwork::spec
