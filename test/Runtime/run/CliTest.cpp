// meshwork-run as a process: exit codes, signals, and what it is made of.
#include "test/Plan/TestPlan.h"
#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {
namespace fs = std::filesystem;
using plan::PlanT;

struct Outcome {
  int code;
  std::string text; // stdout and stderr
};

Outcome shell(const std::string &command) {
  std::string out = temporary("cli-output");
  int status = std::system((command + " > '" + out + "' 2>&1").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          readFile(out)};
}

Outcome meshworkRun(const std::string &arguments) {
  return shell(std::string("'") + MESHWORK_RUN + "' " + arguments);
}

class Cli : public ::testing::Test {
protected:
  std::string plan = writePlan(tinyPlan({.ranks = 2}), "cli-plan");
  std::string data = writeText(5000, "cli-text");
  std::string train = plan + " --data " + data + " --tokenizer bytes ";
};

TEST_F(Cli, exitCodes) {
  EXPECT_EQ(meshworkRun("--help").code, 0);
  EXPECT_EQ(meshworkRun("").code, 64);
  EXPECT_EQ(meshworkRun(train + "--steps 1 --frobnicate").code, 64);
  EXPECT_EQ(meshworkRun(train + "--steps -1").code, 64);
  EXPECT_EQ(meshworkRun(train + "--steps 1 --schedule zigzag").code, 64);
  EXPECT_EQ(meshworkRun(train + "--steps 1 -n 4").code, 64);
  EXPECT_EQ(meshworkRun(train + "--steps 1 --seed 4294967296").code, 64);
  EXPECT_EQ(meshworkRun(train + "--steps 1 --lr nan").code, 64);
  EXPECT_EQ(meshworkRun(data + " --steps 1").code, 64); // --data is missing
  EXPECT_EQ(meshworkRun(data + " --steps 0").code, 65); // not a plan
  EXPECT_EQ(meshworkRun("/absent --steps 0").code, 66);
  EXPECT_EQ(meshworkRun(train + "--steps 1 --save /absent/w").code, 73);
  EXPECT_EQ(meshworkRun(plan + " --validate-only").code, 0);
}

TEST_F(Cli, versionAndHelp) {
  Outcome version = meshworkRun("--version");
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.text, "meshwork-run " MESHWORK_VERSION "\n");
  std::string help = meshworkRun("--help").text;
  for (const char *part :
       {"{constant,cosine,linear,wsd}", "{auto,mpi,threads}", "{u16,u32}",
        "--lr RATE=0.0003", "--trace-steps N=20 Needs: --trace", "--seed N=0 ",
        "--min-lr RATE=0 Needs", "--warmup-steps N=0 Needs", "\nTraining:\n",
        "\nGPUs:\n", "\nExamples:\n"})
    EXPECT_NE(help.find(part), std::string::npos) << part << "\n" << help;
  for (const char *noise : {"->", " OR ", "UINT", "TEXT", " :{", "e+308",
                            "Excludes: --measure-machine"})
    EXPECT_EQ(help.find(noise), std::string::npos) << noise << "\n" << help;
}

TEST_F(Cli, wrongUsageSaysWhatToTypeInstead) {
  const std::pair<const char *, const char *> cases[] = {
      {"--setps 5", "unknown option \"--setps\"; did you mean \"--steps\"?"},
      {"--metric=m", "\"--metric\"; did you mean \"--metrics\"?"},
      {"-steps 5", "did you mean \"--steps\"?"},
      {"--data x --tokeniser bytes", "did you mean \"--tokenizer\"?"},
      {"--frobnicate", "unknown option \"--frobnicate\"\n"},
      {"--steps -1", "--steps: \"-1\", expected a whole number from 0 to "},
      {"--steps 1.5", "--steps: \"1.5\", expected a whole number"},
      {"--steps 1 --seed 4294967296", "expected a whole number from 0 to 4294"},
      {"--timeout 0",
       "--timeout: \"0\", expected a number from 0.001 to 1000000"},
      {"--timeout 2000000", "expected a number from 0.001 to 1000000"},
      {"--timeout 1e-300", "expected a number from 0.001 to 1000000"},
      {"--timeout inf", "expected a number from 0.001 to 1000000"},
      {"--threads 0", "--threads: \"0\", expected a whole number from 1 to 4"},
      {"-n 0", "\"0\", expected a whole number from 1 to"},
      {"--steps 1 --lr nan",
       "--lr: \"nan\", expected 0, or a number from 1e-30 to 3.4e+38"},
      {"--steps 1 --lr -1", "expected 0, or a number from 1e-30 to 3.4e+38"},
      // Infinite and 0 in f32.
      {"--steps 1 --lr 1e300", "expected 0, or a number from 1e-30 to 3.4e+38"},
      {"--steps 1 --lr 5e-324",
       "expected 0, or a number from 1e-30 to 3.4e+38"},
      {"--steps 1 --schedule linear --min-lr 1e-300", "--min-lr: \"1e-300\""},
      {"--steps 1 --peak-tflops 0",
       "\"0\", expected a number from 0.001 to 1e"},
      {"--steps 1 --peak-tflops 1e-300", "expected a number from 0.001 to 1e"},
      {"--steps 1 --schedule 1", "1 not in {constant,cosine,linear,wsd}"},
      {"--steps 1 --schedule zigzag",
       "zigzag not in {constant,cosine,linear,wsd}"},
      {"--transport carrier", "carrier not in {auto,mpi,threads}"},
      // What would do nothing.
      {"--data x", "--data requires --steps"},
      {"--lr 1", "--lr requires --steps"},
      {"--warmup-steps 1", "--warmup-steps requires --steps"},
      {"--schedule cosine", "--schedule requires --steps"},
      {"--steps 1 --min-lr 0", "--min-lr requires --schedule"},
      {"--steps 1 --decay-steps 1", "--decay-steps requires --schedule"},
      {"--steps 1 --schedule constant --min-lr 1e-5", "does not decay"},
      {"--steps 9 --stable-steps 2", "--stable-steps requires --schedule"},
      {"--steps 9 --schedule wsd", "--schedule wsd needs --stable-steps"},
      {"--steps 9 --schedule cosine --stable-steps 2",
       "--stable-steps is given, but --schedule is not wsd"},
      {"--steps 9 --schedule wsd --stable-steps 8 --warmup-steps 1",
       "--stable-steps is 8, with 1 --warmup-steps: the decay ends after step "
       "9"},
      {"--order epochs", "--order requires --data"},
      {"--data-weights 1,2", "--data-weights requires --data"},
      {"--data-type u16", "--data-type requires --data or --eval-data"},
      {"--tokenizer bytes", "--tokenizer requires --data or --eval-data"},
      {"--document-begin 1", "--document-begin requires --data or --eval-data"},
      {"--document-end 1", "--document-end requires --data or --eval-data"},
      {"--save-gradients g", "--save-gradients requires --steps"},
      {"--metrics m", "--metrics requires --steps or --evaluate"},
      {"--eval-data e", "there is no step: give --steps, or --evaluate"},
      {"--evaluate", "--evaluate requires --eval-data"},
      {"--steps 1 --evaluate --eval-data e", "--steps excludes --evaluate"},
      {"--held-out 0.1", "--held-out requires --data"},
      {"--steps 1 --data d --eval-data e --held-out 0.1",
       "--eval-data excludes --held-out"},
      {"--steps 1 --data d --held-out 1",
       "expected a number from 1e-09 to 0.9"},
      {"--steps 1 --data d --eval-every 2",
       "neither --eval-data nor --held-out"},
      {"--steps 1 --eval-every 0", "--eval-every"},
      {"--keep-best", "--keep-best requires --eval-every"},
      {"--steps 9 --data d --eval-data e --eval-every 2 --keep-best",
       "--keep-best needs --checkpoint"},
      {"--steps 9 --data d --eval-data e --eval-every 4 --keep-best "
       "--checkpoint c --checkpoint-every 3",
       "no step before the last is both evaluated (--eval-every 4) and saved"},
      {"--eval-steps 2", "--eval-steps requires --eval-data or --held-out"},
      {"--trace t", "--trace requires --steps"},
      {"--steps 1 --trace-steps 2", "--trace-steps requires --trace"},
      {"--profile", "--profile requires --steps"},
      {"--profile-json p", "--profile-json requires --steps"},
      {"--log-every 2", "--log-every requires --steps"},
      {"--peak-tflops 2", "--peak-tflops requires --steps"},
      {"--measure-peak", "--measure-peak requires --steps"}};
  for (const auto &[arguments, text] : cases) {
    Outcome outcome = meshworkRun(plan + " " + arguments);
    EXPECT_EQ(outcome.code, 64) << arguments;
    EXPECT_NE(outcome.text.find(text), std::string::npos)
        << arguments << "\nexpected: " << text << "\nfound: " << outcome.text;
    EXPECT_TRUE(outcome.text.starts_with("meshwork-run: error: "))
        << outcome.text;
  }
  // Decimal, whatever it starts with.
  EXPECT_NE(meshworkRun(train + "--steps 010").text.find("/10 "),
            std::string::npos);
}

TEST_F(Cli, moreThreadsThanCoresAreTold) {
  std::string told = meshworkRun(plan + " --validate-only --threads 4096").text;
  EXPECT_NE(told.find("warning: --threads 4096 gives 2 ranks 8192 threads on "),
            std::string::npos)
      << told;
  // Ranks may share a core, and nobody has asked for it.
  for (const char *fine : {"", " --threads 1"})
    EXPECT_EQ(
        meshworkRun(plan + " --validate-only" + fine).text.find("warning"),
        std::string::npos);
}

TEST_F(Cli, documents) {
  EXPECT_EQ(meshworkRun(train + "--steps 1 --document-end 99").code, 64);
  PlanT separate = tinyPlan({.ranks = 2});
  addDocuments(separate);
  train = writePlan(separate, "cli-documents") + " --data " + data +
          " --tokenizer bytes --steps 1 ";
  EXPECT_EQ(meshworkRun(train + "--document-end 99").code, 0);
  EXPECT_EQ(meshworkRun(train + "--document-begin 99").code, 0);
  EXPECT_EQ(meshworkRun(train).code, 64);
  EXPECT_EQ(meshworkRun(train + "--document-end 10").code, 65); // absent
  for (const char *wrong : {"-1", "c", "256", "4294967296", "99.5", "''"})
    EXPECT_EQ(meshworkRun(train + "--document-end " + wrong).code, 64) << wrong;
  Outcome both = meshworkRun(train + "--document-end 99 --document-begin 100");
  EXPECT_EQ(both.code, 64);
  EXPECT_NE(both.text.find("excludes"), std::string::npos) << both.text;
}

TEST_F(Cli, whatCannotBeWrittenLeavesWeights) {
  std::string save = temporary("cli-left"), metrics = temporary("cli-long");
  std::string run = std::string("'") + MESHWORK_RUN + "' " + train +
                    "--steps 600 --log-every 600 --save " + save;
  auto expect = [&](const std::string &command, int code,
                    const std::string &text) {
    ::unlink(save.c_str());
    Outcome outcome = shell("bash -c \"" + command + "\"");
    EXPECT_EQ(outcome.code, code) << command << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find(text), std::string::npos) << outcome.text;
    EXPECT_TRUE(fs::exists(save)) << command;
  };
  expect(run + " --metrics /dev/full", 74, "No space left on device");
  // 64 KiB a file (SIGXFSZ).
  expect("ulimit -f 64; " + run + " --metrics " + metrics, 74,
         "File too large");
  expect(run + " > /dev/full", 74, "cannot write to stdout");
  // Whoever read it has gone (SIGPIPE).
  expect(run + " | true; exit \\${PIPESTATUS[0]}", 74,
         "cannot write to stdout");
}

TEST_F(Cli, plainLinesOffATerminal) {
  Outcome outcome =
      meshworkRun(train + "--steps 5 --log-every 2 -n 2 --schedule cosine");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("step 0/5"), std::string::npos);
  EXPECT_EQ(outcome.text.find("step 1/5"), std::string::npos);
  EXPECT_NE(outcome.text.find("step 4/5"), std::string::npos);
  EXPECT_EQ(outcome.text.find('\r'), std::string::npos);
}

/// What a terminal is sent.
std::string onTerminal(const std::string &arguments) {
  int terminal = -1;
  pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    std::string command = std::string("'") + MESHWORK_RUN + "' " + arguments;
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  std::string text;
  char bytes[4096];
  for (ssize_t got; (got = ::read(terminal, bytes, sizeof(bytes))) > 0;)
    text.append(bytes, static_cast<size_t>(got));
  ::close(terminal);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << text;
  return text;
}

TEST_F(Cli, linesOnATerminalWhereTheyAreAskedFor) {
  std::string bar = onTerminal(train + "--steps 5");
  EXPECT_NE(bar.find("step 4/5 ["), std::string::npos) << bar;
  EXPECT_EQ(bar.find("/5  loss"), std::string::npos) << bar;
  std::string both = onTerminal(train + "--steps 5 --log-every 2");
  EXPECT_NE(both.find("step 4/5 ["), std::string::npos) << both;
  for (const char *line :
       {"step 0/5  loss", "step 2/5  loss", "step 4/5  loss"})
    EXPECT_NE(both.find(line), std::string::npos) << line << both;
  EXPECT_EQ(both.find("step 1/5  loss"), std::string::npos) << both;
}

pid_t start(const std::vector<std::string> &arguments) {
  pid_t child = ::fork();
  if (child == 0) {
    for (int signal : {SIGHUP, SIGINT, SIGTERM}) // nohup has them ignored
      ::signal(signal, SIG_DFL);
    std::vector<char *> raw = {const_cast<char *>(MESHWORK_RUN)};
    for (const std::string &argument : arguments)
      raw.push_back(const_cast<char *>(argument.c_str()));
    raw.push_back(nullptr);
    if (!std::freopen("/dev/null", "w", stdout))
      ::_exit(126);
    ::execv(MESHWORK_RUN, raw.data());
    ::_exit(127);
  }
  return child;
}

int exitOf(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Waits until training writes metrics, for minutes at most.
void waitForSteps(const std::string &metrics) {
  for (int i = 0; i < 20000 && readFile(metrics).empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TEST_F(Cli, signalsEndTheStepAndSave) {
  for (int signal : {SIGHUP, SIGINT, SIGTERM}) {
    std::string save = temporary("cli-save"),
                metrics = temporary("cli-metrics");
    ::unlink(save.c_str());
    ::unlink(metrics.c_str());
    pid_t child =
        start({plan, "--data", data, "--tokenizer", "bytes", "--steps",
               "100000000", "--metrics", metrics, "--save", save});
    waitForSteps(metrics);
    ::kill(child, signal);
    EXPECT_EQ(exitOf(child), 128 + signal);
    EXPECT_TRUE(fs::exists(save));
    EXPECT_TRUE(readFile(metrics).ends_with('\n'));
  }
}

TEST_F(Cli, loadsNoLlvm) {
  Outcome libraries = shell(std::string("ldd '") + MESHWORK_RUN + "'");
  ASSERT_EQ(libraries.code, 0);
  EXPECT_NE(libraries.text.find("libc.so"), std::string::npos);
  EXPECT_EQ(libraries.text.find("LLVM"), std::string::npos) << libraries.text;
  EXPECT_EQ(libraries.text.find("MLIR"), std::string::npos) << libraries.text;
  // Opened when a plan asks for them.
  for (const char *library : {"libcuda", "libcublas", "libnccl", "libmpi"})
    EXPECT_EQ(libraries.text.find(library), std::string::npos)
        << libraries.text;
}

} // namespace
} // namespace meshwork::runtime::test
