// Which CPU kernels are generated for: what the code may use, and what the
// machine that runs it must have.
//
//   auto target = resolveCpuTarget("native", [] { return emitError(loc); });
//   plan.arch = target->arch;                    // "x86-64-v4"
//   plan.cpu_features = target->requiredFeatures;
#pragma once

#include <string>
#include <vector>

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/LLVM.h"

namespace meshwork::codegen {

struct CpuTarget {
  /// x86-64-v3 | x86-64-v4; what `native` resolved to.
  std::string arch;
  /// The CPU to schedule for, by LLVM's name; not a requirement.
  std::string tuneFor;
  /// Of one vector register: 256 or 512.
  unsigned vectorBits = 256;
  /// Rounding f32 to bf16 is one instruction.
  bool hasBf16 = false;
  /// All that the code may use, by the names of llvm::sys::getHostCPUFeatures,
  /// sorted. The runtime refuses a plan when one is absent.
  std::vector<std::string> requiredFeatures;

  /// f32 elements of one vector register.
  unsigned lanes() const { return vectorBits / 32; }
};

/// `arch`: native | x86-64-v3 | x86-64-v4. Other names are an error that lists
/// these; so is `native` on a machine without x86-64-v3. `native` takes the
/// best of these levels that this machine has, and its bf16 instructions.
mlir::FailureOr<CpuTarget>
resolveCpuTarget(llvm::StringRef arch,
                 llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace meshwork::codegen
