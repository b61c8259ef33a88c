// meshwork-run: runs a plan. Options in, exit code out; see Run.h.
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Runtime/Run.h"
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <unistd.h>

namespace {
using meshwork::runtime::ExitCode;
using Transport = meshwork::runtime::RunOptions::Transport;
using Shape = meshwork::runtime::LearningRate::Shape;

std::atomic<bool> stopRequested{false};

/// First signal: end after this step. Second: end now.
void onSignal(int) {
  if (stopRequested.exchange(true))
    _exit(static_cast<int>(ExitCode::interrupted));
}

void handleSignals() {
  struct sigaction action = {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A closed pipe on stdout must not kill a run that has weights to save.
  signal(SIGPIPE, SIG_IGN);
}

void addTraining(CLI::App &app, meshwork::runtime::RunOptions &o) {
  static const std::map<std::string, Shape> shapes = {
      {"constant", Shape::constant},
      {"cosine", Shape::cosine},
      {"linear", Shape::linear}};
  app.add_option("--data", o.data,
                 "Tokens: llm.c .bin, Megatron .bin/.idx, raw ids, or text")
      ->type_name("FILE");
  app.add_option("--data-type", o.dataType, "Type of raw ids")
      ->check(CLI::IsMember({"u16", "u32"}));
  app.add_option("--tokenizer", o.tokenizer, "For a text: token = byte")
      ->check(CLI::IsMember({"bytes"}));
  app.add_option("--document-begin", o.documentBegin,
                 "Token that each document begins with, for a plan of "
                 "batch.documents = \"separate\"")
      ->type_name("ID");
  app.add_option("--document-end", o.documentEnd,
                 "The same for a token that each document ends with")
      ->type_name("ID")
      ->excludes("--document-begin");
  app.add_option("--steps", o.steps, "Optimizer steps; 0 only places weights")
      ->required(false);
  app.add_option("--seed", o.seed, "Of initial weights, samples and dropout");
  app.add_option("--lr", o.learningRate.rate, "Learning rate")
      ->capture_default_str();
  app.add_option("--min-lr", o.learningRate.minimum, "Where a decay ends");
  app.add_option("--warmup-steps", o.learningRate.warmupSteps,
                 "Steps of linear rise");
  app.add_option("--decay-steps", o.learningRate.decaySteps,
                 "Step at which a decay ends; default: --steps");
  app.add_option("--schedule", o.learningRate.shape,
                 "constant, cosine or linear")
      ->transform(CLI::CheckedTransformer(shapes));
}

void addFiles(CLI::App &app, meshwork::runtime::RunOptions &o) {
  auto file = [&](const char *name, std::string &path, const char *text) {
    app.add_option(name, path, text)->type_name("FILE");
  };
  file("--init", o.init, "Start from these safetensors (a file or a folder)");
  file("--save", o.save, "Write the weights at the end, f32 safetensors");
  file("--save-gradients", o.saveGradients, "Write the last step's gradients");
  file("--metrics", o.metrics, "Write a JSON line per step");
  file("--trace", o.trace, "Write a Chrome trace");
  file("--profile-json", o.profileJson, "Write time per instruction as JSON");
  app.add_option("--trace-steps", o.traceSteps, "Trace this many first steps")
      ->capture_default_str();
}

void addMachine(CLI::App &app, meshwork::runtime::RunOptions &o, bool &noPin) {
  app.add_option("-n,--ranks", o.ranks, "Must be equal to the plan's ranks")
      ->check(CLI::PositiveNumber);
  static const std::map<std::string, Transport> transports = {
      {"auto", Transport::automatic},
      {"threads", Transport::threads},
      {"mpi", Transport::mpi}};
  app.add_option("--transport", o.transport,
                 "auto (as launched), threads (all ranks here) or mpi")
      ->transform(CLI::CheckedTransformer(transports));
  app.add_option("--threads", o.threads,
                 "Threads per rank; default: cores / ranks")
      ->check(CLI::PositiveNumber);
  app.add_flag("--no-pin", noPin, "Leave threads to the system's scheduler");
  app.add_flag("--share-gpu", o.shareGpu,
               "Run all ranks on one GPU: slow, to check a plan");
  app.add_flag("--tune-matmuls", o.tuneMatmuls,
               "Time each product's algorithms on a GPU and keep the fastest: "
               "faster, but bits may differ from run to run");
  app.add_flag("--cudnn-attention", o.cudnnAttention,
               "Run attention by cuDNN (9.11 or newer) where it can: the last "
               "bits of gradients differ from run to run");
  app.add_flag("--compare-cpu", o.compareCpu,
               "Run each instruction on the GPU and on the CPU from the same "
               "inputs, and compare; for plans made --with-cpu-code");
  app.add_flag("--synchronous", o.synchronous,
               "Wait after each instruction on a GPU: slow, names the one that "
               "fails");
  app.add_option("--timeout", o.timeoutSeconds,
                 "Seconds to wait for a rank, or for a GPU's work to end")
      ->capture_default_str();
  app.add_option("--log-every", o.logEvery,
                 "Steps between lines, off a terminal");
  app.add_option("--peak-tflops", o.peakTflops, "Of this machine, for mfu")
      ->check(CLI::PositiveNumber);
  app.add_flag("--measure-peak", o.measurePeak, "Measure it with a matmul")
      ->excludes("--peak-tflops");
  app.add_flag("--profile", o.profile, "Print time per instruction");
  app.add_flag("--validate-only", o.validateOnly,
               "Check the plan, run nothing");
}
} // namespace

int main(int argc, char **argv) {
  meshwork::runtime::RunOptions options;
  bool noPin = false;
  CLI::App app(
      "Runs a Meshwork plan: all its ranks in this process, or, started by "
      "mpirun or srun, one rank in each.",
      "meshwork-run");
  app.add_option("PLAN", options.plan, "A file that `meshwork compile` wrote")
      ->required();
  addTraining(app, options);
  addFiles(app, options);
  addMachine(app, options, noPin);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  options.pin = !noPin;
  options.stop = &stopRequested;
  handleSignals();
  absl::Status status = meshwork::runtime::run(options);
  std::fflush(stdout);
  if (!status.ok() && !meshwork::runtime::isToldElsewhere(status))
    std::fprintf(stderr, "meshwork-run: error: %s\n",
                 std::string(status.message()).c_str());
  std::fflush(stderr);
  // Not `return`: a rank that hangs is a thread that would be waited for.
  meshwork::runtime::endProcess(status);
}
