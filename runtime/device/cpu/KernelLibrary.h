// The generated kernels of a plan, loaded into this process.
//
// A plan's code runs with the rights of the process: load only plans whose
// author is trusted. The checks here catch damage, not malice.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "meshwork/Plan/Plan.h"

namespace meshwork::runtime {

/// Processes work items [begin, end); see plan::Kernel.
using KernelFn = void (*)(void *const *args, int64_t begin, int64_t end);

class KernelLibrary {
public:
  /// Loads Plan.code and finds every symbol of Plan.kernels. A plan without
  /// kernels needs no code. Errors name the symbol or repeat the loader's text.
  static absl::StatusOr<std::unique_ptr<KernelLibrary>>
  load(const plan::Plan &plan);
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary &) = delete;
  KernelLibrary &operator=(const KernelLibrary &) = delete;

  /// The entry point of Plan.kernels[index]; null when there is none.
  KernelFn kernel(uint32_t index) const {
    return index < functions.size() ? functions[index] : nullptr;
  }

private:
  KernelLibrary() = default;
  void *handle = nullptr;
  std::vector<KernelFn> functions;
};

} // namespace meshwork::runtime
