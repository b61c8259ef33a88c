// A product's bias and epilogue as cuBLASLt takes them; of BlasLtProblem.cpp.
#pragma once

#include "runtime/device/cuda/BlasLtProblem.h"

namespace meshwork::runtime::cuda {

/// invalidArgument unless `view` has this shape.
absl::Status expectShape(const DeviceView &view,
                         const std::vector<int64_t> &shape, const char *role);

/// Whether the library can add `bias` to n columns; denseRows: dst has them.
absl::Status checkBias(const DeviceView &bias, int64_t n, bool denseRows);

/// Whether the library has the epilogue for such operands, and aux lies as it
/// must.
absl::Status checkEpilogue(const MatmulRequest &request, bool denseRows);

bool isGelu(plan::Epilogue epilogue);

/// The library's number of what the plan asks for, bias included, and a
/// number's name as in the library's header, without its prefix
/// (blas::epilogue).
uint32_t libraryEpilogueOf(const MatmulRequest &request, bool denseRows);
const char *epilogueNameOf(uint32_t epilogue);

} // namespace meshwork::runtime::cuda
