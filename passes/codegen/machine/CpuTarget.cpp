// What each level of x86-64 has. The lists are those of the psABI's levels v3
// and v4, less what every x86-64 machine has.
#include "passes/codegen/machine/CpuTarget.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
namespace meshwork::codegen {
namespace {
constexpr llvm::StringLiteral level3[] = {"avx",   "avx2",   "bmi",    "bmi2",
                                          "cx16",  "f16c",   "fma",    "lzcnt",
                                          "movbe", "popcnt", "sse4.2", "ssse3"};
constexpr llvm::StringLiteral level4[] = {"avx512bw", "avx512cd", "avx512dq",
                                          "avx512f", "avx512vl"};
constexpr llvm::StringLiteral bf16Feature = "avx512bf16";

CpuTarget makeTarget(bool hasLevel4, bool hasBf16, StringRef tuneFor) {
  CpuTarget target;
  target.arch = hasLevel4 ? "x86-64-v4" : "x86-64-v3";
  target.tuneFor = tuneFor.str();
  target.vectorBits = hasLevel4 ? 512 : 256;
  target.hasBf16 = hasLevel4 && hasBf16;
  for (StringRef feature : level3)
    target.requiredFeatures.push_back(feature.str());
  if (hasLevel4)
    for (StringRef feature : level4)
      target.requiredFeatures.push_back(feature.str());
  if (target.hasBf16)
    target.requiredFeatures.push_back(bf16Feature.str());
  llvm::sort(target.requiredFeatures);
  return target;
}
} // namespace

FailureOr<CpuTarget>
resolveCpuTarget(StringRef arch, function_ref<InFlightDiagnostic()> emitError) {
  if (arch == "x86-64-v3" || arch == "x86-64-v4")
    return makeTarget(arch == "x86-64-v4", false, arch);
  if (arch != "native") {
    emitError() << "target arch is '" << arch
                << "', expected native, x86-64-v3 or x86-64-v4";
    return failure();
  }
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  auto firstMissing = [&](ArrayRef<llvm::StringLiteral> features) {
    for (StringRef feature : features)
      if (!host.lookup(feature))
        return feature;
    return StringRef();
  };
  if (StringRef missing = firstMissing(level3); !missing.empty()) {
    emitError() << "target arch is 'native', but this machine's CPU lacks '"
                << missing
                << "', which x86-64-v3 has; choose the arch of the machine "
                   "that will run";
    return failure();
  }
  return makeTarget(firstMissing(level4).empty(), host.lookup(bf16Feature),
                    llvm::sys::getHostCPUName());
}

} // namespace meshwork::codegen
