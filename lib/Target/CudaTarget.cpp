#include "lib/Target/CudaTarget.h"

using namespace mlir;
namespace meshwork::target {

FailureOr<CudaTarget>
resolveCudaTarget(StringRef arch,
                  function_ref<InFlightDiagnostic()> emitError) {
  if (arch == "sm_80")
    return CudaTarget{"sm_80", "+ptx70"};
  if (arch == "sm_90a")
    return CudaTarget{"sm_90a", "+ptx80"};
  if (arch == "sm_100")
    return CudaTarget{"sm_100", "+ptx86"};
  emitError() << "target arch is '" << arch
              << "', expected sm_80, sm_90a or sm_100";
  return failure();
}

FailureOr<std::vector<CudaTarget>>
resolveCudaTargets(StringRef arch,
                   function_ref<InFlightDiagnostic()> emitError) {
  std::vector<CudaTarget> targets;
  for (StringRef name : {"sm_80", "sm_90a", "sm_100"})
    if (arch == "native" || arch == name)
      targets.push_back(*resolveCudaTarget(name, emitError));
  if (!targets.empty())
    return targets;
  emitError() << "target arch is '" << arch
              << "', expected native, sm_80, sm_90a or sm_100";
  return failure();
}

} // namespace meshwork::target
