// `meshwork compile` and `meshwork import`.
#include "tools/meshwork/driver/Compile.h"

#include <chrono>

#include "dialects/mesh/Provenance.h"
#include "dialects/transformer/Transformer.h"
#include "lib/Cost/OfSpec.h"
#include "lib/Explain/Explain.h"
#include "lib/Explain/Format.h"
#include "lib/Import/Import.h"
#include "lib/Plan/PackFile.h"
#include "lib/Spec/Words.h"
#include "meshwork/Plan/Frame.h"
#include "meshwork/Text/Counted.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/Pass.h"
#include "passes/codegen/plan/PlanWriter.h"
#include "passes/pipelines/Pipelines.h"
#include "passes/pipelines/SpecFiles.h"
#include "runtime/io/FileUses.h"
#include "tools/meshwork/driver/Budget.h"
#include "tools/meshwork/driver/Choices.h"
#include "tools/meshwork/driver/Files.h"
#include "tools/meshwork/driver/Folded.h"
#include "tools/meshwork/driver/Guard.h"
#include "tools/meshwork/driver/Model.h"
#include "tools/meshwork/driver/Progress.h"
#include "tools/meshwork/driver/Reproducer.h"
#include "tools/meshwork/driver/SpecErrors.h"
#include "tools/meshwork/driver/Trial.h"
#include "tools/meshwork/driver/search/Micro.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

std::string dumpPath(const CompileOptions &options, size_t number,
                     StringRef phase) {
  SmallString<128> path(options.dumpPhases);
  llvm::sys::path::append(path,
                          llvm::formatv("{0}-{1}.mlir", number, phase).str());
  return path.str().str();
}

/// In which files a compilation may end.
std::vector<runtime::FileUse> outputsOf(const CompileOptions &options) {
  std::vector<runtime::FileUse> uses = {{"--output", options.output, true}};
  for (const std::string &path : reproducerPaths(options))
    uses.push_back({"the reproducer", path, true, /*replacesLink=*/true});
  if (!options.dumpPhases.empty())
    for (auto [number, phase] : llvm::enumerate(pipelines::phases()))
      uses.push_back({"--dump-phases", dumpPath(options, number, phase.name),
                      true, /*replacesLink=*/true});
  return uses;
}

/// How the child ends when passes fail; no exit code of ours.
constexpr int phaseFailed = 100;

/// One run of `meshwork compile`. MLIR copies the module before each phase that
/// may leave a reproducer, a tenth of the time of a large model. So none does,
/// and a run whose passes failed is repeated: the second one `reproduces` the
/// failure, which the first has told.
class Compilation {
public:
  Compilation(const CompileOptions &options, const CompileTexts &texts,
              bool isTerminal, bool reproduces)
      : options(options), texts(texts), progress(isTerminal) {
    if (reproduces)
      silence.emplace();
  }

  int run() {
    if (int code = readSpec(); code != ok || options.printConfig)
      return code;
    if (int code = readModel(); code != ok)
      return code;
    if (int code = chooseMicro(); code != ok)
      return code;
    if (int code = runPhases(); code != ok)
      return code;
    if (options.estimate)
      return tellEstimate();
    if (!options.compileTo.empty())
      return writeFile(options.output.empty() ? "-" : options.output,
                       textOf(model.module()));
    return emitPlan();
  }

private:
  int readSpec() {
    beginReading(options.spec, badSpec, texts.spec.size());
    spec::Result result =
        spec::parse(texts.spec, options.spec, options.overrides);
    endReading();
    bool isToldLater = result.spec && result.spec->batch.micro == 0;
    if (!isToldLater || options.printConfig)
      llvm::errs() << meshwork::textOf(result.diagnostics);
    if (!result.spec)
      return badSpec;
    spec = *result.spec;
    origins = result.origins;
    if (int code = resolveFiles(); code != ok)
      return code;
    asked = spec;
    if (options.printConfig) {
      result.spec->arch = spec.arch;
      result.origins = origins;
      return writeOut(spec::printWithOrigins(result));
    }
    if (!options.cpuCode.empty() && spec.device == spec::Device::cpu) {
      llvm::errs()
          << "meshwork: error: --with-cpu-code is for [target] device = "
             "\"cuda\"; the spec's is \"cpu\", which has such code anyway\n";
      return usage;
    }
    return ok;
  }

  /// A file that the spec names is an input like the spec.
  std::optional<std::string> readForSpec(const std::string &path, int &code) {
    std::vector<runtime::FileUse> uses = outputsOf(options);
    uses.push_back({"a file of the spec", path});
    code = options.printConfig ? ok : checkUses(uses);
    if (code != ok)
      return std::nullopt;
    std::optional<std::string> text = readFile(path, code);
    if (text)
      filesOfSpec[path] = *text;
    return text;
  }

  int resolveFiles() {
    int code = ok;
    Diagnostics wrong = pipelines::resolveFiles(
        spec, origins, options.spec,
        [&](const std::string &path) { return readForSpec(path, code); });
    llvm::errs() << meshwork::textOf(wrong);
    return code != ok ? code : hasErrors(wrong) ? badSpec : ok;
  }

  /// Leaves the limits of reading on until the first phase has looked at it.
  int readModel() {
    beginReading(options.model, badData, texts.model.size());
    return model.read(texts.model, options.model);
  }

  /// The user's spec with more settings, from files that were read before.
  spec::Result specWith(const std::vector<std::string> &more) const {
    std::vector<std::string> overrides = options.overrides;
    llvm::append_range(overrides, more);
    spec::Result result = spec::parse(texts.spec, options.spec, overrides);
    auto read = [&](const std::string &path) {
      auto known = filesOfSpec.find(path);
      return known == filesOfSpec.end() ? std::nullopt
                                        : std::optional(known->second);
    };
    if (!result.spec)
      return result;
    Diagnostics wrong = pipelines::resolveFiles(*result.spec, result.origins,
                                                options.spec, read);
    if (hasErrors(wrong)) {
      result.spec.reset();
      llvm::append_range(result.diagnostics, wrong);
    }
    return result;
  }
  spec::Result withMicro(uint32_t micro) const {
    return specWith({"batch.micro=" + std::to_string(micro)});
  }
  SpecWith specsWith() const {
    return [this](const std::vector<std::string> &more) {
      return specWith(more).spec;
    };
  }

  /// A copy, under the limits of reading, which end with it.
  void lookAtModel(const spec::Spec &first) {
    OwningOpRef<ModuleOp> copy(model.module().clone());
    ScopedDiagnosticHandler later(copy->getContext(),
                                  [](mlir::Diagnostic &) {});
    (void)runPhase(*copy, first, pipelines::phases().front().name);
    endReading();
  }

  /// From here on the spec is one with that number.
  int chooseMicro() {
    if (spec.batch.micro > 0)
      return ok;
    progress.begin("choosing batch.micro");
    // Groups of experts.group may divide no microbatch of one.
    for (uint32_t micro : {1u, spec.experts.group})
      if (spec::Result first = withMicro(micro); first.spec) {
        lookAtModel(*first.spec);
        break;
      }
    progress.watch();
    spec::Result chosen = withMicro(
        bestMicro(model.module(), spec.batch.global / spec.dataParallel(),
                  specsWith())
            .way);
    llvm::errs() << meshwork::textOf(chosen.diagnostics);
    if (!chosen.spec)
      return badSpec;
    spec = *chosen.spec;
    llvm::errs() << "meshwork: microbatch: "
                 << counted(spec.batch.micro, "sequence") << "\n";
    return ok;
  }

  int runPhases() {
    SpecErrors ofSpec(model.module()->getContext(), spec, origins);
    FewLayers few;
    for (auto [number, phase] : llvm::enumerate(pipelines::phases())) {
      auto start = std::chrono::steady_clock::now();
      if (few.haveRun(phase.name))
        continue;
      progress.begin(phase.name.str());
      Said said;
      OwningOpRef<ModuleOp> finished;
      LogicalResult chosen =
          chooseBefore(phase.name, model.module(), spec, said, finished);
      llvm::errs() << said.text;
      llvm::append_range(choices, said.choices);
      if (failed(chosen)) {
        if (ofSpec.any())
          return badSpec;
        checkMemory();
        return internal;
      }
      if (finished && !showsPhases()) {
        mesh::handProvenance(model.module(), *finished);
        model.replace(std::move(finished));
        noteTime("the rest", start);
        return ok;
      }
      if (mayFold() && few.run(phase.name, model.module(), spec)) {
        noteTime("few layers", start);
        continue;
      }
      PassManager passes(model.module()->getContext());
      if (silence)
        passes.enableCrashReproducerGeneration(reproducerTo(options));
      pipelines::addPhase(passes, phase, spec,
                          /*folds=*/!silence && !showsPhasesBetween(),
                          /*verifies=*/silence || !options.estimate);
      if (options.dumpPassPipeline) {
        llvm::errs() << phase.name << ": ";
        passes.printAsTextualPipeline(llvm::errs());
        llvm::errs() << "\n";
      }
      bool fine = succeeded(passes.run(model.module()));
      if (ofSpec.any())
        return badSpec;
      if (!fine)
        return silence ? tellReproducer(phase.name) : phaseFailed;
      endReading();
      progress.watch();
      noteTime(phase.name, start);
      if (int code = dump(number, phase.name); code != ok)
        return code;
      if (phase.name == options.compileTo)
        break;
    }
    return ok;
  }

  /// A plan tells of the values of all layers; an estimate does not.
  bool mayFold() const {
    return options.estimate && !silence && !showsPhases();
  }

  int tellReproducer(StringRef phase) {
    silence.reset();
    // A pass that crashes for lack of memory is a pass that fails.
    if (isMemoryShort()) // nothing to repair
      llvm::sys::fs::remove(reproducerPath(options));
    checkMemory();
    llvm::errs() << "meshwork: error: " << options.model
                 << " does not compile (phase '" << phase
                 << "'); repeat with: meshwork-opt --run-reproducer "
                 << reproducerPath(options) << "\n";
    return badData;
  }

  /// Whether somebody wants to see each of them.
  bool showsPhases() const {
    return showsPhasesBetween() || !options.compileTo.empty();
  }

  /// Whether somebody wants to see another one than the last.
  bool showsPhasesBetween() const {
    return options.dumpPassPipeline || !options.dumpPhases.empty() ||
           (!options.compileTo.empty() &&
            options.compileTo != pipelines::phases().back().name);
  }

  void noteTime(StringRef what, std::chrono::steady_clock::time_point start) {
    if (options.timing)
      llvm::errs() << llvm::format("%-10s %7.1f ms\n", what.str().c_str(),
                                   std::chrono::duration<double, std::milli>(
                                       std::chrono::steady_clock::now() - start)
                                       .count());
  }

  int dump(size_t number, StringRef phase) {
    if (options.dumpPhases.empty())
      return ok;
    if (std::error_code ec =
            llvm::sys::fs::create_directories(options.dumpPhases))
      return report(runtime::withExitCode(
          absl::FailedPreconditionError(
              quote(options.dumpPhases) +
              ": cannot create the folder: " + ec.message()),
          runtime::ExitCode::cannotCreate));
    return writeFile(dumpPath(options, number, phase), textOf(model.module()),
                     runtime::OutputLink::replaced);
  }

  static uint64_t peakOf(const plan::Plan &plan) {
    uint64_t peak = 0;
    for (const plan::Program *program : *plan.programs())
      peak = std::max(peak, program->arena_bytes() +
                                program->workspace_bytes_per_thread());
    return peak;
  }

  static uint64_t hostBytesOf(const plan::Plan &plan) {
    uint64_t most = 0;
    for (const plan::Program *program : *plan.programs())
      most = std::max(most, program->host_bytes());
    return most;
  }

  /// Whether the plan keeps what [expect] promises.
  int checkBudgets(const plan::Plan &plan) {
    uint64_t peak = peakOf(plan);
    std::string errors = explain::brokenBudgets(plan, spec.collectives);
    std::optional<cost::MemoryLimit> limit = cost::memoryLimit(spec);
    if (limit && peak > limit->bytes)
      errors +=
          memoryError(plan, spec, peak, {model.text(), asked, specsWith()});
    if (uint64_t host = hostBytesOf(plan);
        host > spec.offload.hostBytes.value_or(UINT64_MAX))
      errors +=
          hostMemoryError(plan, spec, host, {model.text(), asked, specsWith()});
    llvm::errs() << errors;
    return errors.empty() ? ok : badSpec;
  }

  /// What there is code for, and whether there are tokens to train on.
  int findTarget(codegen::PlanTarget &target) {
    FailureOr<codegen::PlanTarget> found = codegen::resolveTarget(
        spec, options.cpuCode, [&] { return model.module().emitError(); });
    if (failed(found))
      return badSpec;
    target = std::move(*found);
    if (model.vocabulary() > 0)
      return ok;
    llvm::errs() << "meshwork: error: " << options.model
                 << " has no embedding of %tokens and no head_loss, so nothing "
                    "says which tokens there are\n";
    return badData;
  }

  /// What is estimated may be more than there is: who asks wants to know it.
  void warnOfMemory(const plan::Plan &plan) {
    std::optional<cost::MemoryLimit> limit = cost::memoryLimit(spec);
    if (uint64_t peak = peakOf(plan); limit && peak > limit->bytes)
      llvm::errs() << "meshwork: warning: " << limit->from
                   << ": each rank needs " << explain::exactBytesText(peak)
                   << ", expected at most "
                   << explain::exactBytesText(limit->bytes)
                   << ": it is estimated, but does not compile\n";
  }

  /// The same digits as `explain` would print of the plan with code.
  int tellEstimate() {
    progress.begin("estimate");
    codegen::PlanTarget unused;
    if (int code = findTarget(unused); code != ok)
      return code;
    SpecErrors ofSpec(model.module()->getContext(), spec, origins);
    FailureOr<std::vector<char>> file =
        codegen::planToEstimate(model.module(), spec, choices);
    if (failed(file)) {
      if (ofSpec.any())
        return badSpec;
      checkMemory();
      return internal;
    }
    const plan::Plan &plan = *plan::GetPlan(file->data() + plan::frameBytes);
    warnOfMemory(plan);
    return writeFile(options.output.empty() ? "-" : options.output,
                     options.json ? explain::estimateJson(plan)
                                  : explain::wholeText(plan));
  }

  int emitPlan() {
    auto start = std::chrono::steady_clock::now();
    progress.begin("plan");
    ModuleOp module = model.module();
    codegen::PlanTarget machines;
    if (int code = findTarget(machines); code != ok)
      return code;
    SpecErrors ofSpec(module.getContext(), spec, origins);
    FailureOr<std::vector<char>> file = codegen::writePlan(
        module, spec, machines,
        {options.model, model.text(), model.vocabulary(), origins, choices});
    if (failed(file)) {
      if (ofSpec.any())
        return badSpec;
      checkMemory();
      return internal;
    }
    noteTime("plan", start);
    const plan::Plan &plan = *plan::GetPlan(file->data() + plan::frameBytes);
    if (int code = checkBudgets(plan); code != ok)
      return code;
    std::vector<char> packed = plan::packFile(*file);
    if (int code = writeFile(options.output, {packed.data(), packed.size()});
        code != ok)
      return code;
    std::string whole = explain::wholeText(plan);
    llvm::errs() << "meshwork: e" << StringRef(whole).drop_front();
    return ok;
  }

  const CompileOptions &options;
  const CompileTexts &texts;
  spec::Spec spec, asked;   // with what is "auto" chosen, and as it was given
  codegen::Origins origins; // of the spec's keys
  std::map<std::string, std::string> filesOfSpec; // texts, by paths
  std::vector<codegen::Choice> choices;
  Model model;
  Progress progress;
  std::optional<Silence> silence; // of a run that reproduces a failure
};

/// In a child, which ends without destroying what is large.
int runOnce(const CompileOptions &options, const CompileTexts &texts,
            bool reproduces) {
  // The child's stderr is a pipe.
  bool isTerminal = llvm::sys::Process::StandardErrIsDisplayed();
  return guarded([&] {
    return (new Compilation(options, texts, isTerminal, reproduces))->run();
  });
}

/// What is wrong with the options alone; an exit code.
int checkOptions(const CompileOptions &options) {
  ArrayRef<pipelines::Phase> phases = pipelines::phases();
  auto isNamed = [&](const pipelines::Phase &phase) {
    return phase.name == options.compileTo;
  };
  if (options.compileTo.empty() || llvm::any_of(phases, isNamed))
    return ok;
  std::vector<std::string> names;
  for (const pipelines::Phase &phase : phases)
    names.push_back(phase.name.str());
  return report(absl::InvalidArgumentError(
      "--compile-to is " + quote(options.compileTo) + ", expected " +
      llvm::join(names, ", ") + suggestion(options.compileTo, names)));
}

/// `model` as it was given: it may be a folder.
int readTexts(const CompileOptions &options, const std::string &model,
              CompileTexts &texts) {
  int code = ok;
  texts.spec = readFile(options.spec, code).value_or("");
  if (code == ok && !options.printConfig)
    texts.model = readModel(model, code).value_or("");
  return code;
}

int checkOutputs(const CompileOptions &options) {
  if (options.printConfig)
    return ok;
  for (auto [role, path] : {std::pair("--reproducer", &options.reproducer),
                            std::pair("--dump-phases", &options.dumpPhases)})
    if (*path == "-")
      return report(absl::InvalidArgumentError(
          absl::StrCat(role, " \"-\": several files are written, which stdout "
                             "cannot take; name a path")));
  std::vector<runtime::FileUse> uses = outputsOf(options);
  uses.push_back({"the spec", options.spec});
  uses.push_back({"the model", options.model});
  if (int code = checkUses(uses); code != ok)
    return code;
  for (const std::string &path : {options.output, options.reproducer})
    if (int code = path.empty() ? ok : checkOutput(path); code != ok)
      return code;
  return ok;
}
} // namespace

int compile(const CompileOptions &given) {
  CompileOptions options = given;
  options.model = modelFile(given.model);
  CompileTexts texts;
  for (int code : {checkOptions(options), checkOutputs(options)})
    if (code != ok)
      return code;
  if (int code = readTexts(options, given.model, texts); code != ok)
    return code;
  int code = runOnce(options, texts, /*reproduces=*/false);
  if (code == phaseFailed &&
      (code = runOnce(options, texts, /*reproduces=*/true)) == ok)
    code = report(absl::InternalError("what failed did not fail again"));
  if (code == internal)
    leaveReproducer(options, texts);
  return code;
}

int importModel(const std::string &given, const std::string &output) {
  int code = ok;
  std::string config = modelFile(given);
  std::optional<std::string> json = readModel(given, code);
  if (!json)
    return code;
  if (code = checkUses(
          {{"the model", config}, {"--output", output, /*isWritten=*/true}});
      code != ok)
    return code;
  importer::Result result = importer::importConfig(*json, config);
  llvm::errs() << meshwork::textOf(result.diagnostics);
  if (!result.model)
    return badData;
  return writeFile(output.empty() ? "-" : output, *result.model);
}

} // namespace meshwork::driver
