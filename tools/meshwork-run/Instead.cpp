#include "tools/meshwork-run/Instead.h"

#include "tools/meshwork-run/MachineFile.h"
#include "tools/meshwork-run/SelfTestReport.h"

#include <algorithm>

namespace meshwork {
namespace {

constexpr const char *deviceOption = "--measure-device";
} // namespace

std::vector<InsteadOfPlan::Way> InsteadOfPlan::allWays() const {
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
           [this](auto &path, auto &options) {
             return onGpus ? measureGpusTo(path, options)
                           : measureMachineTo(path, options);
           }},
          {"--self-test",
           "Instead of a plan: try links, work, collectives and five plans on "
           "all ranks, and write a report with nothing private in it",
           ofTest, selfTestTo}};
}

InsteadOfPlan::InsteadOfPlan(CLI::App &app, CLI::Option *plan)
    : app(app), plan(plan), ways(allWays()) {
  for (Way &way : ways)
    add(way);
  addDevice();
}

void InsteadOfPlan::add(Way &way) {
  app.add_option_function<std::string>(
         way.name,
         [this, &way](const std::string &given) {
           way.path = given;
           plan->required(false);
         },
         way.help)
      ->type_name("FILE")
      ->group("The machine");
}

/// Beside --measure-machine. Alone it is told to lack that, not a plan.
void InsteadOfPlan::addDevice() {
  cli::addChoice<bool>(
      app, deviceOption, onGpus, {{"cpu", false}, {"cuda", true}},
      "What to measure: the cores of this machine, or NVIDIA GPUs: all that "
      "this process sees, under mpirun one a rank")
      ->default_str("cpu")
      ->each([this](const std::string &) { plan->required(false); })
      ->needs(app.get_option("--measure-machine"))
      ->group("The machine");
}

void InsteadOfPlan::check() const {
  for (const Way &way : ways)
    if (!way.path.empty())
      check(way);
  checkDevice();
}

/// Said here, not by each option: `--help` would repeat it for all of them.
void InsteadOfPlan::check(const Way &way) const {
  for (const CLI::Option *option : app.get_options())
    if (!option->empty() && option->get_name() != way.name &&
        (option == plan || !way.fine.contains(option->get_name())))
      throw CLI::ExcludesError(way.name, option->get_name());
}

/// GPUs are measured by one thread each, wherever it runs.
void InsteadOfPlan::checkDevice() const {
  for (const char *option : {"--threads", "--no-pin"})
    if (onGpus && app.count(option) > 0)
      throw CLI::ExcludesError(std::string(deviceOption) + " cuda", option);
}

std::optional<absl::Status>
InsteadOfPlan::run(const runtime::RunOptions &options) const {
  auto asked = std::find_if(ways.begin(), ways.end(),
                            [](const Way &way) { return !way.path.empty(); });
  if (asked == ways.end())
    return std::nullopt;
  return asked->run(asked->path, options);
}

} // namespace meshwork
