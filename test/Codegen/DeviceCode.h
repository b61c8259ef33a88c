// What instructions that are no clusters run on a GPU, executed by the
// emulator, which also checks addresses, barriers and races.
//
//   Instructions code(view("x", memref({count}, "f32")) + "schedule.fill ...");
//   code.run(0, buffer); // the launch's flag, then the operands
#pragma once

#include <random>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "passes/codegen/gpu/DeviceKernels.h"
#include "passes/codegen/gpu/library/DeviceLibrary.h"
#include "passes/codegen/machine/CudaCode.h"
#include "test/Support/Emulator/KernelTest.h"
#include "gtest/gtest.h"

namespace meshwork::codegen {
using namespace mlir;
using ptx::Buffer;

inline float floatOf(float value) { return value; }
inline float floatOf(uint16_t bits) {
  return llvm::bit_cast<float>(uint32_t{bits} << 16);
}
template <typename T> T rounded(float value) {
  if constexpr (std::is_same_v<T, float>)
    return value;
  auto bits = llvm::bit_cast<uint32_t>(value);
  return static_cast<T>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// The kernels of an instruction in the schedule dialect's text.
class Instructions {
public:
  explicit Instructions(const std::string &text) {
    context.loadDialect<schedule::ScheduleDialect>();
    module = parseSourceString<ModuleOp>(
        "schedule.program @rank arena 1099511627776 {\n%a = schedule.buffer "
        "\"a\" "
        "activations persistent at 0 : "
        "memref<1099511627776xi8>\n%b = schedule.buffer \"b\" activations "
        "persistent at 0 : memref<1099511627776xi8>\nschedule.list forward "
        "{\n" +
            text + "\n}\n}\n",
        &context);
    if (!module)
      return;
    OwningOpRef<ModuleOp> code(ModuleOp::create(UnknownLoc::get(&context)));
    FailureOr<DeviceKernels> emitted = emitDeviceKernels(*module, *code);
    if (failed(emitted))
      return;
    for (const auto &[op, calls] : emitted->library.ofInstruction)
      for (uint32_t call : calls)
        list.push_back(emitted->library.kernels[call]);
    auto target = codegen::resolveCudaTarget(
        "sm_80", [&] { return module->emitError(); });
    auto texts = codegen::compileToPtx(
        {emitted->clusterModule, emitted->libraryModule, deviceLibrary()},
        {*target});
    if (succeeded(texts))
      kernels = std::make_unique<ptx::Kernels>(
          ptx::Kernels::fromText(texts->front()));
  }

  template <typename... Arguments>
  void run(int32_t adds, const Arguments &...pointers) {
    ASSERT_TRUE(kernels) << "no PTX";
    for (const LibraryKernel &kernel : list)
      launch(kernel, pointers..., adds, workspace.address());
  }

  uint32_t lastBlocks = UINT32_MAX; // of a launch that run

private:
  template <typename... Arguments>
  void launch(const LibraryKernel &kernel, const Arguments &...arguments) {
    ptx::Shape shape{.grid = {static_cast<uint32_t>(kernel.grid)},
                     .block = {static_cast<uint32_t>(kernel.block)},
                     .sharedBytes = static_cast<uint32_t>(kernel.sharedBytes)};
    if (lastBlocks < shape.grid.x)
      shape.firstBlock = shape.grid.x - lastBlocks;
    absl::Status status = kernels->launch(kernel.function, shape, arguments...);
    EXPECT_TRUE(status.ok()) << status;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::vector<LibraryKernel> list; // of the one instruction, in order
  Buffer<uint8_t> workspace{1 << 20};
  std::unique_ptr<ptx::Kernels> kernels;
};

inline std::string memref(std::vector<int64_t> shape, const char *type,
                          std::vector<int64_t> strides = {}) {
  std::string dims, places;
  if (strides.empty()) {
    strides.assign(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;)
      strides[i - 1] = strides[i] * shape[i];
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    dims += std::to_string(shape[i]) + "x";
    places += (i ? ", " : "") + std::to_string(strides[i]);
  }
  return "memref<" + dims + type + ", strided<[" + places + "]>>";
}

inline std::string view(const char *name, const std::string &type,
                        int64_t offset = 0, const char *buffer = "a") {
  return std::string("%") + name + " = schedule.view %" + buffer + " at " +
         std::to_string(offset) + " : memref<1099511627776xi8> to " + type +
         "\n";
}

template <typename T> std::vector<T> randomRows(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(-1, 1);
  std::vector<T> values(count);
  for (T &value : values)
    value = rounded<T>(numbers(random));
  return values;
}
template <typename T> const char *typeName() {
  return std::is_same_v<T, float> ? "f32" : "bf16";
}

} // namespace meshwork::codegen
