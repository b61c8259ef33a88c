// From options to a finished run: everything that can be wrong is found before
// the first step, the cheapest first.
#include "meshwork/Runtime/Run.h"
#include "absl/strings/str_format.h"
#include "meshwork/Plan/Types.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/core/Checked.h"
#include "runtime/core/IoStatus.h"
#include "runtime/core/Memory.h"
#include "runtime/core/Processes.h"
#include "runtime/core/Trainer.h"
#include "runtime/core/Weights.h"
#include <algorithm>
#include <cmath>
#include <cstdio>

namespace meshwork::runtime {
namespace {
/// More threads than this in one process is a mistake, not a machine.
constexpr uint32_t maxRanks = 1024;

template <typename... Parts> absl::Status usage(const Parts &...parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status checkOptions(const RunOptions &o) {
  const LearningRate &lr = o.learningRate;
  if (!(lr.rate >= 0) || !std::isfinite(lr.rate) || !(lr.minimum >= 0) ||
      lr.minimum > lr.rate)
    return usage("the learning rate ", lr.rate, " and its minimum ", lr.minimum,
                 " must be finite, 0 or more, and the minimum the smaller one");
  if (!(o.timeoutSeconds > 0) || o.timeoutSeconds > 1e6)
    return usage("--timeout is ", o.timeoutSeconds,
                 ", expected 0 to 1000000 seconds");
  if (o.documentBegin && o.documentEnd)
    return usage("--document-begin and --document-end exclude each other: give "
                 "the one that tells documents apart");
  if (o.logEvery == 0)
    return usage("--log-every is 0, expected 1 or more");
  if (o.threads < 0 || o.threads > 4096)
    return usage("--threads is ", o.threads, ", expected 0 to 4096");
  if (o.steps > INT32_MAX)
    return usage("--steps is ", o.steps, ", expected at most ", INT32_MAX);
  if (!(o.peakTflops >= 0) || !std::isfinite(o.peakTflops))
    return usage("--peak-tflops is ", o.peakTflops,
                 ", expected a positive number");
  if (o.steps > 0 && o.data.empty() && !o.validateOnly)
    return usage("--data is needed for ", o.steps, " steps");
  if (o.steps == 0 && !o.saveGradients.empty())
    return usage("--save-gradients needs at least one step");
  return absl::OkStatus();
}

absl::Status checkRanks(const plan::Plan &plan, const RunOptions &options,
                        const Processes &processes, uint32_t &ranks) {
  ranks = 1;
  for (const plan::Axis *axis : *plan.mesh())
    ranks *= axis->size();
  if (options.ranks != 0 && options.ranks != ranks)
    return usage("-n is ", options.ranks, ", the plan is for ", ranks,
                 " ranks: leave -n out, or compile for another mesh");
  if (ranks > maxRanks && !processes.areMany())
    return absl::ResourceExhaustedError(
        absl::StrCat("the plan is for ", ranks,
                     " ranks, one process runs at most ", maxRanks));
  return absl::OkStatus();
}

/// What tells documents apart, where the plan wants to know.
absl::StatusOr<DocumentMarks> documentMarks(const plan::Plan &plan,
                                            const RunOptions &o) {
  using From = DocumentMarks::From;
  bool given = o.documentBegin || o.documentEnd;
  if (!plan::separatesDocuments(plan)) {
    if (given)
      return usage(o.documentBegin ? "--document-begin" : "--document-end",
                   " is given, but the plan does not separate documents: "
                   "compile it with --set 'batch.documents=\"separate\"', or "
                   "leave the option out");
    return DocumentMarks{};
  }
  if (!given)
    return DocumentMarks{From::index};
  return o.documentBegin ? DocumentMarks{From::beginToken, *o.documentBegin}
                         : DocumentMarks{From::endToken, *o.documentEnd};
}

/// Creates what will be written at the end and takes it away again.
absl::Status checkOutputs(const RunOptions &options) {
  for (const std::string *path : {&options.save, &options.saveGradients,
                                  &options.trace, &options.profileJson})
    if (!path->empty())
      if (auto file = OutputFile::create(*path); !file.ok())
        return withExitCode(file.status(), ExitCode::cannotCreate);
  return absl::OkStatus();
}

absl::Status openInputs(const RunOptions &options, const DocumentMarks &marks,
                        TrainerParts &parts) {
  const plan::Plan &plan = parts.plan->plan();
  if (options.steps > 0) {
    auto tokens =
        TokenSource::open({options.data, options.dataType, options.tokenizer,
                           plan.vocabulary(), plan.sequence(), marks});
    if (!tokens.ok())
      return fromIo(tokens.status());
    parts.tokens = std::move(*tokens);
  }
  if (options.init.empty())
    return absl::OkStatus();
  auto weights = SafeTensorsReader::open(options.init);
  if (!weights.ok())
    return fromIo(weights.status());
  parts.weights = std::move(*weights);
  if (absl::Status status = matchWeights(plan, *parts.weights); !status.ok())
    return absl::Status(status.code(), absl::StrCat("'", options.init,
                                                    "': ", status.message()));
  return absl::OkStatus();
}

absl::Status writeOutputs(const RunOptions &options, Trainer &trainer,
                          bool isFirst) {
  if (!options.save.empty())
    MESHWORK_RETURN_IF_ERROR(
        trainer.saveState(options.save, StatePart::master));
  if (!options.saveGradients.empty())
    MESHWORK_RETURN_IF_ERROR(
        trainer.saveState(options.saveGradients, StatePart::gradient));
  if (!options.trace.empty())
    MESHWORK_RETURN_IF_ERROR(trainer.saveTrace(options.trace));
  if (!options.profileJson.empty() && isFirst)
    MESHWORK_RETURN_IF_ERROR(writeProfileJson(
        options.profileJson, trainer.ranks(), trainer.recorders()));
  if (options.profile && isFirst)
    std::fputs(profileTable(trainer.ranks(), trainer.recorders()).c_str(),
               stdout);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Reporter>>
makeReporter(const plan::Plan &plan, const RunOptions &options,
             const Processes &processes, uint64_t planned) {
  if (!processes.isFirst())
    return nullptr;
  resetPeakResident(); // Reading inputs may have taken more for a moment.
  auto reporter =
      Reporter::create(plan, {options.metrics, options.steps, options.logEvery,
                              options.peakTflops, residentBytes(), planned});
  MESHWORK_RETURN_IF_ERROR(reporter.status());
  return std::shared_ptr<Reporter>(std::move(*reporter));
}

absl::Status train(const RunOptions &options, TrainerParts parts) {
  bool isFirst = parts.processes->isFirst();
  std::shared_ptr<Reporter> report = parts.reporter;
  const Device &device = *parts.device; // The trainer's.
  Trainer trainer(std::move(parts), options);
  absl::Status status = trainer.run();
  if (report)
    report->finish();
  std::fputs(device.summary().c_str(), stdout);
  return status.ok() ? writeOutputs(options, trainer, isFirst) : status;
}

absl::Status runIn(Processes &processes, const RunOptions &options) {
  TrainerParts parts;
  parts.processes = &processes;
  absl::StatusOr<std::unique_ptr<PlanFile>> file = PlanFile::open(options.plan);
  MESHWORK_RETURN_IF_ERROR(file.status());
  parts.plan = std::move(*file);
  const plan::Plan &plan = parts.plan->plan();
  MESHWORK_RETURN_IF_ERROR(processes.agreeOn(*parts.plan, options));
  uint32_t ranks = 0;
  MESHWORK_RETURN_IF_ERROR(checkRanks(plan, options, processes, ranks));
  absl::StatusOr<DocumentMarks> marks = documentMarks(plan, options);
  MESHWORK_RETURN_IF_ERROR(marks.status());
  absl::StatusOr<std::vector<CoreShare>> cores =
      processes.shareCores(ranks, options);
  MESHWORK_RETURN_IF_ERROR(cores.status());
  parts.cores = std::move(*cores);
  absl::StatusOr<std::unique_ptr<Device>> device =
      Device::open(plan, processes.deviceOptions(ranks, options));
  MESHWORK_RETURN_IF_ERROR(device.status());
  parts.device = std::move(*device);
  absl::StatusOr<uint64_t> planned =
      parts.device->checkMemory(parts.cores, processes.ranksHere(ranks));
  MESHWORK_RETURN_IF_ERROR(planned.status());
  if (options.validateOnly) {
    if (processes.isFirst())
      absl::PrintF("%s is valid: %d ranks, %d programs, %s for %s\n",
                   options.plan, ranks, plan.programs()->size(),
                   bytesText(*planned),
                   processes.areMany() ? "each rank" : "all ranks");
    return absl::OkStatus();
  }
  if (!options.saveGradients.empty())
    MESHWORK_RETURN_IF_ERROR(checkGradientsKept(plan));
  if (processes.isFirst())
    MESHWORK_RETURN_IF_ERROR(checkOutputs(options));
  MESHWORK_RETURN_IF_ERROR(openInputs(options, *marks, parts));
  auto reporter = makeReporter(plan, options, processes, *planned);
  MESHWORK_RETURN_IF_ERROR(reporter.status());
  parts.reporter = std::move(*reporter);
  return train(options, std::move(parts));
}
} // namespace

absl::Status run(const RunOptions &given) {
  RunOptions options = given;
  if (options.learningRate.decaySteps == 0)
    options.learningRate.decaySteps = options.steps;
  MESHWORK_RETURN_IF_ERROR(checkOptions(options));
  absl::StatusOr<Processes> processes = Processes::start(options);
  MESHWORK_RETURN_IF_ERROR(processes.status());
  return processes->settle(runIn(*processes, options));
}

} // namespace meshwork::runtime
