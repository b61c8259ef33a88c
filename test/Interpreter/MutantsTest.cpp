// The equivalence tests can fail: single mistakes in what moves between ranks
// are all noticed, by a verifier or by a result that differs from one rank's.
#include "Mutate.h"
#include "TinyConfigs.h"

#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Transformer.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace meshwork::interpreter;
using namespace meshwork::transformer;
namespace mesh = meshwork::mesh;

namespace {

/// A program that is changed and put back.
class Subject {
public:
  Subject(const std::string &model, const std::string &spec)
      : compiled(model, spec, 256, "partition") {
    if (!compiled.program)
      return;
    // Autodiff leaves operands that no result depends on.
    compiled.program->apply([](OpPassManager &passes) {
      passes.addPass(createCanonicalizerPass());
    });
    original = compiled.program->module().clone();
  }

  /// All of them, in the order of the program.
  std::vector<Operation *> ops() {
    std::vector<Operation *> list;
    compiled.program->module().walk([&](Operation *op) { list.push_back(op); });
    return list;
  }

  void putBack() {
    compiled.program->diagnostics.clear();
    Block *body = compiled.program->module().getBody();
    body->clear();
    for (Operation &op : *original->getBody())
      body->push_back(op.clone());
  }

  Compiled compiled;
  OwningOpRef<ModuleOp> original;
};

StringAttr nameOfDim(Value value, int64_t dim) {
  return dimsOf(value).getNames()[dim];
}

/// The blocks of a gathered dim may stand in any order where it is summed up.
bool isOnlySummed(mesh::AllGatherOp gather) {
  StringAttr dim = nameOfDim(gather.getResult(), gather.getDim());
  return llvm::all_of(gather->getUsers(), [&](Operation *user) {
    auto reduce = dyn_cast<ReduceOp>(user);
    return reduce && reduce.getKind() == Reduction::add &&
           reduce.getDims().find(dim) >= 0;
  });
}

/// Mutants that mean the same, for a reason that the program shows.
bool isEquivalent(Operation *op, const Mutation &mutation) {
  if (auto gather = dyn_cast<mesh::AllGatherOp>(op))
    return mutation.name == "all_gather: axes in another order" &&
           isOnlySummed(gather);
  return false;
}

class Trial {
public:
  Trial(Subject &subject, const StepData &data, const StepResult &expected)
      : subject(subject), data(data), expected(expected) {}

  void run() {
    for (size_t i = 0, n = subject.ops().size(); i < n; ++i)
      for (const Mutation &mutation : mutationsOf(subject.ops()[i])) {
        Operation *op = subject.ops()[i];
        bool noticed = !isEquivalent(op, mutation);
        std::string text;
        llvm::raw_string_ostream(text) << *op;
        mutation.apply(op);
        EXPECT_EQ(isNoticed(mutation.name), noticed) << mutation.name << " at\n"
                                                     << text;
        if (noticed && (runsAll || ++count % 16 == 0))
          EXPECT_NE(subject.compiled.runAsPlan(12), "")
              << "by running the plan: " << mutation.name << " at\n"
              << text;
        subject.putBack();
      }
  }

  int byVerifier = 0;
  std::map<std::string, int> byResult; // by the mutation's name

private:
  bool isNoticed(const std::string &name) {
    if (failed(mlir::verify(subject.compiled.program->module())))
      return ++byVerifier;
    StepResult result;
    if (!tryStep(subject.compiled, data, result))
      return true; // states of another size than they are stored
    return !compareSteps(result, expected).empty() && ++byResult[name];
  }

  const bool runsAll = std::getenv("MESHWORK_ALL_CASES") != nullptr;
  int count = 0;
  Subject &subject;
  const StepData &data;
  const StepResult &expected;
};

struct Case {
  std::string model, spec;
};
std::vector<Case> cases() {
  Strategy zero1{.dp = 2,
                 .tp = 2,
                 .sequenceParallel = true,
                 .zero = 1,
                 .zeroAxes = {"dp"}};
  Strategy zero3{.fsdp = 2, .tp = 2, .zero = 3, .zeroAxes = {"fsdp"}};
  Strategy zero2{
      .dp = 2, .fsdp = 2, .tp = 2, .zero = 2, .zeroAxes = {"dp", "fsdp"}};
  // A pin that needs every kind of collective.
  std::string pinned = R"([mesh]
axes = ["fsdp=2", "cp=2"]
[batch]
global = 16
micro = 4
sequence = 4
[precision]
compute = "f32"
[optimizer]
clip_grad_norm = 0.5
[shard]
batch = ["fsdp"]
vocab = ["cp"]
[[shard.tensor]]
name = "h.0.attn.c_attn.weight"
dims = '[{"cp", "fsdp"}, {}, {}, {?}]'
[zero]
stage = 3
axes = ["fsdp"]
)";
  // A position that no token has would have no gradient to lose.
  std::string gpt2 = tinyGpt2({.positions = 4});
  return {{tinyLlama({.keyHeads = 2}), zero1.spec()},
          {tinyLlama({.keyHeads = 1, .tied = true}), zero3.spec()},
          {gpt2, zero2.spec()},
          {gpt2, pinned}};
}

class Mutants : public testing::TestWithParam<int> {};
TEST_P(Mutants, AreNoticed) {
  Case given = cases()[GetParam()];
  Subject subject(given.model, given.spec);
  ASSERT_TRUE(subject.compiled.program) << subject.compiled.diagnostics;
  StepData data = randomStep(subject.compiled, 12);
  const StepResult &expected = expectedStep(given.model, Strategy(), 12);
  ASSERT_EQ(compareSteps(runStep(subject.compiled, data), expected), "");
  Trial trial(subject, data, expected);
  trial.run();
  EXPECT_GE(trial.byVerifier, 100);
  // Each is made, and none is left to the verifier alone.
  for (const char *name :
       {"all_reduce: dropped", "all_reduce: twice", "all_reduce: mean for sum",
        "all_reduce: the other reduction", "reduce_scatter: not summed",
        "reduce_scatter: summed before too", "reduce_scatter: mean for sum",
        "reduce_scatter: result of the rank before",
        "all_gather: input of the rank before"})
    EXPECT_GE(trial.byResult[name], 3) << name;
}
INSTANTIATE_TEST_SUITE_P(Programs, Mutants, testing::Range(0, 4));

/// The parameter whose gradient a collective sums: as it goes into the state,
/// or as it comes out of it; "" for what else it may sum.
std::string gradientName(mlir::Operation *sum) {
  using meshwork::transformer::AccumulateOp, meshwork::transformer::StateOp;
  for (mlir::Operation *op = sum; op && isa<mesh::CollectiveOpInterface>(op);
       op = op->getOperand(0).getDefiningOp())
    if (auto state = op->getOperand(0).getDefiningOp<StateOp>())
      return state.getName().str();
  for (mlir::Operation *op = sum; op && isa<mesh::CollectiveOpInterface>(op);
       op = op->use_empty() ? nullptr : *op->getUsers().begin())
    for (mlir::Operation *user : op->getUsers())
      if (auto accumulate = dyn_cast<AccumulateOp>(user))
        return accumulate.getName().str();
  return "";
}

/// The least visible one: under sequence parallelism each rank has norms'
/// gradients of its own tokens.
TEST(NormGradients, AreReduced) {
  Case given = cases()[0];
  Subject subject(given.model, given.spec);
  StepData data = randomStep(subject.compiled, 12);
  int numNorms = 0;
  for (size_t i = 0, n = subject.ops().size(); i < n; ++i) {
    auto sum = dyn_cast<mesh::AllReduceOp>(subject.ops()[i]);
    std::string name = sum ? gradientName(sum) : "";
    if (name.find("norm.weight") == std::string::npos)
      continue;
    ++numNorms;
    sum.getResult().replaceAllUsesWith(sum.getInput());
    std::string differences =
        compareSteps(runStep(subject.compiled, data),
                     expectedStep(given.model, Strategy(), 12));
    EXPECT_NE(differences.find("update weight of \"" + name), std::string::npos)
        << differences;
    subject.putBack();
  }
  EXPECT_EQ(numNorms, 3);
}

} // namespace
