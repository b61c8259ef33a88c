// meshwork-run: runs a plan. Options in, exit code out; see Run.h.
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Runtime/Run.h"
#include "meshwork/Text/Escape.h"
#include "runtime/io/Streams.h"
#include "tools/cli/Cli.h"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace {
namespace cli = meshwork::cli;
using meshwork::runtime::ExitCode;
using Transport = meshwork::runtime::RunOptions::Transport;
using Shape = meshwork::runtime::LearningRate::Shape;

std::atomic<int> stopSignal{0};

/// First signal: end after this step. Second: end now.
void onSignal(int signal) {
  if (stopSignal.exchange(signal) != 0)
    _exit(128 + signal);
}

void handleSignals() {
  struct sigaction action = {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction before = {};
  sigaction(SIGHUP, &action, &before);
  if (before.sa_handler == SIG_IGN) // by nohup
    signal(SIGHUP, SIG_IGN);
  // What cannot be written is an error of that call, and must not kill a run
  // that has weights to save: a closed pipe, a file at its largest size.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

/// `option` does nothing without the other one.
CLI::Option *needs(CLI::Option *option, CLI::App &app, const char *other) {
  return option->needs(app.get_option(other));
}

void addData(CLI::App &app, meshwork::runtime::RunOptions &o) {
  auto ofData = [&](CLI::Option *option) {
    return needs(option, app, "--data");
  };
  app.add_option("--steps", o.steps, "Optimizer steps; 0 only places weights")
      ->transform(cli::wholeNumber(0, INT32_MAX))
      ->type_name("N");
  needs(app.add_option("--data", o.data,
                       "Tokens: llm.c .bin, Megatron .bin/.idx, raw ids, or "
                       "text"),
        app, "--steps")
      ->type_name("FILE");
  using Names = std::map<std::string, std::string>;
  ofData(cli::addChoice(app, "--data-type", o.dataType,
                        Names{{"u16", "u16"}, {"u32", "u32"}},
                        "Type of raw ids"));
  ofData(cli::addChoice(app, "--tokenizer", o.tokenizer,
                        Names{{"bytes", "bytes"}}, "For a text: token = byte"))
      ->excludes("--data-type");
  auto marks = [&](const char *name, std::optional<uint32_t> &id,
                   const char *text) {
    return ofData(app.add_option(name, id, text))
        ->transform(cli::wholeNumber(0, UINT32_MAX))
        ->type_name("ID");
  };
  marks("--document-begin", o.documentBegin,
        "Token that each document begins with, for a plan of "
        "batch.documents = \"separate\"");
  marks("--document-end", o.documentEnd,
        "The same for a token that each document ends with")
      ->excludes("--document-begin");
}

void addTraining(CLI::App &app, meshwork::runtime::RunOptions &o) {
  static const std::map<std::string, Shape> shapes = {
      {"constant", Shape::constant},
      {"cosine", Shape::cosine},
      {"linear", Shape::linear}};
  auto ofSteps = [&](CLI::Option *option) {
    return needs(option, app, "--steps");
  };
  auto steps = [](CLI::Option *option, int64_t least) {
    return option->transform(cli::wholeNumber(least, INT32_MAX))
        ->type_name("N");
  };
  app.add_option("--seed", o.seed, "Of initial weights, samples and dropout")
      ->transform(cli::wholeNumber(0, UINT32_MAX))
      ->type_name("N");
  ofSteps(app.add_option("--lr", o.learningRate.rate, "Learning rate"))
      ->check(cli::numberFromZero())
      ->type_name("RATE")
      ->capture_default_str();
  ofSteps(cli::addChoice(app, "--schedule", o.learningRate.shape, shapes,
                         "Of the learning rate after the warmup"))
      ->default_str("constant");
  needs(app.add_option("--min-lr", o.learningRate.minimum,
                       "Where a decay (cosine, linear) ends, at its last "
                       "step"),
        app, "--schedule")
      ->check(cli::numberFromZero())
      ->type_name("RATE");
  steps(ofSteps(app.add_option("--warmup-steps", o.learningRate.warmupSteps,
                               "Steps of linear rise")),
        0);
  steps(needs(app.add_option("--decay-steps", o.learningRate.decaySteps,
                             "Steps, warmup included, of which the last has "
                             "--min-lr; default: --steps"),
              app, "--schedule"),
        1);
}

void addFiles(CLI::App &app, meshwork::runtime::RunOptions &o) {
  auto file = [&](const char *name, std::string &path, const char *text) {
    return app.add_option(name, path, text)->type_name("FILE");
  };
  auto ofSteps = [&](const char *name, std::string &path, const char *text) {
    needs(file(name, path, text), app, "--steps");
  };
  file("--init", o.init,
       "Start from these safetensors: a file, an index, or a folder (also a "
       "snapshot of the Hugging Face Hub)");
  file("--save", o.save, "Write the weights at the end, f32 safetensors");
  ofSteps("--save-gradients", o.saveGradients,
          "Write the last step's gradients: the mean over the step's tokens, "
          "not clipped");
  ofSteps("--metrics", o.metrics, "Append a JSON line per step to this log");
  ofSteps("--trace", o.trace, "Write a Chrome trace");
  ofSteps("--profile-json", o.profileJson,
          "Write time per instruction as JSON");
  needs(app.add_option("--trace-steps", o.traceSteps,
                       "Trace this many first steps"),
        app, "--trace")
      ->transform(cli::wholeNumber(1, INT32_MAX))
      ->type_name("N")
      ->capture_default_str();
}

void addGpu(CLI::App &app, meshwork::runtime::RunOptions &o) {
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
}

void addMachine(CLI::App &app, meshwork::runtime::RunOptions &o, bool &noPin) {
  static const std::map<std::string, Transport> transports = {
      {"auto", Transport::automatic},
      {"threads", Transport::threads},
      {"mpi", Transport::mpi}};
  app.add_option("-n,--ranks", o.ranks, "Must be equal to the plan's ranks")
      ->transform(cli::wholeNumber(1, INT32_MAX))
      ->type_name("N");
  cli::addChoice(app, "--transport", o.transport, transports,
                 "auto (as launched), threads (all ranks here) or mpi")
      ->default_str("auto");
  app.add_option("--threads", o.threads,
                 "Threads per rank; default: cores / ranks")
      ->transform(cli::wholeNumber(1, 4096))
      ->type_name("N");
  app.add_flag("--no-pin", noPin, "Leave threads to the system's scheduler");
  app.add_option("--timeout", o.timeoutSeconds,
                 "Wait at most so long for a rank, or for a GPU's work to end; "
                 "time that a disk takes does not count")
      ->check(cli::positiveNumber())
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_flag("--validate-only", o.validateOnly,
               "Check the plan and the machine, run nothing");
}

void addReport(CLI::App &app, meshwork::runtime::RunOptions &o) {
  needs(app.add_option("--log-every", o.logEvery,
                       "Steps between lines, off a terminal"),
        app, "--steps")
      ->transform(cli::wholeNumber(1, INT32_MAX))
      ->type_name("N");
  needs(app.add_option("--peak-tflops", o.peakTflops,
                       "Peak of all ranks together, for mfu"),
        app, "--steps")
      ->check(cli::positiveNumber())
      ->type_name("TFLOPS");
  needs(app.add_flag("--measure-peak", o.measurePeak,
                     "Measure it with a matmul on each rank"),
        app, "--steps")
      ->excludes("--peak-tflops");
  needs(app.add_flag("--profile", o.profile, "Print time per instruction"), app,
        "--steps");
}
} // namespace

int main(int argc, char **argv) {
  meshwork::runtime::startTool();
  meshwork::runtime::RunOptions options;
  bool noPin = false;
  CLI::App app(
      "Runs a Meshwork plan: all its ranks in this process, or, started by "
      "mpirun or srun, one rank in each.",
      "meshwork-run");
  app.add_option("PLAN", options.plan, "A file that `meshwork compile` wrote")
      ->required()
      ->type_name("");
  addData(app, options);
  addTraining(app, options);
  addFiles(app, options);
  addMachine(app, options, noPin);
  addGpu(app, options);
  addReport(app, options);
  if (std::optional<int> code = meshwork::cli::parse(app, argc, argv))
    return *code;
  options.pin = !noPin;
  options.stop = &stopSignal;
  handleSignals();
  absl::Status status = meshwork::runtime::run(options);
  std::fflush(stdout);
  if (!status.ok() && !meshwork::runtime::isToldElsewhere(status))
    std::fprintf(stderr, "meshwork-run: %s%s\n",
                 absl::IsCancelled(status) ? "" : "error: ",
                 meshwork::printable(std::string(status.message())).c_str());
  std::fflush(stderr);
  // Not `return`: a rank that hangs is a thread that would be waited for.
  meshwork::runtime::endProcess(status);
}
