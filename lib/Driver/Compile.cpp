// `meshwork compile` and `meshwork import`.
#include "lib/Driver/Compile.h"

#include <chrono>

#include "dialects/transformer/Transformer.h"
#include "lib/Cost/OfSpec.h"
#include "lib/Driver/Budget.h"
#include "lib/Driver/Files.h"
#include "lib/Driver/FitContext.h"
#include "lib/Driver/FitLayers.h"
#include "lib/Driver/FitRecompute.h"
#include "lib/Driver/FitSchedule.h"
#include "lib/Driver/Guard.h"
#include "lib/Driver/Model.h"
#include "lib/Driver/Reproducer.h"
#include "lib/Driver/SpecErrors.h"
#include "lib/Explain/Explain.h"
#include "lib/Import/Import.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Pipelines/SpecFiles.h"
#include "lib/Spec/Words.h"
#include "lib/Target/PlanWriter.h"
#include "meshwork/Plan/Frame.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/Pass.h"
#include "passes/memory/Liveness.h"
#include "runtime/io/FileUses.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

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

/// One run of `meshwork compile`.
class Compilation {
public:
  Compilation(const CompileOptions &options, const CompileTexts &texts)
      : options(options), texts(texts) {}

  int run() {
    if (int code = readSpec(); code != ok || options.printConfig)
      return code;
    if (int code = readModel(); code != ok)
      return code;
    if (int code = runPhases(); code != ok)
      return code;
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
    llvm::errs() << meshwork::textOf(result.diagnostics);
    if (!result.spec)
      return badSpec;
    spec = *result.spec;
    origins = result.origins;
    if (int code = resolveFiles(); code != ok)
      return code;
    if (options.printConfig)
      return writeOut(spec::printWithOrigins(result));
    if (!options.cpuCode.empty() && spec.device == spec::Device::cpu) {
      llvm::errs()
          << "meshwork: error: --with-cpu-code is for [target] device = "
             "\"cuda\"; the spec's is \"cpu\", which has such code anyway\n";
      return usage;
    }
    return ok;
  }

  int resolveFiles() {
    int code = ok;
    Diagnostics wrong = pipelines::resolveFiles(
        spec, origins, options.spec,
        [&](const std::string &path) { return readFile(path, code); });
    llvm::errs() << meshwork::textOf(wrong);
    return code != ok ? code : hasErrors(wrong) ? badSpec : ok;
  }

  /// Leaves the limits of reading on until the first phase has looked at it.
  int readModel() {
    beginReading(options.model, badData, texts.model.size());
    return isConfig(options.model)
               ? model.importConfig(texts.model, options.model)
               : model.readText(texts.model, options.model);
  }

  int runPhases() {
    SpecErrors ofSpec(model.module()->getContext(), spec, origins);
    for (auto [number, phase] : llvm::enumerate(pipelines::phases())) {
      auto start = std::chrono::steady_clock::now();
      if (phase.name == "shard")
        chooseContext();
      if (phase.name == "pipeline" &&
          (failed(chooseLayers()) || failed(chooseSchedule())))
        return ofSpec.any() ? badSpec : badData;
      if (phase.name == "recompute" && failed(chooseRecompute()))
        return badData;
      PassManager passes(model.module()->getContext());
      passes.enableCrashReproducerGeneration(
          reproducerTo(reproducerPath(options)));
      phase.build(passes, spec);
      passes.addPass(pipelines::createGatePass(phase.name));
      if (options.dumpPassPipeline) {
        llvm::errs() << phase.name << ": ";
        passes.printAsTextualPipeline(llvm::errs());
        llvm::errs() << "\n";
      }
      bool fine = succeeded(passes.run(model.module()));
      if (ofSpec.any()) {
        llvm::sys::fs::remove(
            reproducerPath(options)); // nothing here to repair
        return badSpec;
      }
      if (!fine) {
        llvm::errs() << "meshwork: error: " << options.model
                     << " does not compile (phase '" << phase.name
                     << "'); repeat with: meshwork-opt --run-reproducer "
                     << reproducerPath(options) << "\n";
        return badData;
      }
      endReading();
      noteTime(phase.name, start);
      if (int code = dump(number, phase.name); code != ok)
        return code;
      if (phase.name == options.compileTo)
        break;
    }
    return ok;
  }

  /// The plan carries the choice.
  void chooseContext() {
    if (!spec.splits("sequence") || spec.context != spec::Context::byCost)
      return;
    spec.context = fitContext(model.module(), spec);
    llvm::errs() << "meshwork: context: " << spec::wordOf(spec.context) << "\n";
  }

  LogicalResult chooseLayers() {
    if (failed(fitLayers(model.module(), spec)))
      return failure();
    if (!spec.pipeline.fittedLayers.empty()) {
      llvm::errs() << "meshwork: layers: [";
      llvm::interleaveComma(spec.pipeline.fittedLayers, llvm::errs());
      llvm::errs() << "], for " << cost::memoryLimit(spec)->from << "\n";
    }
    return success();
  }

  LogicalResult chooseSchedule() {
    if (failed(fitSchedule(model.module(), spec)))
      return failure();
    if (spec.pipeline.kept > 0)
      llvm::errs() << "meshwork: schedule: auto; microbatches of a virtual "
                      "stage that a rank may keep: "
                   << spec.pipeline.kept << "\n";
    return success();
  }

  LogicalResult chooseRecompute() {
    using spec::Recompute;
    if (spec.recompute != Recompute::byBudget)
      return success();
    FailureOr<std::vector<Recompute>> policies =
        fitRecompute(model.module(), spec);
    if (failed(policies))
      return failure();
    spec.recomputeOfLayers = *policies;
    llvm::errs() << "meshwork: recompute:";
    for (Recompute policy :
         {Recompute::full, Recompute::selective, Recompute::none})
      if (int64_t count = llvm::count(*policies, policy))
        llvm::errs() << " " << spec::wordOf(policy) << " in " << count
                     << " layers";
    llvm::errs() << "\n";
    return success();
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
    return writeFile(dumpPath(options, number, phase), textOf(model.module()));
  }

  /// Whether the plan keeps what [expect] promises.
  int checkBudgets(const plan::Plan &plan) {
    uint64_t peak = 0;
    for (const plan::Program *program : *plan.programs())
      peak = std::max(peak, program->arena_bytes() +
                                program->workspace_bytes_per_thread());
    std::string errors = explain::brokenBudgets(plan, spec.collectives);
    std::optional<cost::MemoryLimit> limit = cost::memoryLimit(spec);
    if (limit && peak > limit->bytes)
      errors += memoryError(plan, model, spec, peak);
    llvm::errs() << errors;
    return errors.empty() ? ok : badSpec;
  }

  int emitPlan() {
    auto start = std::chrono::steady_clock::now();
    ModuleOp module = model.module();
    FailureOr<target::PlanTarget> machines = target::resolveTarget(
        spec, options.cpuCode, [&] { return module.emitError(); });
    if (failed(machines))
      return badSpec;
    if (model.vocabulary() == 0) {
      llvm::errs()
          << "meshwork: error: " << options.model
          << " has no embedding of %tokens and no head_loss, so nothing "
             "says which tokens there are\n";
      return badData;
    }
    FailureOr<std::vector<char>> file = target::writePlan(
        module, spec, *machines,
        {options.model, model.text(), model.vocabulary(), origins});
    if (failed(file))
      return internal;
    noteTime("plan", start);
    if (int code =
            checkBudgets(*plan::GetPlan(file->data() + plan::frameBytes));
        code != ok)
      return code;
    return writeFile(options.output, {file->data(), file->size()});
  }

  const CompileOptions &options;
  const CompileTexts &texts;
  spec::Spec spec;
  target::Origins origins; // of the spec's keys
  Model model;
};

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
  std::vector<runtime::FileUse> uses = {{"the spec", options.spec},
                                        {"the model", options.model}};
  auto write = [&](const char *role, const std::string &path) {
    if (!path.empty() && path != "-")
      uses.push_back({role, path, /*isWritten=*/true});
  };
  write("--output", options.output);
  write("the reproducer", reproducerPath(options));
  if (!options.dumpPhases.empty())
    for (auto [number, phase] : llvm::enumerate(pipelines::phases()))
      write("--dump-phases", dumpPath(options, number, phase.name));
  if (absl::Status status = runtime::checkFileUses(uses); !status.ok())
    return report(status);
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
  int code = guarded([&] { return Compilation(options, texts).run(); });
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
  absl::Status uses = runtime::checkFileUses(
      {{"the model", config}, {"--output", output, /*isWritten=*/true}});
  if (!output.empty() && !uses.ok())
    return report(uses);
  importer::Result result = importer::importConfig(*json, config);
  llvm::errs() << meshwork::textOf(result.diagnostics);
  if (!result.model)
    return badData;
  return writeFile(output.empty() ? "-" : output, *result.model);
}

} // namespace meshwork::driver
