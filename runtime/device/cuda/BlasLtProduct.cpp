#include "runtime/device/cuda/BlasLtProduct.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"

namespace meshwork::runtime::cuda {
namespace {
constexpr int maxProposals = 16;

void *pointerTo(DevicePtr address) { return reinterpret_cast<void *>(address); }
} // namespace

absl::StatusOr<std::unique_ptr<BlasLtProduct>>
BlasLtProduct::create(const Place &place, BlasLtProblem problem,
                      std::string name) {
  std::unique_ptr<BlasLtProduct> made(
      new BlasLtProduct(place, std::move(problem), std::move(name)));
  MESHWORK_RETURN_IF_ERROR(made->describe());
  MESHWORK_RETURN_IF_ERROR(made->propose());
  return made;
}

BlasLtProduct::~BlasLtProduct() {
  for (blas::MatrixLayout layout : {a, b, d})
    if (layout)
      (void)place.library.layoutDestroy(layout);
  if (desc)
    (void)place.library.descDestroy(desc);
}

std::string BlasLtProduct::what(const char *call) const {
  return absl::StrCat(call, " for matmul \"", name, "\" (", problem.key(), ")");
}

absl::Status BlasLtProduct::describe(const ColumnMatrix &matrix, int type,
                                     blas::MatrixLayout &layout) {
  MESHWORK_RETURN_IF_ERROR(
      place.library.check(place.library.layoutCreate(
                              &layout, type, static_cast<uint64_t>(matrix.rows),
                              static_cast<uint64_t>(matrix.columns), matrix.ld),
                          what("cublasLtMatrixLayoutCreate")));
  auto set = [&](int attribute, auto value) {
    return place.library.check(
        place.library.layoutSet(layout, attribute, &value, sizeof(value)),
        what("cublasLtMatrixLayoutSetAttribute"));
  };
  MESHWORK_RETURN_IF_ERROR(set(blas::layoutAttribute::batchCount,
                               static_cast<int32_t>(problem.batch)));
  return set(blas::layoutAttribute::batchStride, matrix.batchStride);
}

absl::Status BlasLtProduct::describe() {
  MESHWORK_RETURN_IF_ERROR(describe(problem.a, problem.aType, a));
  MESHWORK_RETURN_IF_ERROR(describe(problem.b, problem.bType, b));
  MESHWORK_RETURN_IF_ERROR(describe(problem.d, problem.outputType, d));
  MESHWORK_RETURN_IF_ERROR(place.library.check(
      place.library.descCreate(&desc, blas::computeF32, blas::dataType::f32),
      what("cublasLtMatmulDescCreate")));
  auto set = [&](int attribute, auto value) {
    return place.library.check(
        place.library.descSet(desc, attribute, &value, sizeof(value)),
        what("cublasLtMatmulDescSetAttribute"));
  };
  auto transform = [](const ColumnMatrix &matrix) {
    return matrix.transposed ? blas::transposed : blas::plain;
  };
  MESHWORK_RETURN_IF_ERROR(
      set(blas::descAttribute::transposeA, transform(problem.a)));
  MESHWORK_RETURN_IF_ERROR(
      set(blas::descAttribute::transposeB, transform(problem.b)));
  if (problem.aScale) {
    MESHWORK_RETURN_IF_ERROR(
        set(blas::descAttribute::scalePointerA, pointerTo(problem.aScale)));
    MESHWORK_RETURN_IF_ERROR(
        set(blas::descAttribute::scalePointerB, pointerTo(problem.bScale)));
  }
  if (problem.accumulatesFast())
    MESHWORK_RETURN_IF_ERROR(
        set(blas::descAttribute::fastAccumulation, int8_t{1}));
  if (problem.multiprocessors > 0)
    MESHWORK_RETURN_IF_ERROR(
        set(blas::descAttribute::multiprocessors,
            static_cast<int32_t>(problem.multiprocessors)));
  MESHWORK_RETURN_IF_ERROR(
      set(blas::descAttribute::epilogue, problem.epilogue));
  if (problem.bias) {
    MESHWORK_RETURN_IF_ERROR(
        set(blas::descAttribute::biasDataType, int32_t{problem.outputType}));
    MESHWORK_RETURN_IF_ERROR(
        set(blas::descAttribute::biasPointer, pointerTo(problem.bias)));
  }
  if (!problem.aux.address)
    return absl::OkStatus();
  MESHWORK_RETURN_IF_ERROR(
      set(blas::descAttribute::auxDataType, int32_t{problem.outputType}));
  MESHWORK_RETURN_IF_ERROR(set(blas::descAttribute::auxLd, problem.aux.ld));
  return set(blas::descAttribute::auxPointer, pointerTo(problem.aux.address));
}

absl::StatusOr<blas::Preference> BlasLtProduct::makePreference() const {
  blas::Preference preference = nullptr;
  absl::Status status =
      place.library.check(place.library.preferenceCreate(&preference),
                          what("cublasLtMatmulPreferenceCreate"));
  auto set = [&](int attribute, auto value) {
    if (status.ok())
      status =
          place.library.check(place.library.preferenceSet(
                                  preference, attribute, &value, sizeof(value)),
                              what("cublasLtMatmulPreferenceSetAttribute"));
  };
  set(blas::preference::maxWorkspaceBytes, problem.workspaceBytes);
  set(blas::preference::reductionSchemes, blas::reduceInComputeType);
  set(blas::preference::alignmentA, problem.a.alignment());
  set(blas::preference::alignmentB, problem.b.alignment());
  set(blas::preference::alignmentC, problem.d.alignment());
  set(blas::preference::alignmentD, problem.outputAlignment());
  if (status.ok())
    return preference;
  if (preference)
    (void)place.library.preferenceDestroy(preference);
  return status;
}

absl::Status BlasLtProduct::propose() {
  blas::Preference preference;
  MESHWORK_ASSIGN_OR_RETURN(preference, makePreference());
  blas::HeuristicResult results[maxProposals] = {};
  int found = 0;
  absl::Status status = place.library.check(
      place.library.heuristic(place.handle, desc, a, b, d, d, preference,
                              maxProposals, results, &found),
      what("cublasLtMatmulAlgoGetHeuristic"));
  (void)place.library.preferenceDestroy(preference);
  MESHWORK_RETURN_IF_ERROR(status);
  for (int i = 0; i < found; ++i)
    if (results[i].state == blas::status::success &&
        results[i].workspaceBytes <= problem.workspaceBytes)
      proposals.push_back(results[i]);
  if (!proposals.empty())
    return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("cuBLASLt has no algorithm for matmul \"", name, "\" (",
                   problem.key(), ")"));
}

absl::Status BlasLtProduct::run(size_t proposal, Stream stream,
                                bool adds) const {
  const float one = 1, beta = adds ? 1 : 0;
  void *to = pointerTo(problem.d.address);
  return place.library.check(
      place.library.matmul(
          place.handle, desc, &one, pointerTo(problem.a.address), a,
          pointerTo(problem.b.address), b, &beta, to, d, to, d,
          &proposals[proposal].algorithm, pointerTo(problem.workspace),
          problem.workspaceBytes, stream),
      what("cublasLtMatmul"));
}

} // namespace meshwork::runtime::cuda
