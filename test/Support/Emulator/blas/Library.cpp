// The functions that the library exports.
#include "runtime/device/cuda/BlasLtApi.h"
#include "test/Support/Emulator/Emulator.h"
#include "test/Support/Emulator/blas/Objects.h"
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>

using namespace meshwork::runtime::cuda;
using namespace meshwork::runtime::cuda::blas;
namespace result = meshwork::runtime::cuda::result;

extern "C" Result cuMemGetInfo_v2(size_t *free, size_t *total);

namespace {
constexpr uint64_t magic = 0x6d657368776f726b;
constexpr size_t workspaceAlignment = 256;
static_assert(sizeof(Proposal) <= sizeof(Algorithm));

template <typename T> Status set(T &to, const void *value, size_t bytes) {
  if (!value || bytes != sizeof(T))
    return status::invalidValue;
  std::memcpy(&to, value, sizeof(T));
  return status::success;
}

template <typename T> Status destroyed(T *object) {
  delete object;
  return status::success;
}

/// The parts of a split sum, one block of a column at a time.
constexpr uint64_t splitWorkspaceBytes = 4096;

/// A number, or all with an epilogue, or all without.
bool isSlow(int proposal, uint32_t epilogue) {
  const char *variable = std::getenv("MESHWORK_EMULATOR_BLAS_SLOW");
  std::string slow = variable ? variable : "";
  if (slow == "epilogues" || slow == "products")
    return (epilogue != epilogue::none) == (slow == "epilogues");
  return !slow.empty() && std::atoi(slow.c_str()) == proposal;
}

bool isAligned(const void *address, uint32_t alignment) {
  return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

Status checkCall(const Product &product, size_t workspaceBytes) {
  const Proposal &proposal = product.proposal;
  bool isOurs = proposal.magic == magic &&
                proposal.problem == hashOf(product.desc, product.aLayout,
                                           product.bLayout, product.dLayout);
  if (!isOurs || workspaceBytes < proposal.workspaceBytes)
    return status::invalidValue;
  if (!isAligned(product.workspace, workspaceAlignment) ||
      (proposal.workspaceBytes > 0 && !product.workspace))
    return status::invalidValue;
  const void *addresses[4] = {product.a, product.b, product.c, product.d};
  const size_t widths[4] = {product.aLayout.width(), product.bLayout.width(),
                            product.dLayout.width(), product.dLayout.width()};
  // Bias and aux go in the units of d: PyTorch promises the bias in one with d.
  if ((addsBias(product.desc.epilogue) &&
       !isAligned(product.desc.bias, proposal.alignments[3])) ||
      (hasAux(product.desc.epilogue) &&
       !isAligned(product.desc.aux, proposal.alignments[3])))
    return status::notSupported;
  for (int i = 0; i < 4; ++i)
    if (!isAligned(addresses[i], proposal.alignments[i]) ||
        !isAligned(addresses[i], isFloat8(product.aLayout.type)
                                     ? uint32_t{16}
                                     : static_cast<uint32_t>(widths[i])))
      return status::notSupported;
  return status::success;
}

struct Named {
  Status status;
  const char *name, *text;
};
constexpr Named names[] = {
    {status::success, "CUBLAS_STATUS_SUCCESS", "success"},
    {status::notInitialized, "CUBLAS_STATUS_NOT_INITIALIZED",
     "no handle or no context"},
    {status::invalidValue, "CUBLAS_STATUS_INVALID_VALUE",
     "a parameter is in conflict with others"},
    {status::executionFailed, "CUBLAS_STATUS_EXECUTION_FAILED",
     "the device reported an error"},
    {status::notSupported, "CUBLAS_STATUS_NOT_SUPPORTED",
     "no kernel for this problem"},
};
const Named &named(Status status) {
  static constexpr Named unknown{-1, "an unknown status", "no description"};
  for (const Named &entry : names)
    if (entry.status == status)
      return entry;
  return unknown;
}
} // namespace

extern "C" {
size_t cublasLtGetVersion() { return 130100; }
const char *cublasLtGetStatusName(Status status) { return named(status).name; }
const char *cublasLtGetStatusString(Status status) {
  return named(status).text;
}

Status cublasLtCreate(Handle *handle) {
  size_t free = 0, total = 0;
  if (!handle)
    return status::invalidValue;
  if (cuMemGetInfo_v2(&free, &total) != result::success)
    return status::notInitialized; // no context is current
  *handle = new HandleObject;
  return status::success;
}
Status cublasLtDestroy(Handle handle) { return destroyed(handle); }

Status cublasLtMatmulDescCreate(MatmulDesc *desc, int computeType,
                                int scaleType) {
  *desc = new MatmulDescObject;
  (*desc)->computeType = computeType;
  (*desc)->scaleType = scaleType;
  return status::success;
}
Status cublasLtMatmulDescDestroy(MatmulDesc desc) { return destroyed(desc); }

Status cublasLtMatmulDescSetAttribute(MatmulDesc desc, int attribute,
                                      const void *value, size_t bytes) {
  switch (attribute) {
  case descAttribute::transposeA:
    return set(desc->transposeA, value, bytes);
  case descAttribute::transposeB:
    return set(desc->transposeB, value, bytes);
  case descAttribute::epilogue:
    return set(desc->epilogue, value, bytes);
  case descAttribute::biasPointer:
    return set(desc->bias, value, bytes);
  case descAttribute::auxPointer:
    return set(desc->aux, value, bytes);
  case descAttribute::auxLd:
    return set(desc->auxLd, value, bytes);
  case descAttribute::auxDataType:
    return set(desc->auxType, value, bytes);
  case descAttribute::scalePointerA:
    return set(desc->scaleA, value, bytes);
  case descAttribute::scalePointerB:
    return set(desc->scaleB, value, bytes);
  case descAttribute::fastAccumulation:
    return set(desc->fastAccumulation, value, bytes);
  case descAttribute::biasDataType:
    return set(desc->biasType, value, bytes);
  case descAttribute::multiprocessors:
    return set(desc->multiprocessors, value, bytes);
  }
  return status::invalidValue;
}

Status cublasLtMatrixLayoutCreate(MatrixLayout *layout, int type, uint64_t rows,
                                  uint64_t columns, int64_t ld) {
  *layout = new MatrixLayoutObject{type, rows, columns, ld};
  return status::success;
}
Status cublasLtMatrixLayoutDestroy(MatrixLayout layout) {
  return destroyed(layout);
}

Status cublasLtMatrixLayoutSetAttribute(MatrixLayout layout, int attribute,
                                        const void *value, size_t bytes) {
  if (attribute == layoutAttribute::batchCount)
    return set(layout->batch, value, bytes);
  if (attribute == layoutAttribute::batchStride)
    return set(layout->batchStride, value, bytes);
  return status::invalidValue;
}

Status cublasLtMatmulPreferenceCreate(Preference *preference) {
  *preference = new PreferenceObject;
  return status::success;
}
Status cublasLtMatmulPreferenceDestroy(Preference preference) {
  return destroyed(preference);
}

Status cublasLtMatmulPreferenceSetAttribute(Preference preference,
                                            int attribute, const void *value,
                                            size_t bytes) {
  switch (attribute) {
  case preference::maxWorkspaceBytes:
    return set(preference->workspaceBytes, value, bytes);
  case preference::reductionSchemes:
    return set(preference->reductionSchemes, value, bytes);
  case preference::alignmentA:
  case preference::alignmentB:
  case preference::alignmentC:
  case preference::alignmentD:
    return set(preference->alignments[attribute - preference::alignmentA],
               value, bytes);
  }
  return status::invalidValue;
}

Status cublasLtMatmulAlgoGetHeuristic(Handle handle, MatmulDesc desc,
                                      MatrixLayout a, MatrixLayout b,
                                      MatrixLayout c, MatrixLayout d,
                                      Preference preference, int wanted,
                                      HeuristicResult *results, int *found) {
  if (!handle)
    return status::notInitialized;
  if (!preference || !results || !found || wanted < 1)
    return status::invalidValue;
  *found = 0;
  if (Status problem = checkProblem(desc, a, b, c, d))
    return problem;
  for (uint32_t splits : {1u, 2u}) {
    uint64_t bytes = splits > 1 ? splitWorkspaceBytes : 0;
    bool allowed = splits == 1 ||
                   (preference->reductionSchemes & reduceInComputeType) != 0;
    if (*found == wanted || !allowed || bytes > preference->workspaceBytes)
      continue;
    Proposal proposal{magic,  hashOf(*desc, *a, *b, *d),     bytes, {},
                      splits, isSlow(*found, desc->epilogue)};
    std::memcpy(proposal.alignments, preference->alignments,
                sizeof(proposal.alignments));
    HeuristicResult &result = results[(*found)++];
    result = {};
    std::memcpy(&result.algorithm, &proposal, sizeof(proposal));
    result.workspaceBytes = bytes;
  }
  return status::success;
}

Status cublasLtMatmul(Handle handle, MatmulDesc desc, const void *alpha,
                      const void *a, MatrixLayout aLayout, const void *b,
                      MatrixLayout bLayout, const void *beta, const void *c,
                      MatrixLayout cLayout, void *d, MatrixLayout dLayout,
                      const Algorithm *algorithm, void *workspace,
                      size_t workspaceBytes, Stream stream) {
  if (!handle)
    return status::notInitialized;
  if (!alpha || !beta || !a || !b || !c || !d || !algorithm)
    return status::invalidValue;
  if (Status problem = checkProblem(desc, aLayout, bLayout, cLayout, dLayout))
    return problem;
  if (c == d && (cLayout->ld != dLayout->ld ||
                 cLayout->batchStride != dLayout->batchStride))
    return status::invalidValue;
  Product product{*desc,
                  *aLayout,
                  *bLayout,
                  *dLayout,
                  a,
                  b,
                  c,
                  d,
                  static_cast<float *>(workspace),
                  *static_cast<const float *>(alpha),
                  *static_cast<const float *>(beta),
                  {}};
  std::memcpy(&product.proposal, algorithm, sizeof(product.proposal));
  if (Status call = checkCall(product, workspaceBytes))
    return call;
  if (desc->multiprocessors > 0)
    meshworkEmulatorNote("cublasLtMatmul on", static_cast<unsigned long long>(
                                                  desc->multiprocessors));
  int queued = meshworkEmulatorEnqueue(
      stream, [](void *state) { static_cast<Product *>(state)->run(); },
      new Product(product),
      [](void *state) { delete static_cast<Product *>(state); });
  return queued == result::success ? status::success : status::executionFailed;
}
}
