#include "tools/meshwork/driver/VerifyRun.h"

#include "dialects/transformer/Transformer.h"
#include "lib/Spec/Words.h"
#include "meshwork/Text/Counted.h"
#include "mlir/Pass/PassManager.h"
#include "passes/pipelines/Pipelines.h"
#include "passes/pipelines/SpecFiles.h"
#include "passes/transform/Passes.h"
#include "passes/verify/Reference.h"
#include "passes/verify/RunPlan.h"
#include "passes/verify/Shrink.h"
#include "tools/meshwork/driver/Choices.h"
#include "tools/meshwork/driver/Files.h"
#include "tools/meshwork/driver/Guard.h"
#include "tools/meshwork/driver/Model.h"
#include "tools/meshwork/driver/SpecErrors.h"
#include "tools/meshwork/driver/search/Zero.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include <array>

using namespace mlir;

namespace meshwork::driver {
namespace {

class VerifyRun {
public:
  VerifyRun(const VerifyRunOptions &options, const std::string &specText,
            const std::string &modelText)
      : options(options), specText(specText), modelText(modelText) {}

  int run() {
    for (auto step : {&VerifyRun::readSpec, &VerifyRun::readModel,
                      &VerifyRun::makeSmall, &VerifyRun::runOneRank})
      if (int code = (this->*step)(); code != ok)
        return code;
    for (const Choice &choice : choices())
      if (int code = runAllRanks(choice); code != ok)
        return code;
    return writeOut("Rounding, speed, memory and the machine code of kernels "
                    "are not looked at.\n");
  }

private:
  int readSpec() {
    beginReading(options.spec, badSpec, specText.size());
    spec::Result result =
        spec::parse(specText, options.spec, options.overrides);
    // Sizes of microbatches become small anyway.
    if (result.spec && result.spec->batch.micro == 0) {
      std::vector<std::string> overrides = options.overrides;
      overrides.push_back("batch.micro=1");
      result = spec::parse(specText, options.spec, overrides);
    }
    endReading();
    llvm::errs() << meshwork::textOf(result.diagnostics);
    if (!result.spec)
      return badSpec;
    spec = *result.spec;
    origins = result.origins;
    int code = ok;
    Diagnostics wrong = pipelines::resolveFiles(
        spec, origins, options.spec,
        [&](const std::string &path) { return readFile(path, code); });
    llvm::errs() << meshwork::textOf(wrong);
    return code != ok ? code : hasErrors(wrong) ? badSpec : ok;
  }

  /// As `compile` does: the limits of reading hold until the first phase has
  /// looked at a copy.
  int readModel() {
    beginReading(options.model, badData, modelText.size());
    if (int code = model.read(modelText, options.model); code != ok)
      return code;
    SpecErrors ofSpec(model.module()->getContext(), spec, origins);
    OwningOpRef<ModuleOp> copy(model.module().clone());
    LogicalResult fine = runPhase(*copy, spec, "input");
    endReading();
    if (succeeded(fine)) // What the large step has too much or too little of.
      fine = runPhase(*copy, spec, "step");
    return succeeded(fine) ? ok : ofSpec.any() ? badSpec : badData;
  }

  int makeSmall() {
    FailureOr<verify::SmallStep> made =
        verify::shrink(model.module(), spec, model.vocabulary());
    if (failed(made))
      return internal;
    small = std::move(*made);
    std::string said =
        small.said.empty() ? "the step is run as it is\n" : "made small:\n";
    for (const std::string &line : small.said)
      said += "  " + line + "\n";
    if (int code = writeOut(said); code != ok)
      return code;
    return checkRanks() ? checkTensors() ? ok : badData : badSpec;
  }

  /// What would take too long, or too much memory.
  bool checkRanks() const {
    constexpr uint32_t most = 512;
    if (small.spec.numRanks() <= most)
      return true;
    llvm::errs() << "meshwork: error: " << options.spec
                 << ": the small step has "
                 << counted(small.spec.numRanks(), "rank") << ", and " << most
                 << " can be run at most; leave out axes of the mesh\n";
    return false;
  }
  bool checkTensors() {
    constexpr int64_t most = 1 << 18;
    bool fits = true;
    model.module().walk([&](Operation *op) {
      for (Type type : op->getResultTypes())
        if (fits && elementsOf(type) > most) {
          op->emitError("stays too large to be run in double precision: ")
              << type << " has more than " << most
              << " elements; a dim keeps its size where it is cut at an "
                 "offset, or has another size elsewhere";
          fits = false;
        }
    });
    return fits;
  }
  static int64_t elementsOf(Type type) {
    int64_t elements = 1;
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      for (int64_t size : tensor.getShape())
        if (!ShapedType::isDynamic(size) &&
            llvm::MulOverflow(elements, size, elements))
          return INT64_MAX;
    return elements;
  }

  /// All phases from `first` to `last`, on `module`.
  LogicalResult runPhases(ModuleOp module, spec::Spec &of, StringRef first,
                          StringRef last) {
    bool isFirst = false;
    for (const pipelines::Phase &phase : pipelines::phases()) {
      isFirst |= phase.name == first;
      if (!isFirst)
        continue;
      Said said;
      if (failed(chooseBefore(phase.name, module, of, said)))
        return failure();
      if (of.recompute == spec::Recompute::byBudget)
        takeTurns(of.recomputeOfLayers);
      PassManager passes(module.getContext());
      if (phase.name == "fuse") {
        transform::ExpandHeadPassOptions head;
        head.chunk = small.headChunk;
        passes.addPass(transform::createExpandHeadPass(head));
      }
      phase.build(passes, of);
      passes.addPass(pipelines::createGatePass(phase.name));
      if (failed(passes.run(module)))
        return failure();
      if (phase.name == last)
        break;
    }
    return success();
  }

  /// Every policy, where the compiler would have chosen by memory.
  static void takeTurns(std::vector<spec::Recompute> &layers) {
    constexpr auto policies = static_cast<size_t>(spec::Recompute::byBudget);
    for (auto [i, layer] : llvm::enumerate(layers))
      layer = static_cast<spec::Recompute>(i % policies);
  }

  int runOneRank() {
    OwningOpRef<ModuleOp> one(model.module().clone());
    spec::Spec alone = verify::oneRankOf(small.spec);
    data.emplace(small.spec.batch.global, small.spec.batch.sequence,
                 small.vocabulary, /*seed=*/1);
    SpecErrors ofSpec(one->getContext(), alone, origins);
    if (failed(compileForOne(*one, alone)))
      return ofSpec.any() ? badSpec : internal;
    FailureOr<verify::StepEnd> end =
        verify::runReference(*one, *data, small.spec.microbatches());
    if (failed(end))
      return internal;
    expected = std::move(*end);
    return writeOut(float8);
  }

  /// Which products are in FP8 depends on the sizes of a rank's parts. The step
  /// on whole tensors says it, so one rank takes the step of all ranks.
  LogicalResult compileForOne(ModuleOp one, spec::Spec &alone) {
    spec::Spec ofStep = small.spec.fp8 ? small.spec : alone;
    if (failed(runPhases(one, ofStep, "input", "step")))
      return failure();
    if (small.spec.fp8)
      float8 = productsIn(one);
    return runPhases(one, alone, "shard", "fuse");
  }

  static std::string productsIn(ModuleOp step) {
    int all = 0, inFloat8 = 0;
    bool areRowsRounded = false;
    step.walk([&](Operation *op) {
      if (auto product = dyn_cast<transformer::ContractOp>(op)) {
        ++all;
        inFloat8 += !product.getScales().empty();
      } else if (auto experts = dyn_cast<transformer::ExpertsOp>(op)) {
        areRowsRounded |= !experts.getRowScales().empty();
      }
    });
    return "products in FP8: " + std::to_string(inFloat8) + " of " +
           std::to_string(all) +
           (areRowsRounded ? "; rows of experts are rounded to it\n" : "\n");
  }

  /// What the compiler may choose.
  struct Choice {
    std::string name; // "context.method ring: "; "" of the only one
    spec::Spec spec;
  };
  std::vector<Choice> choices() const {
    using spec::Context, spec::Exchange;
    std::vector<Choice> all = {{"", small.spec}};
    auto vary = [&](const std::string &key, auto values, auto set) {
      std::vector<Choice> more;
      for (const Choice &one : all)
        for (auto value : values) {
          Choice &choice = more.emplace_back(one);
          set(choice.spec, value);
          choice.name += key + " " + std::string(spec::wordOf(value)) + ": ";
        }
      all = more;
    };
    if (small.spec.context == Context::byCost && small.spec.splits("sequence"))
      vary("context.method",
           std::array{Context::gathered, Context::ulysses, Context::ring},
           [](spec::Spec &of, Context value) { of.context = value; });
    if (small.spec.experts.exchange == Exchange::byCost &&
        small.spec.splits("experts"))
      vary("experts.exchange",
           std::array{Exchange::gathered, Exchange::allToAll},
           [](spec::Spec &of, Exchange value) { of.experts.exchange = value; });
    if (small.spec.zero.hasChoice())
      all = withWaysOfZero(all);
    return all;
  }

  static std::vector<Choice> withWaysOfZero(ArrayRef<Choice> choices) {
    std::vector<Choice> all;
    for (const Choice &one : choices)
      for (const spec::Zero &way : waysOfZero(one.spec)) {
        Choice &choice = all.emplace_back(one);
        choice.spec.zero = way;
        for (std::string key : {"zero.gathered", "zero.reduce"})
          if (auto value = spec::valueOf(choice.spec, key))
            choice.name += key + " " + *value + ": ";
      }
    return all;
  }

  int runAllRanks(const Choice &choice) {
    OwningOpRef<ModuleOp> all(model.module().clone());
    spec::Spec of = choice.spec;
    bool isOneOfSeveral = !choice.name.empty();
    {
      std::optional<QuietTrials> quiet;
      std::optional<SpecErrors> ofSpec;
      if (isOneOfSeveral)
        quiet.emplace(all->getContext());
      else
        ofSpec.emplace(all->getContext(), of, origins);
      if (failed(runPhases(*all, of, "input", "memory"))) {
        if (quiet && quiet->areRefused())
          return ok; // not a choice for this model
        if (quiet)
          quiet->tell();
        return ofSpec && ofSpec->any() ? badSpec : internal;
      }
    }
    FailureOr<verify::Findings> found =
        verify::runPlan(*all, of, small.vocabulary, *data, expected);
    if (failed(found))
      return internal;
    return tell(choice.name, *found);
  }

  int tell(const std::string &of, const verify::Findings &found) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    if (found.problems.empty()) {
      uint32_t ranks = small.spec.numRanks();
      stream << of << counted(ranks, "rank")
             << (ranks == 1 ? " computes" : " compute")
             << " what one rank computes: loss, gradients and states, "
             << found.compared << " in all, differ by "
             << llvm::format("%.1e", found.largest) << " at most\n";
      return writeOut(text);
    }
    stream << "meshwork: error: " << of
           << "ranks do not compute what one rank computes; please report it "
              "with the model and the spec\n";
    for (const std::string &line : found.problems)
      stream << "  " << line << "\n";
    llvm::errs() << text;
    return internal;
  }

  const VerifyRunOptions &options;
  const std::string &specText, &modelText;
  spec::Spec spec;
  codegen::Origins origins;
  Model model;
  verify::SmallStep small;
  std::string float8; // which products are; empty: the spec asks for none
  std::optional<verify::StepData> data;
  verify::StepEnd expected;
};
} // namespace

int verifyByRunning(const VerifyRunOptions &given) {
  VerifyRunOptions options = given;
  options.model = modelFile(given.model);
  int code =
      checkUses({{"the spec", options.spec}, {"the model", options.model}});
  if (code != ok)
    return code;
  std::string specText = readFile(options.spec, code).value_or("");
  if (code != ok)
    return code;
  std::string modelText = driver::readModel(given.model, code).value_or("");
  if (code != ok)
    return code;
  return guarded([&] { return VerifyRun(options, specText, modelText).run(); });
}

} // namespace meshwork::driver
