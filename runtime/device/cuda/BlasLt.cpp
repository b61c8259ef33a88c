#include "runtime/device/cuda/BlasLt.h"
#include "absl/strings/str_cat.h"
#include "runtime/StatusMacros.h"

namespace meshwork::runtime::cuda {
namespace {
constexpr int maxCandidates = 8;

void *pointerTo(DevicePtr address) { return reinterpret_cast<void *>(address); }
} // namespace

absl::StatusOr<std::unique_ptr<BlasLt>> BlasLt::create(const Driver &driver,
                                                       Device device) {
  const BlasLtLibrary *library;
  MESHWORK_ASSIGN_OR_RETURN(library, BlasLtLibrary::open());
  blas::Handle handle = nullptr;
  MESHWORK_RETURN_IF_ERROR(
      library->check(library->create(&handle), "cublasLtCreate"));
  return std::unique_ptr<BlasLt>(new BlasLt(driver, *library, handle, device));
}

BlasLt::~BlasLt() { (void)library.destroy(handle); }

absl::StatusOr<std::unique_ptr<BlasLtMatmul>>
BlasLt::prepare(const MatmulRequest &request) const {
  absl::StatusOr<BlasLtProblem> problem = problemOf(request);
  if (!problem.ok())
    return absl::Status(problem.status().code(),
                        absl::StrCat("matmul \"", request.name,
                                     "\": ", problem.status().message()));
  std::unique_ptr<BlasLtMatmul> matmul(new BlasLtMatmul(
      driver, library, handle, device, *std::move(problem), request.name));
  MESHWORK_RETURN_IF_ERROR(matmul->describe());
  absl::Status proposed = matmul->propose();
  if (absl::IsUnimplemented(proposed) && matmul->problem.asksForEpilogue())
    return absl::UnimplementedError(absl::StrCat(
        proposed.message(),
        "; a plan compiled with target.epilogues = \"never\" asks for no such "
        "epilogue"));
  MESHWORK_RETURN_IF_ERROR(proposed);
  return matmul;
}

BlasLtMatmul::BlasLtMatmul(const Driver &driver, const BlasLtLibrary &library,
                           blas::Handle handle, Device device,
                           BlasLtProblem problem, std::string name)
    : driver(driver), library(library), handle(handle), device(device),
      problem(std::move(problem)), name(std::move(name)) {}

BlasLtMatmul::~BlasLtMatmul() {
  for (blas::MatrixLayout layout : {a, b, d})
    if (layout)
      (void)library.layoutDestroy(layout);
  if (desc)
    (void)library.descDestroy(desc);
}

std::string BlasLtMatmul::what(const char *call) const {
  return absl::StrCat(call, " for matmul \"", name, "\" (", problem.key(), ")");
}

absl::Status BlasLtMatmul::describe(const ColumnMatrix &matrix, int type,
                                    blas::MatrixLayout &layout) {
  MESHWORK_RETURN_IF_ERROR(library.check(
      library.layoutCreate(&layout, type, static_cast<uint64_t>(matrix.rows),
                           static_cast<uint64_t>(matrix.columns), matrix.ld),
      what("cublasLtMatrixLayoutCreate")));
  auto set = [&](int attribute, auto value) {
    return library.check(
        library.layoutSet(layout, attribute, &value, sizeof(value)),
        what("cublasLtMatrixLayoutSetAttribute"));
  };
  MESHWORK_RETURN_IF_ERROR(set(blas::layoutAttribute::batchCount,
                               static_cast<int32_t>(problem.batch)));
  return set(blas::layoutAttribute::batchStride, matrix.batchStride);
}

absl::Status BlasLtMatmul::describe() {
  MESHWORK_RETURN_IF_ERROR(describe(problem.a, problem.aType, a));
  MESHWORK_RETURN_IF_ERROR(describe(problem.b, problem.bType, b));
  MESHWORK_RETURN_IF_ERROR(describe(problem.d, problem.outputType, d));
  MESHWORK_RETURN_IF_ERROR(library.check(
      library.descCreate(&desc, blas::computeF32, blas::dataType::f32),
      what("cublasLtMatmulDescCreate")));
  auto set = [&](int attribute, auto value) {
    return library.check(
        library.descSet(desc, attribute, &value, sizeof(value)),
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

absl::StatusOr<blas::Preference> BlasLtMatmul::makePreference() const {
  blas::Preference preference = nullptr;
  absl::Status status = library.check(library.preferenceCreate(&preference),
                                      what("cublasLtMatmulPreferenceCreate"));
  auto set = [&](int attribute, auto value) {
    if (status.ok())
      status = library.check(
          library.preferenceSet(preference, attribute, &value, sizeof(value)),
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
    (void)library.preferenceDestroy(preference);
  return status;
}

absl::Status BlasLtMatmul::propose() {
  blas::Preference preference;
  MESHWORK_ASSIGN_OR_RETURN(preference, makePreference());
  blas::HeuristicResult results[maxCandidates] = {};
  int found = 0;
  absl::Status status =
      library.check(library.heuristic(handle, desc, a, b, d, d, preference,
                                      maxCandidates, results, &found),
                    what("cublasLtMatmulAlgoGetHeuristic"));
  (void)library.preferenceDestroy(preference);
  MESHWORK_RETURN_IF_ERROR(status);
  for (int i = 0; i < found; ++i)
    if (results[i].state == blas::status::success &&
        results[i].workspaceBytes <= problem.workspaceBytes)
      candidates.push_back(results[i]);
  if (!candidates.empty())
    return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("cuBLASLt has no algorithm for matmul \"", name, "\" (",
                   problem.key(), ")"));
}

absl::Status BlasLtMatmul::run(Stream stream, bool adds) {
  return run(candidates[chosen], stream, adds);
}

absl::Status BlasLtMatmul::run(const blas::HeuristicResult &candidate,
                               Stream stream, bool adds) {
  const float one = 1, beta = adds ? 1 : 0;
  void *to = pointerTo(problem.d.address);
  return library.check(
      library.matmul(handle, desc, &one, pointerTo(problem.a.address), a,
                     pointerTo(problem.b.address), b, &beta, to, d, to, d,
                     &candidate.algorithm, pointerTo(problem.workspace),
                     problem.workspaceBytes, stream),
      what("cublasLtMatmul"));
}

} // namespace meshwork::runtime::cuda
