// Every scalar function that models are made of, and its derivative as autodiff
// builds it, over the whole range of f32 and bf16 against doubles. The
// functions run on the CPU's kernels, the GPU's in the emulator, and the
// interpreter.
#include <cstring>
#include <limits>
#include <numbers>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/codegen/gpu/GpuKernel.h"
#include "passes/interpreter/Interpreter.h"
#include "test/Codegen/Emulated.h"
#include "test/Codegen/Kernel.h"

using namespace mlir;
using namespace meshwork::codegen::test;
namespace meshwork::codegen {
namespace {

struct Function {
  const char *name;
  const char *body; // of %a : !x; defines %y
  double (*value)(double);
  double (*slope)(double);
  /// What rounding errors are relative to; they exceed the results where those
  /// are differences.
  double (*valueScale)(double);
  double (*slopeScale)(double);
};
void PrintTo(const Function &function, std::ostream *os) {
  *os << function.name;
}

//===-- In doubles, by formulas that neither overflow nor cancel ------------//

double sigmoid(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
double sigmoidSlope(double x) { return sigmoid(x) * sigmoid(-x); }
double silu(double x) { return x * sigmoid(x); }
double siluSlope(double x) { return sigmoid(x) * (1 + x * sigmoid(-x)); }
double siluSlopeScale(double x) { return sigmoid(x) * (1 + std::abs(x)); }

constexpr double geluCube = 0.044715;
double geluInner(double x) {
  return std::sqrt(2 / std::numbers::pi) * (x + geluCube * x * x * x);
}
/// (1 + tanh(u)) / 2 is sigmoid(2 u).
double geluTanh(double x) { return x * sigmoid(2 * geluInner(x)); }
double geluTanhSlope(double x) {
  double up = sigmoid(2 * geluInner(x)), down = sigmoid(-2 * geluInner(x));
  double inner =
      std::sqrt(2 / std::numbers::pi) * (1 + 3 * geluCube * x * x) * 2;
  return up + (up == 0 || down == 0 ? 0 : x * up * down * inner);
}
double gelu(double x) { return x * std::erfc(-x / std::numbers::sqrt2) / 2; }
double geluSlope(double x) {
  double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
  return std::erfc(-x / std::numbers::sqrt2) / 2 +
         (density == 0 ? 0 : x * density);
}
/// 1 + tanh cancels where tanh is not -1 yet.
double bend(double x) { return std::abs(x) < 16 ? 1 + std::abs(x) : 0; }
double geluTanhScale(double x) { return std::abs(geluTanh(x)) + bend(x); }
double geluScale(double x) { return std::abs(gelu(x)) + bend(x); }
double geluSlopeScale(double x) { return 1 + bend(x) * bend(x); }

double relu(double x) { return x <= 0 ? 0 : x; }
double reluSlope(double x) { return x <= 0 ? 0 : 1; }
double one(double) { return 1; }

/// The last half binade of exp is less precise on a CPU.
double expScale(double x) { return std::exp(x) * (x > 88.37 ? 40 : 1); }
double exp(double x) { return std::exp(x); }
double log(double x) { return std::log(x); }
double logScale(double x) { return std::abs(std::log(x)) + 1; }
double reciprocal(double x) { return 1 / x; }
double reciprocalSlope(double x) { return -1 / x / x; }
double tanh(double x) { return std::tanh(x); }
double tanhSlope(double x) { return 1 / std::cosh(x) / std::cosh(x); }
double erf(double x) { return std::erf(x); }
double erfSlope(double x) {
  return 2 / std::sqrt(std::numbers::pi) * std::exp(-x * x);
}
double erfSlopeScale(double x) {
  return erfSlope(x) * (1 + std::min(x * x, 1e3));
}
double sqrt(double x) { return std::sqrt(x); }
double sqrtSlope(double x) { return 0.5 / std::sqrt(x); }
double rsqrt(double x) { return 1 / std::sqrt(x); }
double rsqrtSlope(double x) { return -0.5 / x / std::sqrt(x); }

const Function functions[] = {
    {"sigmoid", "%y = transformer.activate sigmoid %a : !x", sigmoid,
     sigmoidSlope, sigmoid, sigmoidSlope},
    {"silu", "%y = transformer.activate silu %a : !x", silu, siluSlope, silu,
     siluSlopeScale},
    {"gelu_tanh", "%y = transformer.activate gelu_tanh %a : !x", geluTanh,
     geluTanhSlope, geluTanhScale, geluSlopeScale},
    {"gelu", "%y = transformer.activate gelu %a : !x", gelu, geluSlope,
     geluScale, geluSlopeScale},
    {"relu", "%y = transformer.activate relu %a : !x", relu, reluSlope, relu,
     reluSlope},
    {"exp", "math.exp %p", exp, exp, expScale, expScale},
    {"log", "math.log %p", log, reciprocal, logScale, reciprocal},
    {"tanh", "math.tanh %p", tanh, tanhSlope, tanh, one},
    {"erf", "math.erf %p", erf, erfSlope, erf, erfSlopeScale},
    {"sqrt", "math.sqrt %p", sqrt, sqrtSlope, sqrt, sqrtSlope},
    {"rsqrt", "math.rsqrt %p", rsqrt, rsqrtSlope, rsqrt, rsqrtSlope},
    {"reciprocal", "arith.divf %one, %p", reciprocal, reciprocalSlope,
     reciprocal, reciprocalSlope},
};

constexpr const char *text = R"(
#d = #transformer.dims<n>
!x = tensor<$Nx$T, #d>
func.func @f(%a: !x, %g: !x) -> (!x, !x) {
  $B
  return %y, %g : !x, !x
}
)";
constexpr const char *scalarMap = R"(
  %y = transformer.map ins(%a : !x) -> !x {
  ^bb0(%p: f32):
    %one = arith.constant 1.0 : f32
    %r = $B : f32
    transformer.yield %r : f32
  })";

/// @f of values and gradients of the result: values of the function, gradients
/// of its argument.
class Built {
public:
  Built(const Function &function, size_t count, StringRef type) {
    context.loadDialect<transformer::TransformerDialect, func::FuncDialect>();
    loadGpuKernelDialects(context);
    std::string body = function.body;
    if (!StringRef(body).contains("%y"))
      body = fill(scalarMap, {{"B", body}});
    module = parseSourceString<ModuleOp>(
        fill(text,
             {{"N", std::to_string(count)}, {"T", type.str()}, {"B", body}}),
        &context);
    interpreter::decomposeModelOps(this->function());
    differentiate();
    PassManager passes(&context, ModuleOp::getOperationName());
    passes.addPass(createCanonicalizerPass());
    EXPECT_TRUE(succeeded(passes.run(*module)));
  }

  func::FuncOp function() { return module->lookupSymbol<func::FuncOp>("f"); }

  /// Puts all of @f in one cluster.
  transformer::FusedOp fuse() {
    Block &block = function().getBody().front();
    Operation *end = block.getTerminator();
    OpBuilder b(end);
    auto dims = transformer::dimsOf(block.getArgument(0));
    auto fused = transformer::FusedOp::create(
        b, end->getLoc(), end->getOperandTypes(), block.getArguments(),
        transformer::DimsAttr::get(&context, ArrayRef<StringAttr>()), dims);
    Block *inside = fused.getBody().empty() ? b.createBlock(&fused.getBody())
                                            : &fused.getBody().front();
    inside->clear();
    IRMapping mapping;
    for (BlockArgument argument : block.getArguments())
      mapping.map(argument,
                  inside->addArgument(argument.getType(), end->getLoc()));
    b.setInsertionPointToEnd(inside);
    for (auto map : block.getOps<transformer::MapOp>())
      b.clone(*map, mapping);
    SmallVector<Value> yielded = llvm::map_to_vector(
        end->getOperands(), [&](Value value) { return mapping.lookup(value); });
    transformer::YieldOp::create(b, end->getLoc(), yielded);
    end->setOperands(fused.getResults());
    for (auto map : llvm::make_early_inc_range(llvm::reverse(
             llvm::to_vector(block.getOps<transformer::MapOp>()))))
      map.erase();
    EXPECT_TRUE(succeeded(module->verify()));
    return fused;
  }

  std::string print() {
    std::string printed;
    llvm::raw_string_ostream stream(printed);
    module->print(stream);
    return printed;
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;

private:
  void differentiate() {
    Operation *end = function().getBody().front().getTerminator();
    OpBuilder builder(end);
    auto map = end->getOperand(0).getDefiningOp<transformer::MapOp>();
    auto gradients = map.buildGradients(builder, {end->getOperand(1)}, {true});
    ASSERT_TRUE(succeeded(gradients));
    end->setOperand(1, gradients->front());
  }
};

//===-- Points and what is right at them ------------------------------------//

/// Every `step`-th bit pattern of bf16.
std::vector<uint16_t> bf16Points(unsigned step) {
  std::vector<uint16_t> points;
  for (unsigned bits = 0; bits < 1u << 16; bits += step)
    points.push_back(static_cast<uint16_t>(bits));
  return points;
}

/// Bit patterns of f32 at even distances, and the range where functions bend.
std::vector<float> f32Points() {
  std::vector<float> points;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 32749)
    points.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (float x = -110; x < 110; x += 0.00703125f)
    points.push_back(x);
  return points;
}

struct Tolerance {
  double relative;
  double smallest = 2e-36; // what underflows on the way may be zero
  double largest = std::numeric_limits<float>::max();
};
constexpr float gradient = -1.5;
constexpr Tolerance ofF32{1.5e-6}, ofBf16{1.0 / 256 + 2e-6},
    // Its constants are f32.
    ofDoubles{1e-7, 2e-36, std::numeric_limits<double>::max()};

/// At infinities, and where the gradient times `x` is one, a NaN is right, too.
bool isRight(double found, double exact, double scale, double x,
             const Tolerance &tolerance) {
  bool isInfinite = !(std::abs(x * gradient) <= tolerance.largest);
  if (std::isnan(exact) || (isInfinite && std::isnan(found)))
    return std::isnan(found);
  double bound =
      tolerance.relative * std::max(std::abs(scale), std::abs(exact)) +
      tolerance.smallest;
  if (std::abs(exact) > tolerance.largest * (1 - tolerance.relative))
    return std::abs(found) >=
               tolerance.largest * (1 - 2 * tolerance.relative) &&
           std::signbit(found) == std::signbit(exact);
  return std::abs(found - exact) <= bound;
}

/// Compares `values(i)` and `slopes(i)`, the gradients, at `points(i)`.
void expectRight(const Function &function, size_t count, const Tolerance &near,
                 llvm::function_ref<double(size_t)> points,
                 llvm::function_ref<double(size_t)> values,
                 llvm::function_ref<double(size_t)> slopes) {
  size_t wrong = 0;
  auto report = [&](const char *what, double x, double found, double exact) {
    if (wrong++ < 8)
      ADD_FAILURE() << function.name << ": " << what << " at " << x << " is "
                    << found << ", expected " << exact;
  };
  for (size_t i = 0; i < count; ++i) {
    double x = points(i);
    bool isDenormal = std::abs(x) < std::numeric_limits<float>::min();
    if (isDenormal && (x != 0 || std::signbit(x)))
      continue; // They may count as zero, and a zero's sign may change.
    double value = function.value(x), slope = function.slope(x) * gradient;
    if (!isRight(values(i), value, function.valueScale(x), x, near))
      report("value", x, values(i), value);
    if (!isRight(slopes(i), slope, function.slopeScale(x), x, near))
      report("slope", x, slopes(i), slope);
  }
  EXPECT_EQ(wrong, 0u);
}

class Functions : public testing::TestWithParam<Function> {};

TEST_P(Functions, CpuKernelsOnF32) {
  std::vector<float> x = f32Points(), g(x.size(), gradient), y(x.size()),
                     dx(x.size());
  Built built(GetParam(), x.size(), "f32");
  built.fuse();
  for (const std::string &arch : runnableArchs()) {
    if (arch == "native")
      continue; // It is one of the others.
    SCOPED_TRACE(arch);
    Kernel kernel(built.print(), arch);
    ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
    kernel.run({x.data(), g.data(), y.data(), dx.data()});
    expectRight(
        GetParam(), x.size(), ofF32, [&](size_t i) { return x[i]; },
        [&](size_t i) { return y[i]; }, [&](size_t i) { return dx[i]; });
  }
}

TEST_P(Functions, CpuKernelsOnAllOfBf16) {
  std::vector<uint16_t> x = bf16Points(1), g(x.size(), toBf16(gradient)),
                        y(x.size()), dx(x.size());
  Built built(GetParam(), x.size(), "bf16");
  built.fuse();
  Kernel kernel(built.print(), "native");
  ASSERT_TRUE(kernel.isCompiled()) << kernel.errors();
  kernel.run({x.data(), g.data(), y.data(), dx.data()});
  expectRight(
      GetParam(), x.size(), ofBf16, [&](size_t i) { return fromBf16(x[i]); },
      [&](size_t i) { return fromBf16(y[i]); },
      [&](size_t i) { return fromBf16(dx[i]); });
}

/// Runs the kernel of `built` in the emulator on tensors of equal size.
template <class T>
void emulate(Built &built, std::vector<T> *const (&tensors)[4]) {
  OpBuilder builder = OpBuilder::atBlockEnd(built.module->getBody());
  transformer::FusedOp fused = built.fuse();
  auto module = gpu::GPUModuleOp::create(builder, fused.getLoc(), "kernels");
  FailureOr<GpuKernel> kernel =
      emitGpuKernel(contiguousSpec(fused, "kernel"), module);
  ASSERT_TRUE(succeeded(kernel));
  std::vector<uint64_t> arguments;
  std::vector<Bytes> memory;
  for (std::vector<T> *tensor : tensors) {
    arguments.push_back(reinterpret_cast<uint64_t>(tensor->data()));
    memory.push_back(
        {reinterpret_cast<char *>(tensor->data()), tensor->size() * sizeof(T)});
  }
  ASSERT_EQ(runEmulated(module, *kernel, arguments, memory), "");
}

TEST_P(Functions, EmulatedGpu) {
  std::vector<float> x;
  for (uint16_t bits : bf16Points(32))
    x.push_back(fromBf16(bits));
  for (float infinite : {INFINITY, -INFINITY, NAN, 88.7f, -88.7f})
    x.push_back(infinite);
  std::vector<float> g(x.size(), gradient), y(x.size()), dx(x.size());
  Built built(GetParam(), x.size(), "f32");
  emulate(built, {&x, &g, &y, &dx});
  expectRight(
      GetParam(), x.size(), ofF32, [&](size_t i) { return x[i]; },
      [&](size_t i) { return y[i]; }, [&](size_t i) { return dx[i]; });
}

// Functions of which only bf16 are seen may have exponentials of fewer bits.
TEST_P(Functions, EmulatedGpuOnAllOfBf16) {
  std::vector<uint16_t> x = bf16Points(1), g(x.size(), toBf16(gradient)),
                        y(x.size()), dx(x.size());
  Built built(GetParam(), x.size(), "bf16");
  emulate(built, {&x, &g, &y, &dx});
  expectRight(
      GetParam(), x.size(), ofBf16, [&](size_t i) { return fromBf16(x[i]); },
      [&](size_t i) { return fromBf16(y[i]); },
      [&](size_t i) { return fromBf16(dx[i]); });
}

// Half a unit of the last product, and that of the emulator's ex2, which on a
// GPU is 2^-22.
TEST(ExpOfAGpu, IsAsPreciseAsItsTableSays) {
  const Function &exp = *std::ranges::find_if(
      functions, [](const Function &f) { return StringRef(f.name) == "exp"; });
  std::vector<float> x = f32Points();
  for (float edge : {88.7228f, 88.7229f, 89.0f, 89.1f, 3e38f, -87.3f, -87.4f,
                     -3e38f, -1e-30f, 1e-40f, INFINITY, -INFINITY, NAN})
    x.push_back(edge);
  x.resize(x.size() / 8 * 8);
  std::vector<float> g(x.size(), 1), y(x.size()), dx(x.size());
  Built built(exp, x.size(), "f32");
  emulate(built, {&x, &g, &y, &dx});
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double exact = std::exp(double(x[i]));
    if (std::isnan(x[i]))
      EXPECT_TRUE(std::isnan(y[i]));
    else if (exact < 0x1p-126)
      EXPECT_LE(y[i], 0x1.00001p-126) << x[i];
    else if (exact >= 0x1.ffffffp127)
      EXPECT_EQ(y[i], INFINITY) << x[i];
    else
      worst = std::max(worst, std::abs(y[i] / exact - 1));
  }
  EXPECT_LT(worst, 0x1.1p-23);
}

TEST_P(Functions, Interpreter) {
  std::vector<uint16_t> bits = bf16Points(16);
  auto count = static_cast<int64_t>(bits.size());
  Built built(GetParam(), bits.size(), "f32");
  interpreter::Tensor x({count}), g({count});
  for (int64_t i = 0; i < count; ++i) {
    x[i] = fromBf16(bits[i]);
    g[i] = gradient;
  }
  interpreter::Interpreter interpreter;
  auto results = interpreter.run(built.function(), {x, g});
  ASSERT_TRUE(succeeded(results));
  expectRight(
      GetParam(), bits.size(), ofDoubles,
      [&](size_t i) { return x[static_cast<int64_t>(i)]; },
      [&](size_t i) { return (*results)[0][static_cast<int64_t>(i)]; },
      [&](size_t i) { return (*results)[1][static_cast<int64_t>(i)]; });
}

INSTANTIATE_TEST_SUITE_P(All, Functions, testing::ValuesIn(functions),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
} // namespace meshwork::codegen
