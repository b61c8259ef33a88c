#include "Harness.h"

#include "dialects/mesh/Mesh.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/autodiff/Passes.h"
#include "passes/fusion/Passes.h"
#include "passes/partition/Passes.h"
#include "passes/sharding/Passes.h"
#include "passes/transform/Passes.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {
namespace {

/// Short names for types, so that test programs stay readable.
constexpr const char *aliases = R"(
#e = #transformer.dims<embed>
#s = #transformer.dims<sequence>
#v = #transformer.dims<vocab>
#se = #transformer.dims<sequence, embed>
#bs = #transformer.dims<batch, sequence>
#ve = #transformer.dims<vocab, embed>
#bse = #transformer.dims<batch, sequence, embed>
#bshd = #transformer.dims<batch, sequence, heads, head_dim>
#bskd = #transformer.dims<batch, sequence, kv_heads, head_dim>
#bhs = #transformer.dims<batch, heads, sequence>
)";

void registerPasses() {
  static bool once = [] {
    registerTransformsPasses();
    transform::registerTransformPasses();
    autodiff::registerAutodiffPasses();
    sharding::registerShardingPasses();
    partition::registerPartitionPasses();
    fusion::registerFusionPasses();
    return true;
  }();
  (void)once;
}

bool isFloat(Value value) {
  return isa<FloatType>(tensorType(value).getElementType());
}
} // namespace

Program::Program(const std::string &text)
    : context(MLIRContext::Threading::DISABLED) {
  context
      .loadDialect<TransformerDialect, mesh::MeshDialect, func::FuncDialect>();
  context.getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
    diagnostics += diagnostic.str() + "\n";
    return success();
  });
  owned = parseSourceString<ModuleOp>(aliases + text, &context);
  if (!owned) {
    ADD_FAILURE() << diagnostics;
    owned = ModuleOp::create(UnknownLoc::get(&context));
  }
}

func::FuncOp Program::function(StringRef name) {
  return owned->lookupSymbol<func::FuncOp>(name);
}

SmallVector<Tensor> Program::run(ArrayRef<Tensor> arguments, StringRef name) {
  auto results = interpreter.run(function(name), arguments);
  if (succeeded(results))
    return *results;
  ADD_FAILURE() << diagnostics;
  return SmallVector<Tensor>(8); // So that callers may look at results.
}

void Program::transform(const std::string &pipeline) {
  registerPasses();
  PassManager passes(&context, ModuleOp::getOperationName());
  ASSERT_TRUE(succeeded(parsePassPipeline(pipeline, passes, llvm::errs())))
      << pipeline;
  ASSERT_TRUE(succeeded(passes.run(*owned))) << diagnostics;
}

bool Program::apply(function_ref<void(OpPassManager &)> build) {
  PassManager passes(&context, ModuleOp::getOperationName());
  build(passes);
  return succeeded(passes.run(*owned));
}

Tensor randomTensor(std::vector<int64_t> shape, unsigned seed, double low,
                    double high) {
  Tensor tensor(std::move(shape));
  std::mt19937_64 generator(seed);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor[i] =
        low + (high - low) * static_cast<double>(generator() >> 11) * 0x1p-53;
  return tensor;
}

double relativeError(const Tensor &a, const Tensor &b) {
  if (a.getShape() != b.getShape())
    return INFINITY;
  double difference = 0, norm = 0;
  for (int64_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

void buildGradient(Program &program) {
  decomposeModelOps(program.function());
  func::FuncOp gradient = program.function().clone();
  gradient.setName("gradient");
  program.module().push_back(gradient);
  Block &body = gradient.getBody().front();
  Operation *terminator = body.getTerminator();
  OpBuilder builder(terminator);
  DenseMap<Value, Value> sums;
  auto add = [&](Value value, Value part) {
    Value &sum = sums[value];
    sum = sum ? buildSum(builder, value.getLoc(), sum, part) : part;
  };
  unsigned numArguments = gradient.getNumArguments();
  for (Value result : terminator->getOperands())
    add(result, body.addArgument(result.getType(), result.getLoc()));
  SmallVector<Operation *> forward;
  for (Operation &op : body.without_terminator())
    forward.push_back(&op);
  for (Operation *op : llvm::reverse(forward)) {
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    auto known = llvm::map_to_vector(
        op->getResults(), [&](Value value) { return sums.lookup(value); });
    if (!differentiable ||
        llvm::none_of(known, [](Value value) { return !!value; }))
      continue;
    auto needed = llvm::map_to_vector(op->getOperands(), isFloat);
    auto gradients = differentiable.buildGradients(builder, known, needed);
    ASSERT_TRUE(succeeded(gradients)) << program.diagnostics;
    for (auto [operand, part] : llvm::zip_equal(op->getOperands(), *gradients))
      if (part)
        add(operand, part);
  }
  SmallVector<Value> wanted;
  for (Value argument : body.getArguments().take_front(numArguments))
    if (isFloat(argument)) {
      ASSERT_TRUE(sums.contains(argument)) << "argument has no gradient";
      wanted.push_back(sums[argument]);
    }
  terminator->setOperands(wanted);
  gradient.setFunctionType(builder.getFunctionType(
      body.getArgumentTypes(), ValueRange(wanted).getTypes()));
  ASSERT_TRUE(succeeded(mlir::verify(program.module()))) << program.diagnostics;
}

Tensor finiteDifferences(function_ref<double(const Tensor &)> function,
                         const Tensor &at) {
  Tensor moved = at, differences(at.getShape().vec());
  for (int64_t i = 0; i < at.size(); ++i) {
    // The error of central differences is least near the cube root of the
    // rounding error.
    double step = 1e-5 * std::max(1.0, std::abs(at[i]));
    moved[i] = at[i] + step;
    double above = function(moved);
    moved[i] = at[i] - step;
    differences[i] = (above - function(moved)) / (2 * step);
    moved[i] = at[i];
  }
  return differences;
}

void checkGradient(Program &program, ArrayRef<Tensor> arguments,
                   double tolerance) {
  ASSERT_NO_FATAL_FAILURE(buildGradient(program));
  SmallVector<Tensor> weights, extended(arguments);
  for (Type type : program.function().getResultTypes()) {
    weights.push_back(randomTensor(
        cast<RankedTensorType>(type).getShape().vec(), 77 + weights.size()));
    extended.push_back(weights.back());
  }
  SmallVector<Tensor> found = program.run(extended, "gradient");
  unsigned next = 0;
  for (auto [i, argument] :
       llvm::enumerate(program.function().getArguments())) {
    if (!isFloat(argument))
      continue;
    SmallVector<Tensor> moved(arguments);
    auto weightedSum = [&](const Tensor &value) {
      moved[i] = value;
      double sum = 0;
      for (auto [result, weight] : llvm::zip_equal(program.run(moved), weights))
        for (int64_t j = 0; j < result.size(); ++j)
          sum += weight[j] * result[j];
      return sum;
    };
    Tensor expected = finiteDifferences(weightedSum, arguments[i]);
    double size = 0;
    for (double element : expected.getElements())
      size += std::abs(element);
    EXPECT_GT(size, 1e-3) << "argument #" << i
                          << " does not matter: nothing is tested";
    EXPECT_LT(relativeError(found[next++], expected), tolerance)
        << "argument #" << i;
  }
}

} // namespace meshwork::interpreter
