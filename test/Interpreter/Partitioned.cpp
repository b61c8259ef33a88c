#include "Partitioned.h"

#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Facts.h"
#include "lib/Sharding/Reshard.h"
#include "passes/codegen/plan/PlanWriter.h"
#include "passes/sharding/Shardings.h"
#include "passes/transform/Passes.h"
#include "passes/verify/Reference.h"
#include "passes/verify/RunPlan.h"

#include <cmath>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {
namespace {

/// Kind and name of an op on state.
std::optional<StateKey> keyOf(Operation *op) {
  if (auto parameter = dyn_cast<transformer::ParameterOp>(op))
    return StateKey(StateKind::weight, parameter.getName().str());
  if (auto state = dyn_cast<StateOp>(op))
    return StateKey(state.getKey());
  if (auto assign = dyn_cast<AssignOp>(op))
    return StateKey(assign.getKey());
  if (auto add = dyn_cast<AccumulateOp>(op))
    return StateKey(add.getKey());
  return std::nullopt;
}

/// Of what it reads or writes of a state.
ArrayRef<int64_t> shapeOf(Operation *op) {
  return tensorType(op->getNumResults() ? op->getResult(0) : op->getOperand(0))
      .getShape();
}

/// Visits each index of a rank's part with its place in the whole; nothing
/// instead of a place behind the elements that `rank` holds.
void forEachHeld(ArrayRef<int64_t> localShape, const sharding::Mesh &mesh,
                 const Layout &layout, int64_t rank,
                 llvm::function_ref<void(ArrayRef<int64_t>,
                                         std::optional<ArrayRef<int64_t>>)>
                     visit) {
  std::vector<std::vector<meshwork::layout::Range>> held;
  for (auto [size, axes] : llvm::zip_equal(layout.shape, layout.sharding.dims))
    held.push_back(sharding::rangesOf(mesh, size, axes, rank));
  forEachIndex(localShape, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> at(index);
    bool isHeld = true;
    for (size_t d = 0; d < at.size(); ++d) {
      at[d] = meshwork::layout::positionOf(held[d], at[d]);
      isHeld &= at[d] >= 0;
    }
    visit(index, isHeld ? std::optional<ArrayRef<int64_t>>(at) : std::nullopt);
  });
}

/// Elements of `global` that `rank` holds, and zeros behind them.
Tensor partOf(const Tensor &global, const sharding::Mesh &mesh,
              const Layout &layout, int64_t rank) {
  Tensor part(sharding::localShape(mesh, layout.shape, layout.sharding));
  forEachHeld(part.getShape(), mesh, layout, rank, [&](auto index, auto at) {
    if (at)
      part.at(index) = global.at(*at);
  });
  return part;
}

/// Whether what lies behind the elements that `rank` holds is zero, as it is
/// in all that is kept.
bool addPart(Tensor &global, const Tensor &part, const sharding::Mesh &mesh,
             const Layout &layout, int64_t rank) {
  bool isPaddingZero = true;
  forEachHeld(part.getShape(), mesh, layout, rank, [&](auto index, auto at) {
    if (!at)
      isPaddingZero &= part.at(index) == 0;
    else if (layout.sharding.reduction == sharding::Reduction::max)
      global.at(*at) = std::max<double>(global.at(*at), part.at(index));
    else
      global.at(*at) += part.at(index);
  });
  return isPaddingZero;
}

/// One tensor for each copy: ranks that differ along the axes that the sharding
/// names hold parts, or summands, of the same one.
/// Ranks that do not hold it have none.
std::vector<Tensor> assemble(const sharding::Mesh &mesh, const Layout &layout,
                             ArrayRef<const Tensor *> parts,
                             bool &isPaddingZero) {
  std::vector<sharding::AxisId> named = layout.sharding.partial;
  for (const auto &axes : layout.sharding.dims)
    named.insert(named.end(), axes.begin(), axes.end());
  std::map<int64_t, Tensor> copies;
  for (auto [rank, part] : llvm::enumerate(parts)) {
    if (!part)
      continue;
    int64_t first = mesh.withIndex(static_cast<int64_t>(rank), named, 0);
    Tensor &copy =
        copies.try_emplace(first, Tensor(layout.shape)).first->second;
    isPaddingZero &=
        addPart(copy, *part, mesh, layout, static_cast<int64_t>(rank));
  }
  std::vector<Tensor> result;
  for (auto &[first, copy] : copies)
    result.push_back(copy);
  return result;
}

std::map<StateKey, std::vector<Tensor>>
collect(const Compiled &compiled, const std::map<StateKey, Layout> &layouts,
        ArrayRef<Interpreter> ranks, std::set<std::string> &paddedStates,
        bool isUpdated) {
  std::map<StateKey, std::vector<Tensor>> result;
  for (auto [key, layout] : layouts) {
    // What stages add to, each its own. @update adds it up, the loss in place.
    bool isTotal = isUpdated && compiled.totals.count(key),
         isSum = key.kind == StateKind::gradient ||
                 (!isOfParameter(key.kind) && startsAtZero(key.kind));
    // Each stage counts its own tensors that FP8 cuts off.
    bool isOfStage = key.kind == StateKind::saturated;
    isSum = (isSum && !isTotal) || isOfStage;
    if (compiled.isCut() && isSum)
      layout.sharding.partial.push_back(compiled.stageAxisId());
    SmallVector<const Tensor *> parts;
    for (auto [r, rank] : llvm::enumerate(ranks)) {
      auto known = rank.state.find(key);
      bool isHere = known != rank.state.end() && compiled.isHeld(key, r);
      parts.push_back(isHere ? &known->second : nullptr);
    }
    bool isPaddingZero = true;
    bool isHeld = compiled.isCut()
                      ? llvm::any_of(parts, [](auto *part) { return part; })
                      : llvm::all_of(parts, [](auto *part) { return part; });
    if (isHeld)
      result[key] = assemble(compiled.mesh, layout, parts, isPaddingZero);
    if (!isPaddingZero)
      paddedStates.insert(key.text());
  }
  return result;
}

SmallVector<Tensor> microbatchOf(const Compiled &compiled,
                                 const std::vector<Tensor> &whole,
                                 int64_t rank) {
  SmallVector<Tensor> parts;
  for (auto [tensor, layout] : llvm::zip_equal(whole, compiled.arguments))
    parts.push_back(partOf(tensor, compiled.mesh, layout, rank));
  return parts;
}

/// Of the samples of a microbatch, in the order of @microbatch's arguments.
std::vector<Tensor> argumentsOf(const Compiled &compiled,
                                const verify::StepData &step, int64_t first,
                                int64_t count) {
  std::vector<Tensor> arguments;
  for (const std::string &input : compiled.inputs)
    for (plan::InputKind kind : plan::EnumValuesInputKind())
      if (input == plan::EnumNameInputKind(kind))
        arguments.push_back(step.input(kind, first, count).value());
  return arguments;
}
} // namespace

Compiled::Compiled(const std::string &model, const std::string &specText,
                   int64_t headChunk, const std::string &until)
    : model(model), until(until) {
  spec::Result parsed = spec::parse(specText, "spec.toml");
  diagnostics = textOf(parsed.diagnostics);
  spec = parsed.spec;
  if (!spec)
    return;
  program = std::make_unique<Program>(model);
  for (const pipelines::Phase &phase : pipelines::phases()) {
    if (!runPhase(phase, headChunk)) {
      program.reset();
      return;
    }
    if (phase.name == "shard" || phase.name == until)
      readArguments();
    if (phase.name == "partition" || phase.name == until)
      readStates();
    if (phase.name == until)
      return;
  }
}

static bool apply(const pipelines::Phase &phase, const spec::Spec &spec,
                  int64_t headChunk, Program &program) {
  return program.apply([&](OpPassManager &passes) {
    if (phase.name == "fuse") {
      transform::ExpandHeadPassOptions options;
      options.chunk = headChunk;
      passes.addPass(transform::createExpandHeadPass(options));
    }
    phase.build(passes, spec);
    // Passes are verified one by one, so the gate need not do it again.
    passes.addPass(pipelines::createGatePass(phase.name, /*verifies=*/false));
  });
}

bool Compiled::runPhase(const pipelines::Phase &phase, int64_t headChunk) {
  bool fine = apply(phase, *spec, headChunk, *program);
  if (!fine)
    diagnostics += phase.name.str() + ": " + program->diagnostics;
  return fine;
}

bool Compiled::becomesPlan(uint32_t vocabulary) {
  for (const pipelines::Phase &phase : pipelines::phases())
    if ((phase.name == "schedule" || phase.name == "memory") &&
        !runPhase(phase, 0))
      return false;
  program->diagnostics.clear();
  bool fine = succeeded(codegen::planWithoutCode(
      program->module(), *spec, {"model", "", vocabulary, {}}));
  diagnostics += program->diagnostics;
  return fine;
}

verify::StepData Compiled::dataOfPlan(uint32_t vocabulary) const {
  return {spec->batch.global, spec->batch.sequence, vocabulary, /*seed=*/5};
}

/// `model` on one rank. Which products are in FP8 depends on the sizes of a
/// rank's parts: the step on whole tensors says it, so it is that of all ranks.
static std::unique_ptr<Program> aloneAs(const std::string &model,
                                        const spec::Spec &spec) {
  spec::Spec alone = verify::oneRankOf(spec);
  auto program = std::make_unique<Program>(model);
  for (const pipelines::Phase &phase : pipelines::phases()) {
    bool isWhole = phase.name == "input" || phase.name == "step";
    constexpr int64_t headChunk = 256;
    if (!apply(phase, spec.fp8 && isWhole ? spec : alone, headChunk, *program))
      ADD_FAILURE() << phase.name.str() << ": " << program->diagnostics;
    if (phase.name == "fuse")
      break;
  }
  return program;
}

/// Kept, since many specs ask.
const verify::StepEnd *Compiled::oneRank(const verify::StepData &data) const {
  static std::map<std::pair<std::string, std::string>,
                  std::optional<verify::StepEnd>>
      known;
  std::string alone = spec::print(verify::oneRankOf(*spec));
  if (spec->fp8)
    alone += spec::print(*spec);
  auto [entry, isNew] = known.try_emplace({model, alone});
  if (isNew) {
    std::unique_ptr<Program> one = aloneAs(model, *spec);
    auto end = verify::runReference(one->module(), data, spec->microbatches());
    if (succeeded(end))
      entry->second = *end;
  }
  return entry->second ? &*entry->second : nullptr;
}

std::string Compiled::runAsPlan(uint32_t vocabulary, Change change,
                                verify::Places places) {
  verify::StepData data = dataOfPlan(vocabulary);
  const verify::StepEnd *expected = oneRank(data);
  if (!expected)
    return "one rank has no result";
  program->diagnostics.clear();
  OwningOpRef<ModuleOp> copy(program->module().clone());
  PassManager passes(copy->getContext());
  if (change) {
    change(*copy);
    passes.enableVerifier(false); // The check of a plan is to find it.
  }
  bool isNext = false;
  for (const pipelines::Phase &phase : pipelines::phases()) {
    if (isNext)
      phase.build(passes, *spec);
    isNext |= phase.name == until;
  }
  if (failed(passes.run(*copy)))
    return "does not compile: " + program->diagnostics;
  auto found =
      verify::runPlan(*copy, *spec, vocabulary, data, *expected, places);
  return failed(found) ? program->diagnostics
                       : llvm::join(found->problems, "\n");
}

/// Before they are made local, which drops their shardings.
void Compiled::readArguments() {
  if (!arguments.empty())
    return;
  mesh::MeshAttr attr = mesh::meshOf(program->module());
  if (attr)
    mesh = sharding::meshFrom(attr);
  for (BlockArgument argument :
       program->function("microbatch").getArguments()) {
    std::vector<int64_t> shape = tensorType(argument).getShape().vec();
    mesh::ShardingAttr own = mesh::shardingOf(argument);
    arguments.push_back({shape, own ? sharding::fromAttr(attr, own)
                                    : sharding::replicated(shape.size())});
    inputs.push_back(transformer::inputOf(argument).str());
  }
}

/// All ops on one state must say the same of it.
void Compiled::readStates() {
  if (!states.empty())
    return;
  mesh::MeshAttr attr = mesh::meshOf(program->module());
  std::map<std::string, std::vector<int64_t>> shapes;
  program->module().walk([&](transformer::ParameterOp op) {
    shapes[op.getName().str()] = op.getWholeShape().vec();
  });
  program->module().walk([&](Operation *op) {
    std::optional<StateKey> key = keyOf(op);
    if (!key)
      return;
    auto stored = op->getAttrOfType<mesh::ShardingAttr>(sharding::storedName);
    // One number for a whole parameter, and what is kept for the step, is whole
    // on each rank.
    std::vector<int64_t> shape = shapeOf(op).vec();
    if (!shape.empty() && isOfParameter(key->kind))
      shape = shapes[key->name];
    Layout layout{shape, stored ? sharding::fromAttr(attr, stored)
                                : sharding::replicated(shape.size())};
    EXPECT_TRUE(stored || !attr) << key->name;
    // @update adds up the loss where it stands, and tells what it makes of
    // counts.
    bool isTotal = isa<AssignOp>(op) && !isOfParameter(key->kind) &&
                   startsAtZero(key->kind);
    auto [known, isNew] = (isTotal ? totals : states).try_emplace(*key, layout);
    EXPECT_TRUE(isNew || known->second.sharding == layout.sharding)
        << key->text() << " is stored in two ways";
  });
}

bool Compiled::isCut() const {
  return program && spec->stageRanks() > 1 &&
         !program->module().getOps<ModuleOp>().empty();
}

sharding::AxisId Compiled::stageAxisId() const {
  for (uint32_t axis = 0; axis < spec->mesh.size(); ++axis)
    if (spec->mesh[axis].name == stageAxis())
      return axis;
  return {};
}

bool Compiled::isHeld(const StateKey &key, int64_t rank) const {
  if (!isCut() || !isOfParameter(key.kind))
    return true;
  auto stages = program->module().getOps<ModuleOp>();
  ModuleOp stage =
      *std::next(stages.begin(), mesh.coordinate(rank, stageAxisId()));
  return stage
      .walk([&](transformer::ParameterOp op) {
        return op.getName() == key.name ? WalkResult::interrupt()
                                        : WalkResult::advance();
      })
      .wasInterrupted();
}

StepData randomStep(const Compiled &compiled, int64_t vocabulary, unsigned seed,
                    int microbatches) {
  StepData data;
  const std::vector<int64_t> &tokens = compiled.arguments[0].shape;
  verify::StepData step(microbatches * tokens[0], tokens[1], vocabulary, seed);
  for (int i = 0; i < microbatches; ++i)
    data.microbatches.push_back(
        argumentsOf(compiled, step, i * tokens[0], tokens[0]));
  for (const auto &[key, layout] : compiled.states) {
    // Not negative: some are sums of squares.
    if (key.kind == StateKind::optimizer)
      data.state[key] = randomTensor(layout.shape, seed++, 0, 0.1);
    if (key.kind != StateKind::weight)
      continue;
    // Norms scale around one.
    double middle = layout.shape.size() == 1 ? 1 : 0;
    Tensor weight =
        randomTensor(layout.shape, seed++, middle - 0.6, middle + 0.8);
    data.state[key] = data.state[{StateKind::master, key.name}] = weight;
  }
  return data;
}

/// Runs @`name` on all ranks, of a pipeline each coordinate its own.
static bool runEach(Compiled &compiled, StringRef name,
                    MutableArrayRef<Interpreter> ranks,
                    ArrayRef<SmallVector<Tensor>> arguments) {
  if (!compiled.isCut())
    return succeeded(
        runRanks(compiled.program->function(name), ranks, arguments));
  SmallVector<func::FuncOp> functions;
  for (auto stage : compiled.program->module().getOps<ModuleOp>())
    functions.push_back(stage.lookupSymbol<func::FuncOp>(name));
  return succeeded(
      runStages(functions, compiled.stageAxis(), ranks, arguments));
}

bool tryStep(Compiled &compiled, const StepData &data, StepResult &result) {
  std::vector<Interpreter> ranks(compiled.numRanks());
  for (auto [r, rank] : llvm::enumerate(ranks)) {
    for (const auto &[key, value] : data.state)
      if (auto layout = compiled.states.find(key);
          layout != compiled.states.end() && compiled.isHeld(key, r))
        rank.state[key] = partOf(value, compiled.mesh, layout->second, r);
    if (compiled.isCut()) // Most stages add nothing to the loss.
      rank.state[StateKey(StateKind::loss, "")] =
          Tensor(std::vector<int64_t>{});
    rank.inputs = {{StepInput::seed, 11},
                   {StepInput::step, 3},
                   {StepInput::learning_rate, 0.1}};
  }
  int64_t batch = compiled.arguments[0].shape[0];
  for (auto [i, microbatch] : llvm::enumerate(data.microbatches)) {
    std::vector<SmallVector<Tensor>> arguments;
    for (auto [r, rank] : llvm::enumerate(ranks)) {
      int64_t begin =
          sharding::rangesOf(compiled.mesh, batch,
                             compiled.arguments[0].sharding.dims[0], r)[0]
              .begin;
      rank.inputs[StepInput::first_sample] =
          static_cast<double>(16 + batch * i + begin);
      arguments.push_back(microbatchOf(compiled, microbatch, r));
    }
    if (!runEach(compiled, "microbatch", ranks, arguments))
      return false;
  }
  result.gradients =
      collect(compiled, compiled.states, ranks, result.paddedStates, false);
  std::vector<SmallVector<Tensor>> none(ranks.size());
  if (!runEach(compiled, "update", ranks, none))
    return false;
  std::map<StateKey, Layout> after = compiled.totals;
  after.insert(compiled.states.begin(), compiled.states.end());
  result.updated = collect(compiled, after, ranks, result.paddedStates, true);
  return true;
}

StepResult runStep(Compiled &compiled, const StepData &data) {
  StepResult result;
  if (!tryStep(compiled, data, result)) {
    ADD_FAILURE() << compiled.program->diagnostics;
    return {};
  }
  return result;
}

static void
compareStates(const std::map<StateKey, std::vector<Tensor>> &actual,
              const std::map<StateKey, std::vector<Tensor>> &expected,
              StringRef when, double tolerance, llvm::raw_ostream &text) {
  for (const auto &[key, wanted] : expected) {
    auto name = [&]() -> llvm::raw_ostream & {
      return text << when << " " << key.text() << ": ";
    };
    auto found = actual.find(key);
    if (found == actual.end()) {
      name() << "is not there\n";
      continue;
    }
    for (const Tensor &copy : found->second) {
      double error = relativeError(copy, wanted[0]);
      if (!(error < tolerance)) {
        name() << "differs by " << error << "\n";
        break;
      }
      if (copy.getElements() != found->second[0].getElements()) {
        name() << "copies differ\n";
        break;
      }
    }
  }
}

std::string compareSteps(const StepResult &actual, const StepResult &expected,
                         double tolerance) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (expected.gradients.empty() || expected.updated.empty())
    stream << "nothing is expected\n";
  for (const std::string &state : actual.paddedStates)
    stream << state << ": padding is not zero\n";
  compareStates(actual.gradients, expected.gradients, "microbatches", tolerance,
                stream);
  compareStates(actual.updated, expected.updated, "update", tolerance, stream);
  return text;
}

} // namespace meshwork::interpreter
