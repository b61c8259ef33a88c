// A kernel that never ends: the run does, after the time-out, and names the
// rank, its GPU, the step and what it was at. Whole processes, since a GPU that
// hangs is left as it is.
#include "test/Runtime/cuda/FaultyPlan.h"
#include <gtest/gtest.h>
#include <sys/wait.h>

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {

constexpr const char *forever = "FOREVER:\nbra FOREVER;\n";
constexpr int timeoutSeconds = 2;

struct Outcome {
  int code;
  std::string text; // stdout and stderr
};

Outcome train(const Fault &fault, uint32_t ranks, const std::string &options,
              const std::string &launcher = "") {
  std::string plan = writePlan(faultyPlan(fault, ranks), "hang.mwplan"),
              out = temporary("output");
  std::string command = "timeout -k 1 300 " + launcher + " '" + MESHWORK_RUN +
                        "' " + plan + " --data " + writeText(5000, "text") +
                        " --tokenizer bytes --steps 4" + " --timeout " +
                        std::to_string(timeoutSeconds) + " " + options;
  int status = std::system((command + " > '" + out + "' 2>&1").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          readFile(out)};
}

void expectNamed(const Outcome &outcome, const std::string &sentence) {
  EXPECT_EQ(outcome.code, 75) << outcome.text;
  EXPECT_NE(outcome.text.find(sentence), std::string::npos)
      << "expected: " << sentence << "\nfound: " << outcome.text;
}

const Fault inMicrobatch{false, 3, forever, 0};
const std::string ofMicrobatch =
    "GPU 0 has not ended \"wte\" (Embedding, forward[0]) to \"wte "
    "(gradient)\" (EmbeddingGrad, forward[3]) of microbatch 1 of step 1; "
    "the last known to have ended is \"wte\" (Embedding, forward[0]) to "
    "\"wte (gradient)\" (EmbeddingGrad, forward[3]) of microbatch 0 of "
    "step 1";

TEST(Hang, OfOneRankIsNamed) {
  expectNamed(train(inMicrobatch, 1, ""),
              " s, waits for nobody: " + ofMicrobatch);
}

TEST(Hang, IsOfItsStepWhereTheNextIsEnqueued) {
  Outcome outcome = train({true, 1, forever}, 1, "");
  expectNamed(outcome,
              "GPU 0 has not ended \"optimizer\" (Matmul, update[3]) to "
              "\"late\" (Launch, update[4]) of step 1; the last known to have "
              "ended is \"norm\" (Matmul, update[2]) of step 1");
  EXPECT_NE(outcome.text.find("step 0/4"), std::string::npos) << outcome.text;
  EXPECT_EQ(outcome.text.find("step 1/4"), std::string::npos) << outcome.text;
}

TEST(Hang, IsOfItsInstructionWhereInstructionsAreWaitedFor) {
  for (const char *option : {"--synchronous", "--profile"})
    expectNamed(train(inMicrobatch, 1, option),
                "GPU 0 has not ended \"late\" (Launch, forward[1]) of "
                "microbatch 1 of step 1; the last known to have ended is "
                "\"wte\" (Embedding, forward[0]) of microbatch 1 of step 1");
}

/// The other rank waits for it on the GPU, and is not to blame.
TEST(Hang, OfOneRankOfTwoOnAGpuIsNamed) {
  Fault fault = inMicrobatch;
  fault.rank = 1;
  fault.launch = 5; // of both ranks
  Outcome outcome = train(fault, 2, "--share-gpu");
  expectNamed(outcome, "rank 1");
  expectNamed(outcome, "waits for nobody: GPU 0 has not ended \"wte\" "
                       "(Embedding, forward[0]) to \"wte (gradient)\" "
                       "(EmbeddingGrad, forward[3]) of microbatch ");
  expectNamed(outcome, " of step 1; the last known to have ended is");
  EXPECT_EQ(outcome.text.find("rank 0 did not"), std::string::npos)
      << outcome.text;
}

TEST(Hang, OfOneGpuOfTwoIsNamed) {
  Fault fault = inMicrobatch;
  fault.rank = 1;
  for (const char *launcher :
       {"", "mpirun --oversubscribe --allow-run-as-root -n 2"}) {
    Outcome outcome = train(fault, 2, "", launcher);
    expectNamed(outcome, "rank 1");
    expectNamed(outcome, "waits for nobody: GPU 1 has not ended \"wte\" "
                         "(Embedding, forward[0]) to \"wte (gradient)\" "
                         "(EmbeddingGrad, forward[3]) of microbatch 1 of "
                         "step 1; the last known");
    EXPECT_EQ(outcome.text.find("rank 0 did not"), std::string::npos)
        << outcome.text;
  }
}

/// Both are in a graph with a collective, and neither can tell who holds it up;
/// where instructions are waited for, both can.
TEST(Hang, WithinAGraphThatMeetsPeersIsOfItsStep) {
  Fault fault{false, 3, forever, 1, true};
  Outcome outcome = train(fault, 2, "");
  expectNamed(outcome, "ranks wait for each other longer than ");
  for (const char *rank : {"0", "1"})
    expectNamed(outcome, std::string("rank ") + rank +
                             " at \"wte\" (Embedding, forward[0]) to \"wte "
                             "(gradient)\" (EmbeddingGrad, forward[4]) of "
                             "microbatch 1 of step 1 on GPU " +
                             rank);
  expectNamed(outcome, "with --synchronous one instruction is named");
  outcome = train(fault, 2, "--synchronous");
  expectNamed(outcome,
              "waits for nobody: GPU 1 has not ended \"late\" (Launch, "
              "forward[1]) of microbatch 1 of step 1");
}

} // namespace
} // namespace meshwork::runtime::test
