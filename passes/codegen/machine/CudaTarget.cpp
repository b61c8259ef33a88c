#include "passes/codegen/machine/CudaTarget.h"

using namespace mlir;
namespace meshwork::codegen {

FailureOr<CudaTarget>
resolveCudaTarget(StringRef arch,
                  function_ref<InFlightDiagnostic()> emitError) {
  if (arch == "sm_80")
    return CudaTarget{"sm_80", "+ptx70", false};
  if (arch == "sm_90a")
    return CudaTarget{"sm_90a", "+ptx80", true};
  if (arch == "sm_100")
    return CudaTarget{"sm_100", "+ptx86", true};
  emitError() << "target arch is '" << arch
              << "', expected sm_80, sm_90a or sm_100";
  return failure();
}

FailureOr<std::vector<CudaTarget>>
resolveCudaTargets(StringRef arch, bool needsFloat8,
                   function_ref<InFlightDiagnostic()> emitError) {
  std::vector<CudaTarget> targets;
  for (StringRef name : {"sm_80", "sm_90a", "sm_100"})
    if (arch == "native" || arch == name) {
      CudaTarget target = *resolveCudaTarget(name, emitError);
      if (target.hasFloat8 || !needsFloat8)
        targets.push_back(target);
    }
  if (!targets.empty())
    return targets;
  emitError() << "target arch is '" << arch << "', expected native, "
              << (needsFloat8 ? "" : "sm_80, ") << "sm_90a or sm_100"
              << (needsFloat8 ? ", which have FP8" : "");
  return failure();
}

} // namespace meshwork::codegen
