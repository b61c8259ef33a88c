#include "runtime/device/cuda/BlasLt.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"

namespace meshwork::runtime::cuda {

absl::StatusOr<std::unique_ptr<BlasLt>> BlasLt::create(const Driver &driver) {
  const BlasLtLibrary *library;
  MESHWORK_ASSIGN_OR_RETURN(library, BlasLtLibrary::open());
  blas::Handle handle = nullptr;
  MESHWORK_RETURN_IF_ERROR(
      library->check(library->create(&handle), "cublasLtCreate"));
  return std::unique_ptr<BlasLt>(new BlasLt(driver, {*library, handle}));
}

BlasLt::~BlasLt() { (void)place.library.destroy(place.handle); }

absl::StatusOr<std::unique_ptr<BlasLtMatmul>>
BlasLt::prepare(const MatmulRequest &request) const {
  std::unique_ptr<BlasLtMatmul> matmul(new BlasLtMatmul(*this, request));
  MESHWORK_RETURN_IF_ERROR(matmul->choose());
  return matmul;
}

absl::StatusOr<std::shared_ptr<EpilogueKernels>> BlasLt::epilogues() const {
  std::lock_guard<std::mutex> lock(mutex);
  if (!kernels)
    MESHWORK_ASSIGN_OR_RETURN(kernels, EpilogueKernels::load(driver));
  return kernels;
}

/// By the library where it can; what neither can, it says.
absl::Status BlasLtMatmul::choose() {
  absl::Status whole = addWhole();
  if (!absl::IsUnimplemented(whole) || !hasEpilogue())
    return whole;
  absl::Status beside = addBeside();
  return absl::IsUnimplemented(beside) ? whole : beside;
}

bool BlasLtMatmul::hasEpilogue() const {
  return request.bias || request.epilogue != plan::Epilogue::none;
}

absl::Status BlasLtMatmul::addWhole() {
  absl::StatusOr<BlasLtProblem> problem = problemOf(request);
  if (!problem.ok()) {
    why = std::string(problem.status().message());
    return absl::Status(problem.status().code(),
                        absl::StrCat("matmul \"", request.name, "\": ", why));
  }
  auto product = BlasLtProduct::create(blas.place, *problem, request.name);
  why =
      absl::StrCat("cuBLASLt has no algorithm with ", problem->epilogueName());
  if (absl::IsUnimplemented(product.status()) && problem->asksForEpilogue())
    return absl::UnimplementedError(absl::StrCat(
        product.status().message(),
        "; a plan compiled with target.epilogues = \"never\" asks for no such "
        "epilogue"));
  MESHWORK_RETURN_IF_ERROR(product.status());
  add({*std::move(product), std::nullopt});
  return absl::OkStatus();
}

absl::Status BlasLtMatmul::addBeside() {
  triedBeside = true;
  absl::StatusOr<BlasLtProblem> problem = problemOf(productAlone(request));
  MESHWORK_RETURN_IF_ERROR(problem.status());
  std::shared_ptr<EpilogueKernels> kernels;
  MESHWORK_ASSIGN_OR_RETURN(kernels, blas.epilogues());
  absl::StatusOr<EpilogueKernel> rest =
      EpilogueKernel::create(std::move(kernels), request);
  MESHWORK_RETURN_IF_ERROR(rest.status());
  auto product =
      BlasLtProduct::create(blas.place, *std::move(problem), request.name);
  MESHWORK_RETURN_IF_ERROR(product.status());
  add({*std::move(product), *std::move(rest)});
  return absl::OkStatus();
}

void BlasLtMatmul::add(Way way) {
  for (size_t i = 0; i < way.product->algorithms().size(); ++i)
    candidates.push_back({ways.size(), i});
  ways.push_back(std::move(way));
}

std::string BlasLtMatmul::whyBeside() const {
  return ways[candidates[chosen].way].rest ? why : "";
}

absl::Status BlasLtMatmul::load(Stream stream, bool adds) {
  absl::Status first;
  for (;; ++chosen) {
    absl::Status status = run(stream, /*adds=*/false);
    if (status.ok() && adds)
      status = run(stream, /*adds=*/true);
    if (!absl::IsUnimplemented(status))
      return status;
    first.Update(status);
    if (chosen + 1 == candidates.size() && hasEpilogue() && !triedBeside)
      why = addBeside().ok() ? "cuBLASLt's algorithms with it do not run here"
                             : "";
    if (chosen + 1 == candidates.size())
      return first;
  }
}

absl::Status BlasLtMatmul::run(Stream stream, bool adds) const {
  return run(candidates[chosen], stream, adds);
}

absl::Status BlasLtMatmul::run(const Candidate &candidate, Stream stream,
                               bool adds) const {
  const Way &way = ways[candidate.way];
  MESHWORK_RETURN_IF_ERROR(way.product->run(candidate.algorithm, stream, adds));
  return way.rest ? way.rest->run(stream) : absl::OkStatus();
}

} // namespace meshwork::runtime::cuda
