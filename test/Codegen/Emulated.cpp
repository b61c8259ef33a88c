#include "test/Codegen/Emulated.h"

#include <cstring>

#include "passes/codegen/machine/CudaCode.h"
#include "test/Support/Emulator/ptx/Module.h"

using namespace mlir;
namespace meshwork::codegen::test {
namespace {
constexpr uint64_t group = 16;

class Allowed : public ptx::Memory {
public:
  explicit Allowed(ArrayRef<Bytes> memory) {
    for (const Bytes &bytes : memory) {
      uint64_t begin = reinterpret_cast<uint64_t>(bytes.begin),
               end = begin + bytes.count;
      ranges.push_back(
          {begin / group * group, (end + group - 1) / group * group});
    }
  }
  ptx::Range find(uint64_t address) const override {
    for (const ptx::Range &range : ranges)
      if (range.covers(address, 1))
        return range;
    return {};
  }
  std::string describe(uint64_t) const override {
    return "no operand is there";
  }

private:
  std::vector<ptx::Range> ranges;
};
} // namespace

std::string runEmulated(gpu::GPUModuleOp module, const GpuKernel &kernel,
                        ArrayRef<uint64_t> arguments, ArrayRef<Bytes> memory,
                        StringRef arch, ArrayRef<Blocks> blocks) {
  auto target =
      codegen::resolveCudaTarget(arch, [&] { return module.emitError(); });
  auto texts = codegen::compileToPtx({module, nullptr, {}}, *target);
  if (failed(texts))
    return "no PTX";
  auto code = ptx::Module::parse(texts->front());
  if (!code.ok())
    return code.status().ToString();
  const ptx::Program *program = (*code)->kernel(kernel.function);
  if (!program || program->parameters.size() != arguments.size())
    return "PTX has no '" + kernel.function + "' of " +
           std::to_string(arguments.size()) + " arguments";
  std::vector<std::byte> parameters(program->parameterBytes);
  for (auto [parameter, value] :
       llvm::zip_equal(program->parameters, arguments))
    std::memcpy(parameters.data() + parameter.offset, &value,
                parameter.bytes); // little endian
  Allowed allowed(memory);
  auto size = [](int64_t count) {
    return ptx::Dim3{static_cast<uint32_t>(count)};
  };
  for (const Blocks &some : blocks)
    if (absl::Status status = (*code)->launch(kernel.function,
                                              {.grid = size(kernel.grid()),
                                               .block = size(kernel.block()),
                                               .firstBlock = some.first,
                                               .endBlock = some.end},
                                              parameters, allowed);
        !status.ok())
      return status.ToString();
  return "";
}

} // namespace meshwork::codegen::test
