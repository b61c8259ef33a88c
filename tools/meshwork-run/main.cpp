// meshwork-run: runs a plan. Options in, exit code out; see Run.h.
#include "lib/Cost/PlanPeak.h"
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Runtime/Run.h"
#include "meshwork/Text/Escape.h"
#include "runtime/io/Streams.h"
#include "tools/cli/Cli.h"
#include "tools/meshwork-run/HostOrder.h"
#include "tools/meshwork-run/Instead.h"
#include "tools/meshwork-run/Options.h"
#include "tools/meshwork-run/Signals.h"
#include "tools/meshwork-run/Supervise.h"

#include <cstdio>

namespace {

constexpr const char *examples = R"(Examples:
  meshwork-run tiny.mwplan --data tokens.bin --steps 1000 --lr 3e-4 --schedule cosine --warmup-steps 50
  meshwork-run tiny.mwplan --data text --tokenizer bytes --steps 20 --metrics metrics.jsonl --save weights.safetensors
  meshwork-run tiny.mwplan --data tokens.bin --steps 1000 --checkpoint run --checkpoint-every 100 --resume auto
  mpirun -n 2 meshwork-run tiny.mwplan --data tokens.bin --steps 1000
  meshwork-run --measure-machine here.toml
  meshwork-run --measure-machine gpus.toml --measure-device cuda
  mpirun -n 2 meshwork-run --self-test report.json)";

void tell(const absl::Status &status) {
  std::fflush(stdout);
  if (!status.ok() && !meshwork::runtime::isToldElsewhere(status))
    std::fprintf(stderr, "meshwork-run: %s%s\n",
                 absl::IsCancelled(status) ? "" : "error: ",
                 meshwork::printable(std::string(status.message())).c_str());
  std::fflush(stderr);
}
} // namespace

int main(int argc, char **argv) {
  meshwork::handleSignals(); // first: until then SIGUSR1 kills
  meshwork::runtime::startTool();
  meshwork::runtime::RunOptions options;
  CLI::App app(
      "Runs a Meshwork plan: all its ranks in this process, or, started by "
      "mpirun or srun, one rank in each.",
      "meshwork-run");
  CLI::Option *plan = app.add_option("PLAN", options.plan,
                                     "A file that `meshwork compile` wrote");
  plan->required()->type_name("");
  meshwork::addOptions(app, options);
  app.footer(examples);
  meshwork::InsteadOfPlan instead(app, plan);
  app.callback([&] {
    meshwork::checkNeeds(app);
    instead.check();
  });
  if (std::optional<int> code = meshwork::cli::parse(app, argc, argv))
    return *code;
  options.peakOfPlan = meshwork::cost::peakTflopsOf;
  options.warningOfHosts = meshwork::warningOfHosts;
  meshwork::listenTo(options);
  if (options.restarts > 0)
    if (std::optional<int> code = meshwork::supervise(options))
      return *code;
  std::optional<absl::Status> asked = instead.run(options);
  absl::Status status = asked ? *asked : meshwork::runtime::run(options);
  tell(status);
  // Not `return`: a rank that hangs is a thread that would be waited for.
  meshwork::runtime::endProcess(status);
}
