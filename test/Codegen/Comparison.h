// A cluster's GPU kernel, executed in the emulator, against the CPU's kernel of
// the same cluster.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinTypes.h"
#include "passes/codegen/gpu/GpuKernel.h"
#include "test/Codegen/Kernel.h"

namespace meshwork::codegen::test {

/// A tensor's memory, 16-byte aligned, with what must stay around it.
struct Tensor {
  mlir::Type element;
  std::vector<char> store;
  size_t bytes;
  explicit Tensor(mlir::Type type)
      : element(llvm::cast<mlir::RankedTensorType>(type).getElementType()) {
    bytes = llvm::cast<mlir::RankedTensorType>(type).getNumElements() *
            (element.getIntOrFloatBitWidth() / 8);
    store.assign(bytes + 96, 0x55);
  }
  char *begin() {
    return reinterpret_cast<char *>(
        (reinterpret_cast<uintptr_t>(store.data()) + 31) / 16 * 16);
  }
  /// Whether nothing was stored beside it.
  bool isWholeAround() {
    auto isFresh = [](char byte) { return byte == 0x55; };
    return std::all_of(store.data(), begin(), isFresh) &&
           std::all_of(begin() + bytes, store.data() + store.size(), isFresh);
  }
  size_t count() const { return bytes / (element.getIntOrFloatBitWidth() / 8); }
  double at(size_t i) {
    if (element.isBF16())
      return fromBf16(reinterpret_cast<uint16_t *>(begin())[i]);
    if (element.getIntOrFloatBitWidth() == 8) // its bits
      return reinterpret_cast<uint8_t *>(begin())[i];
    if (element.isInteger(32))
      return reinterpret_cast<int32_t *>(begin())[i];
    return reinterpret_cast<float *>(begin())[i];
  }
  /// Uniform in [low, 2); integers in [0, limit).
  void fillRandom(unsigned seed, float low, int64_t limit) {
    std::vector<float> values = randomFloats(count(), low, 2, seed);
    for (size_t i = 0; i < count(); ++i)
      if (element.isBF16())
        reinterpret_cast<uint16_t *>(begin())[i] = toBf16(values[i]);
      else if (element.isF32())
        reinterpret_cast<float *>(begin())[i] = values[i];
      else
        reinterpret_cast<int32_t *>(begin())[i] = static_cast<int32_t>(
            (values[i] - low) / (2 - low) * static_cast<float>(limit));
  }
};

struct Comparison {
  float low = -2; // of random operands
  double relative =
      4e-6;             // of results of f32; of bf16 one unit in the last place
  bool inPlace = false; // result 0 lies where operand 0 does
  const char *arch = "sm_80"; // f8 is there from sm_89 on
  std::function<void(std::vector<Tensor> &)> change = {}; // of operands
};
/// Runs the one cluster of `text` both ways on random operands. `look` sees the
/// geometry of its first kernel.
void expectCpuResults(const std::string &text, Comparison &&how = {},
                      llvm::function_ref<void(const Geometry &)> look = {});

/// `text` of so many rows, columns and chunks; "$I" is one over the columns.
std::string sized(const char *text, int64_t rows, int64_t cols,
                  const std::string &type, int64_t chunks = 1);

} // namespace meshwork::codegen::test
