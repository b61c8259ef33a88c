// Which GPUs kernels are generated for.
//
//   auto target = resolveCudaTarget("sm_90a", [] { return emitError(loc); });
#pragma once

#include <string>
#include <vector>

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/LLVM.h"

namespace meshwork::codegen {

struct CudaTarget {
  std::string arch; // sm_80 | sm_90a | sm_100
  std::string
      ptxFeature; // LLVM's name of the oldest PTX version that has this arch
  bool hasFloat8; // tensor cores and conversions of 8 bits
};

/// Other names are an error that lists these.
mlir::FailureOr<CudaTarget>
resolveCudaTarget(llvm::StringRef arch,
                  llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

/// `native` is all of them: the machine that compiles may have no GPU; all that
/// have FP8 when the plan `needsFloat8`.
mlir::FailureOr<std::vector<CudaTarget>>
resolveCudaTargets(llvm::StringRef arch, bool needsFloat8,
                   llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace meshwork::codegen
