// meshwork compile | import | explain | report | simulate | verify | schedule |
// tune | checkpoint: what a user types.
#include "lib/Spec/Diagnostic.h"
#include "lib/Spec/ScheduleNames.h"
#include "runtime/io/Streams.h"
#include "tools/cli/Cli.h"
#include "tools/meshwork/driver/Checkpoints.h"
#include "tools/meshwork/driver/Compile.h"
#include "tools/meshwork/driver/Export.h"
#include "tools/meshwork/driver/Files.h"
#include "tools/meshwork/driver/Inspect.h"
#include "tools/meshwork/driver/Schedule.h"
#include "tools/meshwork/driver/Simulate.h"
#include "tools/meshwork/driver/Tokenize.h"
#include "tools/meshwork/driver/VerifyRun.h"
#include "tools/meshwork/driver/WriteReport.h"
#include "tools/meshwork/tune/Tune.h"

namespace {
using namespace meshwork::driver;

/// Below the options of a command, and of the tool itself.
constexpr const char *toolExamples = R"(Examples:
  meshwork compile config.json --spec spec.toml -o model.mwplan
  meshwork explain model.mwplan
  meshwork schedule zb-h1 --stages 4 --microbatches 8
  meshwork COMMAND --help tells the options of a command)";
constexpr const char *compileExamples = R"(Examples:
  meshwork compile config.json --spec spec.toml -o model.mwplan
  meshwork compile config.json --spec spec.toml --set batch.micro=8 --set 'mesh.axes=["dp=4"]' -o model.mwplan
  meshwork compile config.json --spec spec.toml --print-config
  meshwork compile model.mlir --spec spec.toml --compile-to=schedule -o schedule.mlir
  meshwork compile config.json --spec spec.toml --estimate)";
constexpr const char *tokenizeExamples = R"(Examples:
  meshwork tokenize tokenizer.json books.jsonl -o books.bin
  meshwork tokenize tokenizer.json questions.jsonl -o tuning.bin --prompt question --answer answer
  meshwork tokenize tokenizer.json *.txt -o texts.bin --end-of-document '<|endoftext|>'

It runs a program in Python: python3, or what MESHWORK_PYTHON names.)";
constexpr const char *explainExamples = R"(Examples:
  meshwork explain model.mwplan
  meshwork explain model.mwplan model.embed_tokens.weight
  meshwork explain model.mwplan 'model.layers.*.mlp.up_proj.weight' --json
  meshwork explain model.mwplan --measured trace.json)";
constexpr const char *reportExamples = R"(Examples:
  meshwork report model.mwplan -o report.html
  meshwork-run model.mwplan --data FILE --steps 20 --trace trace.json --metrics metrics.jsonl
  meshwork report model.mwplan --trace trace.json --metrics metrics.jsonl -o report.html)";
constexpr const char *simulateExamples = R"(Examples:
  meshwork simulate model.mwplan
  meshwork simulate model.mwplan --machine h200x8 --trace planned.json
  meshwork simulate model.mwplan --set link.between_nodes.bandwidth=12.5e9 --set nodes.jitter=0.02
  meshwork simulate model.mwplan --costs measured.toml
  meshwork simulate model.mwplan --set failures.hours=6300 --set storage.bandwidth=100e9)";
constexpr const char *verifyExamples = R"(Examples:
  meshwork verify model.mwplan
  meshwork verify config.json --spec spec.toml --by-running)";
constexpr const char *scheduleExamples = R"(Examples:
  meshwork schedule zb-h1 --stages 4 --microbatches 8
  meshwork schedule own.csv --costs costs.toml --svg own.svg
  meshwork schedule auto --stages 4 --microbatches 8 --memory 6 --transfers --in-order)";

constexpr const char *tuneExamples = R"(Examples:
  meshwork tune config.json --ranks 64 --machine h100x8 --global 512 --sequence 8192 -o best.toml
  meshwork tune config.json --ranks 64,128,256 --machine h100x8 --global 512 --sequence 8192
  meshwork tune config.json --ranks 64 --machine h100x8 --global 512 --sequence 8192 --axis tp=8 --fixed zero.stage=1)";

void addCompile(CLI::App &app, CompileOptions &options) {
  CLI::App *command =
      app.add_subcommand("compile", "Compile a model and a spec to a plan");
  command->footer(compileExamples);
  command->add_option("model", options.model,
                      "a model (.mlir), a Hugging Face config.json, or the "
                      "folder of a repository or of a Hub snapshot");
  command
      ->add_option("--spec", options.spec,
                   "mesh, batch and all else, a TOML file")
      ->required();
  command->add_option("-o,--output", options.output,
                      "the plan to write (- is stdout)");
  command
      ->add_option("--set", options.overrides,
                   "override a key of the spec: section.key=value")
      ->allow_extra_args(false);
  CLI::Option *estimate = command->add_flag(
      "--estimate", options.estimate,
      "print what the plan should take on its machine, in the words of "
      "explain, and make no code");
  command->add_flag("--json", options.json, "the estimate as JSON")
      ->needs(estimate);
  command
      ->add_option(
          "--compile-to", options.compileTo,
          "stop after a phase (input, step, shard, partition, "
          "pipeline, recompute, fuse, schedule, memory) and print the IR")
      ->excludes(estimate)
      ->group("Looking inside");
  command
      ->add_option("--dump-phases", options.dumpPhases,
                   "a folder for the IR after each phase")
      ->group("Looking inside");
  command
      ->add_option("--reproducer", options.reproducer,
                   "where a failed compilation is written (default: "
                   "OUTPUT.reproducer.mlir)")
      ->group("Looking inside");
  command
      ->add_option("--with-cpu-code", options.cpuCode,
                   "in a plan for GPUs also code for this CPU (native, "
                   "x86-64-v3, x86-64-v4): meshwork-run --compare-cpu")
      ->excludes(estimate);
  command
      ->add_flag(
          "--print-config", options.printConfig,
          "print the effective spec with the origin of each value, and stop")
      ->excludes(estimate)
      ->group("Looking inside");
  command
      ->add_flag("--dump-pass-pipeline", options.dumpPassPipeline,
                 "print the passes of each phase")
      ->group("Looking inside");
  command->add_flag("--timing", options.timing, "print the time of each phase")
      ->group("Looking inside");
  command->callback([&options] {
    if (options.printConfig)
      return;
    if (options.model.empty())
      throw CLI::RequiredError("model");
    if (options.output.empty() && options.compileTo.empty() &&
        !options.estimate)
      throw CLI::RequiredError("--output");
  });
}

void addExplain(CLI::App &app, ExplainOptions &options) {
  CLI::App *command = app.add_subcommand(
      "explain", "Tell what a plan holds, or why a value is where it is");
  command->footer(explainExamples);
  command->add_option("plan", options.plan, "a plan")->required();
  CLI::Option *value = command->add_option(
      "value", options.value,
      "a parameter or buffer: its name, the end of it, or a "
      "pattern with * and ?, which tells all that it matches");
  CLI::Option *json =
      command->add_flag("--json", options.json, "one JSON object");
  CLI::Option *schedule =
      command->add_flag("--schedule", options.schedule, "each instruction too")
          ->excludes(json);
  command
      ->add_option("--measured", options.measured,
                   "a trace of meshwork-run --trace: its times beside those "
                   "that were planned")
      ->excludes(value)
      ->excludes(schedule);
  command->add_option("--svg", options.svg,
                      "also draw the pipeline: an SVG file (- is stdout)");
}

CLI::App *addReport(CLI::App &app, ReportOptions &options) {
  CLI::App *command = app.add_subcommand(
      "report", "Show a plan and a run of it as one HTML page");
  command->footer(reportExamples);
  command->add_option("plan", options.plan, "a plan")->required();
  command->add_option("--trace", options.trace,
                      "a trace of meshwork-run --trace: its times beside those "
                      "that were planned");
  command->add_option("--metrics", options.metrics,
                      "the lines of meshwork-run --metrics: curves of loss and "
                      "speed");
  command
      ->add_option("-o,--output", options.output,
                   "the page to write (- is stdout)")
      ->required();
  return command;
}

CLI::App *addSimulate(CLI::App &app, SimulateOptions &options) {
  CLI::App *command = app.add_subcommand(
      "simulate", "Tell what a plan's step takes on a machine, and a month");
  command->footer(simulateExamples);
  command->add_option("plan", options.plan, "a plan")->required();
  command
      ->add_option("--machine", options.machine,
                   "the name of a machine, or a machine file (default: the "
                   "plan's own)")
      ->check(meshwork::cli::notEmpty());
  command
      ->add_option("--set", options.overrides,
                   "override a key of the machine: section.key=value")
      ->allow_extra_args(false);
  command
      ->add_option("--costs", options.costs,
                   "a TOML file of seconds of a pipeline's actions, instead of "
                   "what they take on the machine: forward, input_grad, "
                   "weight_grad, transfer, a number each or a list with one "
                   "for each virtual stage")
      ->check(meshwork::cli::notEmpty());
  command->add_option("--trace", options.trace,
                      "write the step for ui.perfetto.dev (- is stdout, "
                      "with nothing else on it)");
  command->add_flag("--json", options.json, "one JSON object");
  return command;
}

CLI::App *addVerify(CLI::App &app, std::string &subject, bool &byRunning,
                    VerifyRunOptions &options) {
  CLI::App *command = app.add_subcommand(
      "verify", "Check a plan as the launcher does, or what a spec computes");
  command->footer(verifyExamples);
  command
      ->add_option("subject", subject,
                   "a plan; with --by-running a model, as of compile")
      ->required();
  CLI::Option *run = command->add_flag(
      "--by-running", byRunning,
      "make the model and the spec small, run all ranks and one rank in double "
      "precision, and compare loss, gradients and all states");
  CLI::Option *spec =
      command->add_option("--spec", options.spec, "the spec, a TOML file");
  spec->needs(run);
  run->needs(spec);
  command
      ->add_option("--set", options.overrides,
                   "override a key of the spec: section.key=value")
      ->allow_extra_args(false)
      ->needs(run);
  return command;
}

CLI::App *addTokenize(CLI::App &app, TokenizeOptions &options) {
  CLI::App *command = app.add_subcommand(
      "tokenize", "Turn text into tokens to train on, by a tokenizer.json");
  command->footer(tokenizeExamples);
  command->add_option("tokenizer", options.tokenizer, "the tokenizer.json")
      ->required();
  command
      ->add_option("text", options.text,
                   "files: .jsonl, a document a line, or .txt, one each")
      ->required();
  command
      ->add_option("-o,--output", options.output,
                   "the .bin to write, with an .idx and a .json beside it")
      ->required();
  CLI::Option *field =
      command
          ->add_option("--field", options.field, "of .jsonl: what has the text")
          ->capture_default_str();
  CLI::Option *prompt = command->add_option(
      "--prompt", options.prompt,
      "of .jsonl: what has a prompt, whose tokens count as no targets");
  CLI::Option *answer = command->add_option(
      "--answer", options.answer,
      "what has its answer, whose tokens do: .mask.bin tells them apart");
  prompt->needs(answer)->excludes(field)->check(meshwork::cli::notEmpty());
  answer->needs(prompt)->check(meshwork::cli::notEmpty());
  command->add_option("--end-of-document", options.endOfDocument,
                      "a token to put behind each document");
  return command;
}

CLI::App *addSchedule(CLI::App &app, ScheduleOptions &options) {
  CLI::App *command = app.add_subcommand(
      "schedule", "Make or read a pipeline's schedule, judge and simulate it");
  command->footer(scheduleExamples);
  command
      ->add_option("schedule", options.source,
                   meshwork::spec::listOfWords<meshwork::spec::Schedule>() +
                       ", or a CSV file")
      ->required();
  auto addCount = [&](const char *option, int32_t &value, const char *text) {
    command->add_option(option, value, text)
        ->transform(meshwork::cli::wholeNumber(1, INT32_MAX));
  };
  addCount("--stages", options.stages, "ranks of the pipeline");
  addCount("--microbatches", options.microbatches, "microbatches of a step");
  addCount("--virtual", options.virtualStages,
           "virtual stages on each rank (default: the schedule's own; of auto "
           "the best of 1, 2 and 4)");
  command->add_option("--costs", options.costs,
                      "a TOML file: forward, input_grad, weight_grad, "
                      "transfer (default: 1, 1, 1, 0)");
  command
      ->add_option("--memory", options.memory,
                   "the most microbatches that a rank may keep at once, "
                   "counted in virtual stages (of auto without --virtual in "
                   "ranks' whole shares)")
      ->check(meshwork::cli::positiveNumber());
  command
      ->add_option("--stash", options.stash,
                   "the part of a microbatch's activations that W needs after "
                   "I, for --memory (default: 1)")
      ->check(meshwork::cli::numberFromZero());
  command->add_flag("--transfers", options.transfers,
                    "add SEND and RECV between ranks");
  command->add_flag("--in-order", options.inOrder,
                    "refuse a table that hangs where a rank's transfers "
                    "complete one after another, as on a GPU's stream (65)");
  command->add_option("--csv", options.csv, "write the table (- is stdout)");
  command->add_option("--svg", options.svg, "write a picture (- is stdout)");
  command->add_flag("--json", options.json, "one JSON object");
  return command;
}

CLI::App *addTune(CLI::App &app, meshwork::tune::TuneOptions &options) {
  CLI::App *command = app.add_subcommand(
      "tune", "Find the spec with the fastest step on so many ranks");
  command->footer(tuneExamples);
  command
      ->add_option("model", options.model,
                   "a model (.mlir), a Hugging Face config.json, or the "
                   "folder of a repository or of a Hub snapshot")
      ->required();
  command
      ->add_option("--ranks", options.ranks,
                   "how many ranks; of several numbers, each is searched once")
      ->required()
      ->delimiter(',')
      ->transform(meshwork::cli::wholeNumber(1, 1 << 20));
  command
      ->add_option("--machine", options.machine,
                   "what time is estimated for, as target.machine of a spec")
      ->required()
      ->check(meshwork::cli::notEmpty());
  auto addCount = [&](const char *option, uint32_t &value, const char *text) {
    command->add_option(option, value, text)
        ->required()
        ->transform(meshwork::cli::wholeNumber(1, INT32_MAX));
  };
  addCount("--global", options.global, "sequences of a step: batch.global");
  addCount("--sequence", options.sequence,
           "tokens of a sequence: batch.sequence");
  command
      ->add_option("--fixed", options.fixed,
                   "a key of the spec that is not searched: section.key=value; "
                   "specs in which it has no meaning do without it")
      ->allow_extra_args(false);
  command
      ->add_option("--axis", options.axes,
                   "the size of an axis (pp, dp, fsdp, ep, cp, tp), like dp=8")
      ->allow_extra_args(false);
  using meshwork::tune::Offload;
  meshwork::cli::addChoice<Offload>(
      *command, "--offload", options.offload,
      {{"auto", Offload::automatic},
       {"always", Offload::always},
       {"never", Offload::never}},
      "whether states of the optimizer and what layers keep may lie in the "
      "host's memory: where nothing fits without, wherever it may be faster "
      "(takes longer), or not at all")
      ->default_str("auto");
  command
      ->add_option_function<std::string>(
          "--within",
          [&options](const std::string &text) {
            options.within = std::stod(text) / 100;
          },
          "also list all specs that take at most so many percent longer than "
          "the best, like 5%")
      ->check(CLI::Validator(
          [](std::string &text) {
            if (text.ends_with("%"))
              text.pop_back();
            return meshwork::cli::numberFromZero()(text);
          },
          ""));
  command->add_option("-o,--output", options.output,
                      "the spec to write, TOML; of several numbers of ranks "
                      "one each: best.toml becomes best-64.toml");
  command
      ->add_option("--measure", options.measured,
                   "run so many of the best on the ranks that are here, for "
                   "some steps each; the fastest is the best then")
      ->transform(meshwork::cli::wholeNumber(1, 1000));
  command
      ->add_option("--cache", options.cache,
                   "a file that keeps what was compiled, for the next search")
      ->check(meshwork::cli::notEmpty());
  command->add_flag("--json", options.json, "one JSON object");
  return command;
}

/// `checkpoint` has commands of its own.
struct CheckpointOptions {
  CLI::App *command = nullptr;
  std::string folder; // of inspect and verify
  bool json = false;
  ExportOptions exported;
};

void addExport(CLI::App &app, ExportOptions &options) {
  CLI::App *command = app.add_subcommand(
      "export", "Write the weights as Hugging Face repositories have them");
  command
      ->add_option("checkpoint", options.checkpoint,
                   "a checkpoint, or the folder of all: the newest")
      ->required();
  command
      ->add_option("-o,--output", options.output,
                   "the folder to make: config.json and safetensors")
      ->required();
  command->add_option("--dtype", options.dtype, "f32, bf16 or f16")
      ->capture_default_str();
  command
      ->add_option("--max-shard-size", options.maxShardSize,
                   "of one safetensors file")
      ->capture_default_str();
  command->add_option("--config", options.config,
                      "the config.json to go by, of a model that was written "
                      "or changed by hand");
}

void addCheckpoint(CLI::App &app, CheckpointOptions &options) {
  options.command = app.add_subcommand(
      "checkpoint", "Look at what a run has saved, check it, export it");
  options.command->require_subcommand(1);
  auto add = [&](const char *name, const char *text) {
    CLI::App *command = options.command->add_subcommand(name, text);
    command
        ->add_option("checkpoint", options.folder,
                     "a checkpoint, or the folder of all")
        ->required();
    return command;
  };
  add("inspect", "Tell what is there: steps, tensors, states, options")
      ->add_flag("--json", options.json, "one JSON object");
  add("verify", "Read and hash every byte");
  addExport(*options.command, options.exported);
}

int runCheckpoint(const CheckpointOptions &options) {
  if (options.command->got_subcommand("inspect"))
    return inspectCheckpoints(options.folder, options.json);
  if (options.command->got_subcommand("verify"))
    return verifyCheckpoints(options.folder);
  return exportCheckpoint(options.exported);
}

/// CLI11 says only that a command is missing.
bool namesCommand(const CLI::App &app, int argc, char **argv) {
  if (argc < 2 || argv[1][0] == '-')
    return true;
  std::vector<std::string> names;
  for (const CLI::App *command :
       app.get_subcommands([](const CLI::App *) { return true; }))
    names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end())
    return true;
  std::string expected;
  for (const std::string &name : names)
    expected += (expected.empty() ? "" : ", ") + name;
  report(absl::InvalidArgumentError(
      "unknown command " + meshwork::quote(argv[1]) +
      ", expected one of: " + expected + meshwork::suggestion(argv[1], names)));
  return false;
}
} // namespace

int main(int argc, char **argv) {
  meshwork::runtime::startTool();
  CLI::App app("A declarative graph compiler for parallel transformer training",
               "meshwork");
  app.require_subcommand(1);
  app.footer(toolExamples);
  CompileOptions compileOptions;
  addCompile(app, compileOptions);
  std::string config, output, plan;
  CLI::App *import = app.add_subcommand(
      "import", "Turn a Hugging Face config.json into a model");
  import->add_option("config", config, "the config.json, or a folder with it")
      ->required();
  import->add_option("-o,--output", output,
                     "the .mlir to write (default: stdout)");
  ExplainOptions explainOptions;
  addExplain(app, explainOptions);
  ReportOptions reportOptions;
  CLI::App *reporting = addReport(app, reportOptions);
  SimulateOptions simulateOptions;
  CLI::App *simulating = addSimulate(app, simulateOptions);
  VerifyRunOptions verifyOptions;
  bool byRunning = false;
  CLI::App *verify = addVerify(app, plan, byRunning, verifyOptions);
  ScheduleOptions scheduleOptions;
  CLI::App *schedules = addSchedule(app, scheduleOptions);
  TokenizeOptions tokenizeOptions;
  CLI::App *tokens = addTokenize(app, tokenizeOptions);
  meshwork::tune::TuneOptions tuneOptions;
  CLI::App *tuning = addTune(app, tuneOptions);
  CheckpointOptions checkpointOptions;
  addCheckpoint(app, checkpointOptions);
  if (!namesCommand(app, argc, argv))
    return usage;
  if (std::optional<int> code = meshwork::cli::parse(app, argc, argv))
    return *code;
  if (import->parsed())
    return importModel(config, output);
  if (verify->parsed()) {
    verifyOptions.model = plan;
    return byRunning ? verifyByRunning(verifyOptions) : verifyPlan(plan);
  }
  if (reporting->parsed())
    return writeReport(reportOptions);
  if (simulating->parsed())
    return simulatePlan(simulateOptions);
  if (schedules->parsed())
    return schedule(scheduleOptions);
  if (tokens->parsed())
    return tokenize(tokenizeOptions);
  if (tuning->parsed())
    return meshwork::tune::tune(tuneOptions);
  if (checkpointOptions.command->parsed())
    return runCheckpoint(checkpointOptions);
  return app.got_subcommand("explain") ? explainPlan(explainOptions)
                                       : compile(compileOptions);
}
