// `meshwork compile` and `meshwork import`.
#include "lib/Driver/Compile.h"

#include <chrono>

#include "dialects/transformer/Transformer.h"
#include "lib/Driver/Budget.h"
#include "lib/Driver/Files.h"
#include "lib/Driver/FitRecompute.h"
#include "lib/Driver/Model.h"
#include "lib/Driver/SpecErrors.h"
#include "lib/Explain/Explain.h"
#include "lib/Import/Import.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Target/PlanWriter.h"
#include "meshwork/Plan/Frame.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/Pass.h"
#include "passes/memory/Liveness.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

constexpr uint64_t maxTextBytes = uint64_t{64} << 20;

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

/// One run of `meshwork compile`.
class Compilation {
public:
  explicit Compilation(const CompileOptions &options) : options(options) {}

  int run() {
    if (!options.compileTo.empty() && !isPhase(options.compileTo)) {
      llvm::errs() << "meshwork: error: --compile-to is '" << options.compileTo
                   << "', expected ";
      llvm::interleave(
          pipelines::phases(), llvm::errs(),
          [](const pipelines::Phase &p) { llvm::errs() << p.name; }, ", ");
      llvm::errs() << "\n";
      return usage;
    }
    if (int code = readSpec(); code != ok || options.printConfig)
      return code;
    if (int code = model.read(options.model, maxTextBytes); code != ok)
      return code;
    if (int code = runPhases(); code != ok)
      return code;
    if (!options.compileTo.empty()) {
      std::string text = textOf(model.module());
      return writeFile(options.output.empty() ? "-" : options.output,
                       text.data(), text.size());
    }
    return emitPlan();
  }

private:
  static bool isPhase(StringRef name) {
    return llvm::any_of(pipelines::phases(), [&](const pipelines::Phase &p) {
      return p.name == name;
    });
  }

  int readSpec() {
    int code = ok;
    std::optional<std::string> text =
        readFile(options.spec, maxTextBytes, code);
    if (!text)
      return code;
    spec::Result result = spec::parse(*text, options.spec, options.overrides);
    llvm::errs() << meshwork::textOf(result.diagnostics);
    if (!result.spec)
      return badSpec;
    if (options.printConfig)
      llvm::outs() << spec::printWithOrigins(result);
    spec = *result.spec;
    origins = result.origins;
    if (!options.cpuCode.empty() && spec.device == spec::Device::cpu) {
      llvm::errs()
          << "meshwork: error: --with-cpu-code is for [target] device = "
             "\"cuda\"; the spec's is \"cpu\", which has such code anyway\n";
      return usage;
    }
    return ok;
  }

  std::string reproducerPath() const {
    if (!options.reproducer.empty())
      return options.reproducer;
    return (options.output.empty() || options.output == "-"
                ? std::string("meshwork")
                : options.output) +
           ".reproducer.mlir";
  }

  int runPhases() {
    SpecErrors ofSpec(model.module()->getContext(), spec, origins);
    for (auto [number, phase] : llvm::enumerate(pipelines::phases())) {
      auto start = std::chrono::steady_clock::now();
      if (phase.name == "recompute" && failed(chooseRecompute()))
        return badData;
      PassManager passes(model.module()->getContext());
      passes.enableCrashReproducerGeneration(reproducerPath());
      phase.build(passes, spec);
      passes.addPass(pipelines::createGatePass(phase.name));
      if (options.dumpPassPipeline) {
        llvm::errs() << phase.name << ": ";
        passes.printAsTextualPipeline(llvm::errs());
        llvm::errs() << "\n";
      }
      bool fine = succeeded(passes.run(model.module()));
      if (ofSpec.any()) {
        llvm::sys::fs::remove(reproducerPath()); // nothing here to repair
        return badSpec;
      }
      if (!fine) {
        llvm::errs() << "meshwork: error: " << options.model
                     << " does not compile (phase '" << phase.name
                     << "'); repeat with: meshwork-opt --run-reproducer "
                     << reproducerPath() << "\n";
        return badData;
      }
      noteTime(phase.name, start);
      if (int code = dump(number, phase.name); code != ok)
        return code;
      if (phase.name == options.compileTo)
        break;
    }
    return ok;
  }

  LogicalResult chooseRecompute() {
    if (spec.recompute != "auto")
      return success();
    FailureOr<std::vector<std::string>> policies =
        fitRecompute(model.module(), spec);
    if (failed(policies))
      return failure();
    spec.recomputeOfLayers = *policies;
    llvm::errs() << "meshwork: recompute:";
    for (StringRef policy : {"full", "selective", "none"})
      if (int64_t count = llvm::count(*policies, policy))
        llvm::errs() << " " << policy << " in " << count << " layers";
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
            llvm::sys::fs::create_directories(options.dumpPhases)) {
      llvm::errs() << "meshwork: error: cannot create " << options.dumpPhases
                   << ": " << ec.message() << "\n";
      return cannotCreate;
    }
    SmallString<128> path(options.dumpPhases);
    llvm::sys::path::append(path,
                            llvm::formatv("{0}-{1}.mlir", number, phase).str());
    std::string text = textOf(model.module());
    return writeFile(path.str().str(), text.data(), text.size());
  }

  /// Whether the plan keeps what [expect] promises.
  int checkBudgets(const plan::Plan &plan) {
    uint64_t peak = 0;
    for (const plan::Program *program : *plan.programs())
      peak = std::max(peak, program->arena_bytes() +
                                program->workspace_bytes_per_thread());
    std::string errors = explain::brokenBudgets(plan, spec.collectives);
    if (peak > spec.memoryPerRankBytes.value_or(UINT64_MAX))
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
    return writeFile(options.output, file->data(), file->size());
  }

  const CompileOptions &options;
  spec::Spec spec;
  target::Origins origins; // of the spec's keys
  Model model;
};
} // namespace

int compile(const CompileOptions &options) {
  return Compilation(options).run();
}

int importModel(const std::string &config, const std::string &output) {
  int code = ok;
  std::optional<std::string> json = readFile(config, maxTextBytes, code);
  if (!json)
    return code;
  importer::Result result = importer::importConfig(*json, config);
  llvm::errs() << meshwork::textOf(result.diagnostics);
  if (!result.model)
    return badData;
  return writeFile(output.empty() ? "-" : output, result.model->data(),
                   result.model->size());
}

} // namespace meshwork::driver
