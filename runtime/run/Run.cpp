// From options to a finished run: everything that can be wrong is found before
// the first step, the cheapest first.
#include "meshwork/Runtime/Run.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/Plan/Checked.h"
#include "meshwork/Plan/Types.h"
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Text/Counted.h"
#include "runtime/checkpoint/CheckpointWeights.h"
#include "runtime/io/IoStatus.h"
#include "runtime/machine/Memory.h"
#include "runtime/rank/Processes.h"
#include "runtime/rank/SameData.h"
#include "runtime/run/CheckOptions.h"
#include "runtime/run/GoOn.h"
#include "runtime/run/OpenDevice.h"
#include "runtime/run/Phases.h"
#include "runtime/run/Placement.h"
#include "runtime/run/RunOn.h"
#include "runtime/save/CheckpointFolder.h"
#include "runtime/save/CopyMemory.h"
#include "runtime/save/Weights.h"
#include "runtime/train/RunFiles.h"
#include "runtime/train/Stop.h"
#include "runtime/train/Trainer.h"
#include <algorithm>
#include <cstdio>
#include <utility>

namespace meshwork::runtime {
namespace {
/// Documents decide nothing but which targets count.
bool maskSuffices(const RunOptions &options, const plan::Plan &plan) {
  return options.samples != "documents" &&
         !plan::reads(plan, plan::InputKind::documents) &&
         !plan::reads(plan, plan::InputKind::document_positions);
}

SourceOptions sourceOptions(const RunOptions &options,
                            const DocumentMarks &marks,
                            const plan::Plan &plan) {
  return {{"", options.dataType, options.tokenizer, plan.vocabulary(),
           plan.sequence(), marks, options.stop, options.samples == "documents",
           maskSuffices(options, plan)},
          options.data,
          options.order == "epochs" ? SampleOrder::epochs : SampleOrder::random,
          {},
          options.heldOut};
}

/// By all processes; `option` names them.
absl::StatusOr<std::shared_ptr<const TokenSource>>
openSources(const SourceOptions &sources, const char *option,
            const TrainerParts &parts) {
  auto tokens = TokenSource::openAll(sources);
  if (absl::IsCancelled(tokens.status()))
    return stoppedBy(*sources.each.stop,
                     "before the first step: nothing is saved");
  if (!tokens.ok())
    return fromIo(absl::Status(
        tokens.status().code(),
        absl::StrCat(option, *option ? " " : "", tokens.status().message())));
  MESHWORK_RETURN_IF_ERROR(checkMasks(parts.plan->plan(), **tokens));
  MESHWORK_RETURN_IF_ERROR(agreeOnData(*parts.processes, **tokens,
                                       absl::StrJoin(sources.paths, ", ")));
  return std::move(*tokens);
}

absl::Status openTokens(const RunOptions &options, const DocumentMarks &marks,
                        TrainerParts &parts) {
  if (options.steps == 0)
    return absl::OkStatus();
  SourceOptions sources = sourceOptions(options, marks, parts.plan->plan());
  MESHWORK_ASSIGN_OR_RETURN(sources.weights, dataWeights(options));
  MESHWORK_ASSIGN_OR_RETURN(parts.tokens, openSources(sources, "", parts));
  return absl::OkStatus();
}

absl::Status openEvaluated(const RunOptions &options,
                           const DocumentMarks &marks, TrainerParts &parts) {
  if (options.evalData.empty() && options.heldOut == 0)
    return absl::OkStatus();
  SourceOptions sources = sourceOptions(options, marks, parts.plan->plan());
  sources.order = SampleOrder::asTheyStand;
  sources.part = WindowPart::heldOut;
  if (options.heldOut == 0) {
    sources.paths = options.evalData;
    sources.part = WindowPart::training;
  }
  MESHWORK_ASSIGN_OR_RETURN(
      parts.evalTokens,
      openSources(sources, options.heldOut == 0 ? "--eval-data" : "", parts));
  uint64_t windows = parts.evalTokens->numWindows(),
           wanted = uint64_t{options.evalSteps.value_or(0)} *
                    parts.plan->plan().global_batch();
  if (wanted > windows)
    return absl::InvalidArgumentError(absl::StrCat(
        "--eval-steps is ", *options.evalSteps, ", which is ",
        counted(wanted, "window"), ": found ", windows,
        " to evaluate; give fewer steps, or leave it out for all of them"));
  return absl::OkStatus();
}

void warnOfTokens(const TrainerParts &parts) {
  if (parts.tokens)
    for (const std::string &line : parts.tokens->warnings())
      parts.reporter->warn("--data " + line);
  if (parts.evalTokens)
    for (const std::string &line : parts.evalTokens->warnings())
      parts.reporter->warn("--eval-data " + line);
}

/// "largest id 255 of a vocabulary of 256".
std::string idsText(const SourceSummary &source, uint32_t vocabulary) {
  return absl::StrCat("largest id ", source.largest,
                      source.checked < source.tokens
                          ? absl::StrCat(" (of ",
                                         counted(source.checked, "token"),
                                         " that were looked at)")
                          : std::string(),
                      " of a vocabulary of ", vocabulary);
}

/// "46 windows and 55 tokens behind the last of a file, which are not read".
std::string samplesText(const SourceSummary &source, const RunOptions &o) {
  if (o.samples == "documents")
    return absl::StrCat(
        counted(source.windows, "sample"), " of whole documents; ",
        counted(source.cutDocuments, "longer one"), " cut, ",
        counted(source.cutTokens, "token"), " of that not read");
  std::string text = counted(source.windows, "window");
  if (o.order == "epochs")
    absl::StrAppend(&text, " and ", counted(source.leftOver, "token"),
                    " behind the last of a file, which are not read");
  return text;
}

/// "'a.bin': 1 file, 5000 tokens, largest id 255 of a vocabulary of 256".
std::string sourceText(const SourceSummary &one, uint32_t vocabulary) {
  return absl::StrCat(
      quote(one.name), ": ", counted(one.files, "file"), ", ",
      counted(one.tokens, "token"), ", ", idsText(one, vocabulary),
      one.documents ? ", " + counted(*one.documents, "document") : "");
}

/// What a run reads, a line for each source.
void tellSources(const RunOptions &options, const TrainerParts &parts) {
  if (!parts.tokens)
    return;
  const plan::Plan &plan = parts.plan->plan();
  uint64_t samples = options.steps * plan.global_batch();
  for (size_t i = 0; i < parts.tokens->sources().size(); ++i) {
    const SourceSummary &one = parts.tokens->sources()[i];
    std::string line = absl::StrCat("data ", sourceText(one, plan.vocabulary()),
                                    ", ", samplesText(one, options));
    if (options.order == "epochs")
      absl::StrAppend(&line, "; in ", counted(options.steps, "step"),
                      absl::StrFormat(" it is read %.3g times",
                                      parts.tokens->readsOf(i, samples)));
    parts.reporter->note(line);
  }
}

/// Of files that are held out: how much of each source.
void tellEvaluated(const RunOptions &options, const TrainerParts &parts) {
  if (!parts.evalTokens)
    return;
  for (const SourceSummary &one : parts.evalTokens->sources())
    parts.reporter->note(
        options.heldOut > 0
            ? absl::StrCat("held out of ", quote(one.name), ": the last ",
                           counted(one.windows, "window"))
            : absl::StrCat("evaluated ",
                           sourceText(one, parts.plan->plan().vocabulary()),
                           ", ", counted(one.windows, "window")));
}

absl::Status openWeights(const RunOptions &options, TrainerParts &parts) {
  const plan::Plan &plan = parts.plan->plan();
  if (options.init.empty())
    return absl::OkStatus();
  std::optional<std::string> checkpoint = checkpointIn(options.init);
  auto file = checkpoint ? openCheckpointWeights(*checkpoint)
                         : SafeTensorsReader::open(
                               options.init,
                               {options.followLinks, "give --follow-links"});
  MESHWORK_RETURN_IF_ERROR(fromIo(file.status()));
  bool isFirst = parts.processes->isFirst();
  absl::StatusOr<MatchedWeights> match =
      matchWeights(plan, std::move(*file), isFirst);
  if (absl::Status status = match.status(); !status.ok())
    return withExitCode(
        absl::Status(status.code(),
                     absl::StrCat("'", options.init, "': ", status.message())),
        static_cast<ExitCode>(exitCodeOf(status)));
  parts.weights = std::move(match->weights);
  if (isFirst && !match->skipped.empty())
    absl::PrintF("--init: skipped what is no weight of the plan: %s\n",
                 match->skipped);
  return absl::OkStatus();
}

absl::Status openResume(const RunOptions &options, TrainerParts &parts) {
  MESHWORK_ASSIGN_OR_RETURN(parts.resume,
                            Resume::find(options, parts.plan->plan()));
  if (!parts.resume && !options.resume.empty() && parts.processes->isFirst())
    absl::PrintF("--resume auto: no checkpoint in '%s' yet\n",
                 options.checkpoint);
  return absl::OkStatus();
}

/// `first` with what else went wrong. Who was asked to stop and could not save
/// has failed.
absl::Status both(absl::Status first, const absl::Status &second) {
  if (second.ok() || first.ok())
    return first.ok() ? second : first;
  const absl::Status &leading = absl::IsCancelled(first) ? second : first;
  return withExitCode(
      absl::Status(leading.code(),
                   absl::StrCat(first.message(), "; then: ", second.message())),
      static_cast<ExitCode>(exitCodeOf(leading)));
}

/// Lines that a closed pipe or a full disk has swallowed.
absl::Status stdoutStatus() {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return absl::OkStatus();
  return withExitCode(
      absl::UnavailableError("cannot write to stdout: lines are missing there, "
                             "but the files that were asked for are complete"),
      ExitCode::inputOutput);
}

/// All that was asked for: each is tried, whatever became of the others, and
/// processes meet in every one.
absl::Status writeOutputs(const RunOptions &options, Trainer &trainer,
                          bool isFirst) {
  absl::Status status;
  auto attempt = [&](absl::Status one) { status = both(status, one); };
  if (!options.save.empty())
    attempt(trainer.saveMasters(options.save));
  if (!options.saveGradients.empty())
    attempt(trainer.saveGradients());
  if (!options.trace.empty())
    attempt(trainer.saveTrace(options.trace));
  if (!options.profileJson.empty() && isFirst)
    attempt(writeProfileJson(options.profileJson, trainer.ranks(),
                             trainer.recorders()));
  if (options.profile && isFirst)
    std::fputs(profileTable(trainer.ranks(), trainer.recorders()).c_str(),
               stdout);
  return status;
}

/// 0 until it is measured, or for good.
double peakOf(const plan::Plan &plan, const RunOptions &options) {
  bool isAsked = options.peakTflops > 0 || options.measurePeak;
  return isAsked || !options.peakOfPlan ? options.peakTflops
                                        : options.peakOfPlan(plan);
}

std::shared_ptr<Reporter> makeReporter(const plan::Plan &plan,
                                       const RunOptions &options,
                                       MetricLogs logs, uint64_t planned,
                                       bool plainLines) {
  resetPeakResident(); // Reading inputs may have taken more for a moment.
  return std::make_shared<Reporter>(
      plan,
      ReportOptions{options.steps, options.logEvery, plainLines,
                    peakOf(plan, options), residentBytes(), planned,
                    options.isQuiet},
      std::move(logs));
}

/// An evaluation that tells nothing of the model.
void warnOfEvaluation(const RunOptions &options, Reporter &reporter) {
  for (const std::string &path : options.evalData)
    if (std::count(options.data.begin(), options.data.end(), path) > 0)
      reporter.warn(absl::StrCat(
          "--eval-data ", quote(path),
          " is trained on, too: its loss tells nothing of other text; "
          "--held-out keeps a part of --data for that"));
  if (options.evaluate && options.init.empty() && options.resume.empty())
    reporter.warn("--evaluate: the weights are random ones; give --init or "
                  "--resume to evaluate others");
}

/// Before the first step, on the first rank.
void warnOfWarmup(const RunOptions &options, Reporter &reporter) {
  uint64_t warmup = options.learningRate.warmupSteps;
  if (options.then.empty() && options.steps > 0 && warmup > options.steps)
    reporter.warn(absl::StrCat("--warmup-steps is ", warmup,
                               ", and the run has ",
                               counted(options.steps, "step"),
                               ": the learning rate never reaches --lr"));
}

absl::Status train(const RunOptions &options, TrainerParts parts) {
  Processes &processes = *parts.processes;
  std::shared_ptr<Reporter> report = parts.reporter;
  const Device &device = *parts.device; // The trainer's.
  std::shared_ptr<const Resume> resume = parts.resume;
  Trainer trainer(std::move(parts), options);
  absl::Status status;
  {
    TellAtStop tell(options, processes.areMany() && processes.isFirst());
    status = trainer.run();
  }
  if (report)
    report->finish();
  std::fputs(device.summary().c_str(), stdout);
  if (!status.ok()) // where none is good, there is none to go on from
    return resume && !resume->hasChosen()
               ? status
               : withCheckpoint(std::move(status), options);
  {
    auto work = processes.fileWork("it writes files");
    status = both(trainer.ending(),
                  writeOutputs(options, trainer, processes.isFirst()));
    status = both(status, trainer.checkpointStatus());
    status = both(status, device.verdict());
    status = both(status, stdoutStatus());
  }
  return processes.agreeOnEnd(std::move(status));
}

absl::Status runIn(Processes &processes, const RunOptions &options,
                   std::shared_ptr<const plan::PlanFile> file) {
  TrainerParts parts;
  parts.processes = &processes;
  parts.plan = std::move(file);
  const plan::Plan &plan = parts.plan->plan();
  uint32_t ranks = 0;
  MESHWORK_RETURN_IF_ERROR(checkRanks(plan, options, processes, ranks));
  MESHWORK_RETURN_IF_ERROR(checkSamples(plan, options));
  absl::StatusOr<DocumentMarks> marks = documentMarks(plan, options);
  MESHWORK_RETURN_IF_ERROR(marks.status());
  absl::StatusOr<std::vector<CoreShare>> cores =
      processes.shareCores(ranks, options);
  MESHWORK_RETURN_IF_ERROR(cores.status());
  parts.cores = std::move(*cores);
  if (processes.coresAreTaken() && processes.isFirst() && !options.isQuiet)
    std::puts("other runs have claimed cores of this machine: threads are not "
              "pinned");
  processes.warn(processes.coresWarning(options));
  absl::StatusOr<std::unique_ptr<Device>> device =
      openDevice(plan, processes.deviceOptions(ranks, options));
  MESHWORK_RETURN_IF_ERROR(device.status());
  parts.device = std::move(*device);
  absl::StatusOr<uint64_t> planned =
      parts.device->checkMemory(parts.cores, processes.ranksHere(ranks));
  MESHWORK_RETURN_IF_ERROR(planned.status());
  absl::StatusOr<uint64_t> copies = checkCopies(
      plan, options, parts.cores, processes.ranksHere(ranks), *planned);
  MESHWORK_RETURN_IF_ERROR(copies.status());
  *planned += *copies;
  if (processes.areMany() && options.warningOfHosts)
    processes.warn(options.warningOfHosts(plan, processes.hosts()));
  if (options.dryRun) {
    absl::StatusOr<Placement> placement =
        placementOf(processes, *parts.device, parts.cores);
    MESHWORK_RETURN_IF_ERROR(placement.status());
    if (processes.isFirst())
      std::fputs(textOf(plan, *placement).c_str(), stdout);
  }
  if (options.validateOnly) {
    if (processes.isFirst())
      absl::PrintF(
          "%s is valid: %s, %s, %s for %s\n", options.plan,
          counted(ranks, "rank"), counted(plan.programs()->size(), "program"),
          bytesText(*planned), processes.areMany() ? "each rank" : "all ranks");
    return stdoutStatus();
  }
  if (!options.saveGradients.empty())
    MESHWORK_RETURN_IF_ERROR(checkGradientsKept(plan));
  auto work = processes.fileWork("it opens and checks files");
  if (processes.isFirst())
    MESHWORK_RETURN_IF_ERROR(checkFileUses(filesOfRun(options, nullptr)));
  FileDescriptor folder; // locked to the end of the run
  MESHWORK_ASSIGN_OR_RETURN(folder, prepareCheckpoints(options, processes));
  MESHWORK_RETURN_IF_ERROR(openResume(options, parts));
  if (!parts.resume)
    MESHWORK_RETURN_IF_ERROR(openWeights(options, parts));
  if (processes.isFirst())
    MESHWORK_RETURN_IF_ERROR(checkOutputs(options, parts.weights.get()));
  MESHWORK_RETURN_IF_ERROR(openTokens(options, *marks, parts));
  MESHWORK_RETURN_IF_ERROR(openEvaluated(options, *marks, parts));
  if (processes.isFirst()) {
    MetricLogs logs;
    MESHWORK_ASSIGN_OR_RETURN(logs, openMetrics(options));
    parts.reporter = makeReporter(plan, options, std::move(logs), *planned,
                                  processes.areMany());
    warnOfTokens(parts);
    tellSources(options, parts);
    tellEvaluated(options, parts);
    warnOfWarmup(options, *parts.reporter);
    warnOfEvaluation(options, *parts.reporter);
  }
  work.reset();
  return train(options, std::move(parts));
}

absl::Status runPhases(Processes &processes, std::vector<Phase> phases,
                       const RunOptions &options) {
  MESHWORK_RETURN_IF_ERROR(openPhases(phases, options, processes));
  size_t first = firstPhase(phases, options);
  if (phases.size() > 1) // Each process has looked for checkpoints itself.
    MESHWORK_RETURN_IF_ERROR(processes.agreeOn(*phases[first].file, options));
  // Whatever a later plan lacks of this machine is told before the first step.
  for (size_t i = first + 1; i < phases.size(); ++i) {
    RunOptions later = optionsOf(phases, i, first, options);
    later.validateOnly = true;
    processes.beginPhase();
    MESHWORK_RETURN_IF_ERROR(runIn(processes, later, phases[i].file));
  }
  for (size_t i = first; i < phases.size(); ++i) {
    if (i > 0 && processes.isFirst() && !options.validateOnly)
      absl::PrintF("step %d: goes on with %s\n", phases[i].begin,
                   quote(phases[i].plan));
    processes.beginPhase();
    MESHWORK_RETURN_IF_ERROR(runIn(processes,
                                   optionsOf(phases, i, first, options),
                                   std::exchange(phases[i].file, nullptr)));
    if (options.validateOnly)
      break;
  }
  return absl::OkStatus();
}
} // namespace

/// What follows from options that have been checked.
static absl::StatusOr<RunOptions> completed(RunOptions options) {
  options.validateOnly |= options.dryRun;
  MESHWORK_RETURN_IF_ERROR(checkOptions(options));
  if (options.learningRate.decaySteps == 0)
    options.learningRate.decaySteps = options.steps;
  return options;
}

absl::Status runOn(Processes &processes, const RunOptions &given) {
  absl::StatusOr<RunOptions> options = completed(given);
  MESHWORK_RETURN_IF_ERROR(options.status());
  absl::StatusOr<std::vector<Phase>> phases = phasesOf(*options);
  MESHWORK_RETURN_IF_ERROR(phases.status());
  return runPhases(processes, *std::move(phases), *options);
}

absl::Status run(const RunOptions &given) {
  absl::StatusOr<RunOptions> options = completed(given);
  MESHWORK_RETURN_IF_ERROR(options.status());
  absl::StatusOr<std::vector<Phase>> phases = phasesOf(*options);
  MESHWORK_RETURN_IF_ERROR(phases.status());
  absl::StatusOr<Processes> processes = Processes::start(*options);
  MESHWORK_RETURN_IF_ERROR(processes.status());
  processes->warn(processes->openWarning());
  return processes->settle(runPhases(*processes, *std::move(phases), *options));
}

} // namespace meshwork::runtime
