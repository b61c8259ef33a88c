#include "tools/meshwork/driver/Budget.h"

#include "lib/Cost/OfSpec.h"
#include "lib/Explain/Explain.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/HostUse.h"
#include "tools/meshwork/driver/Files.h"
#include "tools/meshwork/driver/Model.h"
#include "tools/meshwork/driver/search/Advice.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace meshwork::driver {

/// Of a model that is read again: phases have changed the one that there was.
static std::string adviceOn(uint64_t Trial::*needed, const spec::Spec &spec,
                            const Asked &asked,
                            const std::vector<Change> &changes) {
  Model model;
  if (model.readText(asked.model, "") != ok)
    return "";
  std::optional<cost::MemoryLimit> limit = cost::memoryLimit(spec);
  return advice(model.module(), asked.spec, asked.specWith,
                {limit ? limit->bytes : UINT64_MAX,
                 spec.offload.hostBytes.value_or(UINT64_MAX), needed},
                changes);
}

/// Of a pipeline whose layers could go elsewhere.
static std::string layersText(const spec::Spec &spec) {
  if (spec.pipeline.fittedLayers.empty())
    return "";
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "no layout of the layers fits that was tried; the nearest, "
            "pipeline.layers = [";
  llvm::interleaveComma(spec.pipeline.fittedLayers, stream);
  stream << "], is the one of this error\n";
  return text;
}

std::string memoryError(const plan::Plan &plan, const spec::Spec &spec,
                        uint64_t peakBytes, const Asked &asked) {
  cost::MemoryLimit limit = *cost::memoryLimit(spec);
  std::string text =
      llvm::formatv("meshwork: error: {0}: each rank needs {1}, "
                    "expected at most {2}\n",
                    limit.from, explain::exactBytesText(peakBytes),
                    explain::exactBytesText(limit.bytes));
  return text + explain::peakMemory(plan) + "\n" + layersText(spec) +
         adviceOn(&Trial::bytes, spec, asked, changesOf(asked.spec));
}

std::string hostMemoryError(const plan::Plan &plan, const spec::Spec &spec,
                            uint64_t hostBytes, const Asked &asked) {
  std::string text = llvm::formatv(
      "meshwork: error: offload.host_memory_per_rank: each rank keeps {0} in "
      "the host's memory ({1}), expected at most {2}\n",
      explain::exactBytesText(hostBytes), explain::kindsOnHost(plan),
      explain::exactBytesText(*spec.offload.hostBytes));
  return text +
         adviceOn(&Trial::hostBytes, spec, asked, hostChangesOf(asked.spec));
}

} // namespace meshwork::driver
