// A compiled plan with one wrong number and a checksum that fits is refused, or
// runs without harm. Each runs in a process of its own.
#include "lib/Plan/PlanFile.h"
#include "meshwork/Plan/Frame.h"
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Runtime/Run.h"
#include "test/Plan/TestPlan.h"
#include <fcntl.h>
#include <gtest/gtest.h>
#include <random>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace meshwork::runtime::test {
using namespace plan::test;
using plan::PlanFile;
namespace {

using Bytes = std::vector<unsigned char>;

/// Memory and time that a wrong number could claim are bounded.
[[noreturn]] void runAndExit(const std::string &plan, const std::string &data) {
  int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, 1);
  ::dup2(nowhere, 2);
  struct rlimit space = {rlim_t{4} << 30, rlim_t{4} << 30};
  ::setrlimit(RLIMIT_AS, &space);
  ::alarm(60);
  RunOptions options;
  options.plan = plan;
  options.data = {data};
  options.tokenizer = "bytes";
  options.steps = 1;
  options.threads = 1;
  ::_exit(exitCodeOf(run(options)));
}

class MutatedPlan : public testing::Test {
protected:
  static void SetUpTestSuite() {
    std::string config = temporary("mutated-config.json"),
                spec = temporary("mutated-spec.toml");
    std::string keys = R"({"model_type": "llama", "vocab_size": 256,
        "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
        "num_attention_heads": 2, "max_position_embeddings": 8,
        "pad_token_id": 0})";
    std::string text = "[mesh]\naxes = [\"dp=2\"]\n"
                       "[batch]\nglobal = 4\nmicro = 1\nsequence = 8\n";
    writeFile(config, keys.data(), keys.size());
    writeFile(spec, text.data(), text.size());
    path = temporary("mutated.mwplan");
    std::string command = std::string(MESHWORK_TOOL) + " compile " + config +
                          " --spec " + spec + " -o " + path;
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    auto file = plan::PlanFile::open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    payload.assign((*file)->payload().begin(), (*file)->payload().end());
    data = writeText(5000, "mutated-text");
  }

  static plan::PlanT unpacked() {
    plan::PlanT plan;
    plan::GetPlan(payload.data())->UnPackTo(&plan);
    return plan;
  }

  /// Counts plans that were accepted; a crash is a failure.
  static void attempt(const Bytes &file, const std::string &what) {
    if (!PlanFile::fromBytes(file).ok())
      return;
    ++accepted;
    writeFile(path, file.data(), file.size());
    pid_t child = ::fork();
    if (child == 0)
      runAndExit(path, data);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << what << ": signal " << WTERMSIG(status);
  }

  static inline std::string path, data;
  static inline Bytes payload;
  static inline int accepted = 0;
};

TEST_F(MutatedPlan, LaunchesOfWrongNumbersAreRefused) {
  const plan::PlanT good = unpacked();
  ASSERT_TRUE(PlanFile::fromBytes(encode(good)).ok());
  int launches = 0;
  for (size_t list = 0; list < good.programs[0]->lists.size(); ++list)
    for (size_t i = 0; i < good.programs[0]->lists[list]->instructions.size();
         ++i) {
      plan::PlanT plan = good;
      auto *launch =
          plan.programs[0]->lists[list]->instructions[i]->op.AsLaunch();
      if (!launch)
        continue;
      ++launches;
      uint64_t items = launch->items;
      for (uint64_t wrong : {items + 1, items - 1, items * 1000}) {
        launch->items = wrong;
        EXPECT_FALSE(PlanFile::fromBytes(encode(plan)).ok()) << i;
      }
    }
  EXPECT_GT(launches, 5);
}

/// Words of the file, wherever they stand: sizes, indices, offsets, flags.
TEST_F(MutatedPlan, RandomWords) {
  std::mt19937 random(1);
  const plan::Plan &good = *plan::GetPlan(payload.data());
  auto code = static_cast<size_t>(good.code()->data() - payload.data());
  accepted = 0;
  for (int i = 0; i < 200; ++i) {
    Bytes file(plan::frameBytes);
    file.insert(file.end(), payload.begin(), payload.end());
    size_t word = random() % (payload.size() / 4) * 4;
    if (word + 4 > code && word < code + good.code()->size())
      continue; // Code is a program: SECURITY.md.
    uint32_t value;
    unsigned char *at = file.data() + plan::frameBytes + word;
    std::memcpy(&value, at, 4);
    const uint32_t values[] = {0,
                               value + 1,
                               value - 1,
                               value * 2,
                               ~0u,
                               1000,
                               value ^ 1u << random() % 32};
    uint32_t wrong = values[random() % std::size(values)];
    std::memcpy(at, &wrong, 4);
    plan::writeFrame(file.data() + plan::frameBytes, payload.size(),
                     file.data());
    attempt(file, "word " + std::to_string(word) + ": " +
                      std::to_string(value) + " -> " + std::to_string(wrong));
  }
  EXPECT_GT(accepted, 20);
}

} // namespace
} // namespace meshwork::runtime::test
