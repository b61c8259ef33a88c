#include "lib/Target/CudaTarget.h"

using namespace mlir;
namespace meshwork::target {

FailureOr<CudaTarget> resolveCudaTarget(StringRef arch, function_ref<InFlightDiagnostic()> emitError) {
  if (arch == "sm_80")
    return CudaTarget{"sm_80", "+ptx70"};
  if (arch == "sm_90a")
    return CudaTarget{"sm_90a", "+ptx80"};
  if (arch == "sm_100")
    return CudaTarget{"sm_100", "+ptx86"};
  emitError() << "target arch is '" << arch << "', expected sm_80, sm_90a or sm_100";
  return failure();
}

} // namespace meshwork::target
