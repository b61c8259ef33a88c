#include "test/Codegen/Kernel.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "passes/codegen/KernelEmitter.h"
#include "passes/codegen/machine/CpuObject.h"

using namespace mlir;
namespace meshwork::codegen::test {

Kernel::Kernel(const std::string &text, const std::string &arch,
               std::vector<std::vector<int64_t>> strides) {
  compile(text, arch, strides);
  if (!bytes.empty())
    load();
}

Kernel::~Kernel() {
  if (library)
    dlclose(library);
}

void Kernel::compile(const std::string &text, const std::string &arch,
                     const std::vector<std::vector<int64_t>> &strides) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<transformer::TransformerDialect, func::FuncDialect>();
  loadKernelDialects(context);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    messages += diagnostic.str() + "\n";
  });
  auto source = parseSourceString<ModuleOp>(text, &context);
  auto target = codegen::resolveCpuTarget(
      arch, [&] { return emitError(UnknownLoc::get(&context)); });
  if (!source || failed(target))
    return;
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(source->getLoc());
  LogicalResult emitted = success();
  source->walk([&](transformer::FusedOp op) {
    KernelSpec spec = contiguousSpec(op, "kernel");
    for (size_t i = 0; i < strides.size(); ++i)
      if (!strides[i].empty())
        (i < spec.inputs.size() ? spec.inputs[i]
                                : spec.results[i - spec.inputs.size()])
            .strides.assign(strides[i].begin(), strides[i].end());
    numItems = countItems(op);
    numFlops = countFlops(op);
    emitted = emitKernel(spec, *kernels, *target);
  });
  if (failed(emitted) || failed(kernels->verify()))
    return;
  if (getenv("MESHWORK_TEST_DUMP"))
    kernels->dump();
  auto object = codegen::compileToSharedObject(*kernels, *target);
  if (succeeded(object))
    bytes = std::move(*object);
}

void Kernel::load() {
  int file = memfd_create("kernels", 0);
  ASSERT_GE(file, 0);
  ASSERT_EQ(write(file, bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(),
                   RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  close(file);
  function = reinterpret_cast<Function>(dlsym(library, "kernel"));
  ASSERT_NE(function, nullptr);
}

void Kernel::run(std::vector<void *> args, int64_t perCall) const {
  ASSERT_NE(function, nullptr) << messages;
  if (!perCall)
    return function(args.data(), 0, numItems);
  for (int64_t begin = (numItems - 1) / perCall * perCall; begin >= 0;
       begin -= perCall)
    function(args.data(), begin, std::min(begin + perCall, numItems));
}

std::vector<std::string> runnableArchs() {
  std::vector<std::string> archs = {"native"};
  if (__builtin_cpu_supports("avx2"))
    archs.push_back("x86-64-v3");
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
    archs.push_back("x86-64-v4");
  return archs;
}

std::vector<float> randomFloats(size_t count, float low, float high,
                                unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(count);
  for (float &value : values)
    value = distribution(generator);
  return values;
}

uint16_t toBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return (bits >> 16) | 0x40;
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}
float fromBf16(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}
std::vector<uint16_t> toBf16(const std::vector<float> &values) {
  std::vector<uint16_t> result;
  for (float value : values)
    result.push_back(toBf16(value));
  return result;
}

std::string
fill(std::string text,
     const std::vector<std::pair<std::string, std::string>> &values) {
  for (auto &[key, value] : values)
    for (size_t at = 0; (at = text.find("$" + key, at)) != std::string::npos;
         at += value.size())
      text.replace(at, key.size() + 1, value);
  return text;
}

void expectNear(double actual, double expected, double relative, double scale,
                size_t index) {
  double bound = relative * std::max(std::abs(expected), scale);
  EXPECT_TRUE(std::abs(actual - expected) <= bound)
      << "element " << index << " is " << actual << ", expected " << expected;
}

} // namespace meshwork::codegen::test
