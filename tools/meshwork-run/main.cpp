// meshwork-run: runs a plan. Options in, exit code out; see Run.h.
#include "lib/Cost/PlanPeak.h"
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Runtime/Run.h"
#include "meshwork/Text/Escape.h"
#include "runtime/io/Streams.h"
#include "runtime/rank/OptionTable.h"
#include "tools/cli/Cli.h"
#include "tools/meshwork-run/HostOrder.h"
#include "tools/meshwork-run/MachineFile.h"
#include "tools/meshwork-run/SelfTestReport.h"
#include "tools/meshwork-run/Supervise.h"
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <unistd.h>

namespace {
namespace cli = meshwork::cli;
using meshwork::runtime::OptionChoice;
using meshwork::runtime::OptionRow;
using Transport = meshwork::runtime::RunOptions::Transport;
using Shape = meshwork::runtime::LearningRate::Shape;

std::atomic<int> stopSignal{0};
meshwork::StopRequests stopRequests;

/// First request: end after this step. Second: end now.
void onSignal(int signal) {
  int none = 0;
  stopSignal.compare_exchange_strong(none, signal);
  if (stopRequests.isSecond())
    _exit(128 + signal);
}

std::atomic<int> saveRequests{0};

void handleSignals() {
  struct sigaction save = {};
  save.sa_handler = [](int) { ++saveRequests; };
  save.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &save, nullptr);
  struct sigaction action = {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction before = {};
  sigaction(SIGHUP, &action, &before);
  if (before.sa_handler == SIG_IGN) // by nohup
    signal(SIGHUP, SIG_IGN);
  // Writing to a closed pipe, or past the largest size of a file, is an error
  // of that call. It must not kill a run that has weights to save.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

/// Makes an option of the command line of a row of the table.
struct Adder {
  CLI::App &app;
  const OptionRow &row;

  CLI::Option *operator()(bool *flag) const {
    return app.add_flag_callback(
        row.name, [flag, given = !*flag] { *flag = given; }, row.help);
  }
  CLI::Option *operator()(double *number) const {
    return app.add_option(row.name, *number, row.help)
        ->check(cli::numberThat(
            [&row = row](double value) { return isAllowed(row, value); },
            allowedNumbers(row)));
  }
  CLI::Option *operator()(std::string *text) const {
    if (row.choices.empty())
      return app.add_option(row.name, *text, row.help)->check(cli::notEmpty());
    CLI::Option *option =
        addChoice(*text, [](const OptionChoice &one) { return one.name; });
    return text->empty() ? option : option->default_str(*text);
  }
  /// A value each time that it is given.
  CLI::Option *operator()(std::vector<std::string> *texts) const {
    return app.add_option(row.name, *texts, row.help)
        ->check(cli::notEmpty())
        ->allow_extra_args(false);
  }
  CLI::Option *operator()(Shape *shape) const { return addEnum(*shape); }
  CLI::Option *operator()(Transport *transport) const {
    return addEnum(*transport);
  }
  template <typename Whole> CLI::Option *operator()(Whole *number) const {
    return app.add_option(row.name, *number, row.help)
        ->transform(cli::wholeNumber(row.least, row.most));
  }

  template <typename T, typename ValueOf>
  CLI::Option *addChoice(T &value, ValueOf valueOf) const {
    std::map<std::string, T> values;
    for (const OptionChoice &one : row.choices)
      values[one.name] = valueOf(one);
    return cli::addChoice(app, row.name, value, values, row.help);
  }
  template <typename Enum> CLI::Option *addEnum(Enum &value) const {
    auto valueOf = [](const OptionChoice &one) {
      return static_cast<Enum>(one.value);
    };
    CLI::Option *option = addChoice(value, valueOf);
    for (const OptionChoice &one : row.choices)
      if (valueOf(one) == value)
        option->default_str(one.name);
    return option;
  }
};

void addOptions(CLI::App &app, meshwork::runtime::RunOptions &options) {
  for (const OptionRow &row : meshwork::runtime::optionTable()) {
    CLI::Option *option = std::visit(Adder{app, row}, row.field(options));
    option->group(row.group);
    if (*row.valueName)
      option->type_name(row.valueName);
    if (row.showsDefault && row.choices.empty())
      option->capture_default_str();
    if (row.needs && !row.orNeeds)
      option->needs(app.get_option(row.needs));
    if (row.excludes)
      option->excludes(row.excludes);
  }
}

/// Of those that need one option or another: as the others, once all are known.
void checkNeeds(const CLI::App &app) {
  for (const OptionRow &row : meshwork::runtime::optionTable())
    if (row.orNeeds && app.count(row.name) > 0 && app.count(row.needs) == 0 &&
        app.count(row.orNeeds) == 0)
      throw CLI::RequiresError(row.name,
                               std::string(row.needs) + " or " + row.orNeeds);
}

constexpr const char *deviceOption = "--measure-device";

/// What stands in the place of a plan, with the options that it takes.
struct Instead {
  const char *name, *help;
  std::set<std::string> fine;
  std::function<absl::Status(const std::string &path,
                             const meshwork::runtime::RunOptions &options)>
      run;
  std::string path = {}; // of the file to write; "": it is not asked for
};

absl::Status measure(bool onGpus, const std::string &path,
                     const meshwork::runtime::RunOptions &options) {
  return onGpus ? meshwork::measureGpusTo(path, options)
                : meshwork::measureMachineTo(path, options);
}

std::vector<Instead> allInstead(const bool &onGpus) {
  const std::set<std::string> ofMachine = {
      "--transport", "--interface", "--threads", "--no-pin", "--timeout"};
  std::set<std::string> ofTest = ofMachine;
  ofTest.insert({"--ranks", "--share-gpu"});
  std::set<std::string> ofMeasuring = ofMachine;
  ofMeasuring.insert(deviceOption);
  return {{"--measure-machine",
           "Instead of a plan: measure this machine and write a machine file "
           "for target.machine",
           ofMeasuring,
           [&](auto &path, auto &options) {
             return measure(onGpus, path, options);
           }},
          {"--self-test",
           "Instead of a plan: try links, work, collectives and five plans on "
           "all ranks, and write a report with nothing private in it",
           ofTest, meshwork::selfTestTo}};
}

void addInstead(CLI::App &app, CLI::Option *plan, Instead &instead) {
  app.add_option_function<std::string>(
         instead.name,
         [plan, &instead](const std::string &given) {
           instead.path = given;
           plan->required(false);
         },
         instead.help)
      ->type_name("FILE")
      ->group("The machine");
}

/// Beside --measure-machine. Alone it is told to lack that, not a plan.
void addDevice(CLI::App &app, CLI::Option *plan, bool &onGpus) {
  meshwork::cli::addChoice<bool>(
      app, deviceOption, onGpus, {{"cpu", false}, {"cuda", true}},
      "What to measure: the cores of this machine, or NVIDIA GPUs: all that "
      "this process sees, under mpirun one a rank")
      ->default_str("cpu")
      ->each([plan](const std::string &) { plan->required(false); })
      ->needs(app.get_option("--measure-machine"))
      ->group("The machine");
}

/// GPUs are measured by one thread each, wherever it runs.
void checkDevice(const CLI::App &app, bool onGpus) {
  for (const char *option : {"--threads", "--no-pin"})
    if (onGpus && app.count(option) > 0)
      throw CLI::ExcludesError(std::string(deviceOption) + " cuda", option);
}

/// Said here, not by each option: `--help` would repeat it for all of them.
void checkInstead(const CLI::App &app, const CLI::Option *plan,
                  const Instead &instead) {
  if (instead.path.empty())
    return;
  for (const CLI::Option *option : app.get_options())
    if (!option->empty() && option->get_name() != instead.name &&
        (option == plan || !instead.fine.contains(option->get_name())))
      throw CLI::ExcludesError(instead.name, option->get_name());
}

constexpr const char *examples = R"(Examples:
  meshwork-run tiny.mwplan --data tokens.bin --steps 1000 --lr 3e-4 --schedule cosine --warmup-steps 50
  meshwork-run tiny.mwplan --data text --tokenizer bytes --steps 20 --metrics metrics.jsonl --save weights.safetensors
  meshwork-run tiny.mwplan --data tokens.bin --steps 1000 --checkpoint run --checkpoint-every 100 --resume auto
  mpirun -n 2 meshwork-run tiny.mwplan --data tokens.bin --steps 1000
  meshwork-run --measure-machine here.toml
  meshwork-run --measure-machine gpus.toml --measure-device cuda
  mpirun -n 2 meshwork-run --self-test report.json)";
} // namespace

int main(int argc, char **argv) {
  handleSignals(); // first: until then SIGUSR1 kills
  meshwork::runtime::startTool();
  meshwork::runtime::RunOptions options;
  CLI::App app(
      "Runs a Meshwork plan: all its ranks in this process, or, started by "
      "mpirun or srun, one rank in each.",
      "meshwork-run");
  CLI::Option *plan = app.add_option("PLAN", options.plan,
                                     "A file that `meshwork compile` wrote");
  plan->required()->type_name("");
  addOptions(app, options);
  app.footer(examples);
  bool onGpus = false;
  std::vector<Instead> instead = allInstead(onGpus);
  for (Instead &one : instead)
    addInstead(app, plan, one);
  addDevice(app, plan, onGpus);
  app.callback([&] {
    checkNeeds(app);
    for (const Instead &one : instead)
      checkInstead(app, plan, one);
    checkDevice(app, onGpus);
  });
  if (std::optional<int> code = meshwork::cli::parse(app, argc, argv))
    return *code;
  options.peakOfPlan = meshwork::cost::peakTflopsOf;
  options.warningOfHosts = meshwork::warningOfHosts;
  options.stop = &stopSignal;
  options.saveNow = &saveRequests;
  if (options.restarts > 0)
    if (std::optional<int> code = meshwork::supervise(options))
      return *code;
  auto asked =
      std::find_if(instead.begin(), instead.end(),
                   [](const Instead &one) { return !one.path.empty(); });
  absl::Status status = asked == instead.end()
                            ? meshwork::runtime::run(options)
                            : asked->run(asked->path, options);
  std::fflush(stdout);
  if (!status.ok() && !meshwork::runtime::isToldElsewhere(status))
    std::fprintf(stderr, "meshwork-run: %s%s\n",
                 absl::IsCancelled(status) ? "" : "error: ",
                 meshwork::printable(std::string(status.message())).c_str());
  std::fflush(stderr);
  // Not `return`: a rank that hangs is a thread that would be waited for.
  meshwork::runtime::endProcess(status);
}
