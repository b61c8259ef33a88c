#include "runtime/device/cuda/EpilogueKernel.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include <limits>

namespace meshwork::runtime::cuda {
namespace {
constexpr char ptx[] =
#include MESHWORK_EPILOGUES_PTX
    ;
constexpr int64_t vectorBytes = 16;

bool isSum(plan::Epilogue epilogue) {
  return epilogue == plan::Epilogue::sum_lhs ||
         epilogue == plan::Epilogue::sum_rhs;
}

/// `view` with these strides, if it has this shape and numbers of a type that
/// the kernels read.
absl::StatusOr<EpilogueTensor> tensorOf(const DeviceView &view,
                                        const std::vector<int64_t> &shape,
                                        std::array<int64_t, 3> strides,
                                        const char *role) {
  if (!plan::isWideFloat(view.dtype) || view.shape != shape)
    return absl::UnimplementedError(
        absl::StrCat(role, " is ", view.describe(),
                     ", expected f32 or bf16 of the shape of the product"));
  return EpilogueTensor{view.address,
                        {strides[0], strides[1], strides[2]},
                        view.dtype == plan::DType::bf16};
}

absl::StatusOr<EpilogueTensor>
matrixOf(const DeviceView &view, const DeviceView &dst, const char *role) {
  const std::vector<int64_t> &s = view.strides;
  if (s.size() != 3)
    return absl::UnimplementedError(
        absl::StrCat(role, " is ", view.describe(), ", expected three dims"));
  return tensorOf(view, dst.shape, {s[0], s[1], s[2]}, role);
}

bool allowsVectors(const EpilogueTensor &tensor, bool isBf16, int64_t width) {
  return !tensor.address ||
         (bool(tensor.isBf16) == isBf16 && tensor.strides[2] == 1 &&
          tensor.strides[1] % width == 0 && tensor.strides[0] % width == 0 &&
          tensor.address % vectorBytes == 0);
}

FinishCode codeOf(plan::Epilogue epilogue) {
  switch (epilogue) {
  case plan::Epilogue::gelu:
    return FinishCode::gelu;
  case plan::Epilogue::gelu_grad:
    return FinishCode::geluGradient;
  default:
    return FinishCode::bias;
  }
}

/// In units of 16 bytes where all tensors lie so.
void setUnits(FinishTask &task, const DeviceView &dst) {
  bool isBf16 = dst.dtype == plan::DType::bf16;
  int64_t wide = vectorBytes / (isBf16 ? 2 : 4), columns = dst.shape[2];
  bool vectors = columns % wide == 0;
  for (const EpilogueTensor *tensor : {&task.dst, &task.aux, &task.bias})
    vectors &= allowsVectors(*tensor, isBf16, wide);
  task.width = vectors ? static_cast<int>(wide) : 1;
  task.unitsPerRow = columns / task.width;
  task.rows = dst.shape[1];
  task.units = dst.shape[0] * task.rows * task.unitsPerRow;
}

absl::StatusOr<FinishTask> finishOf(const MatmulRequest &request) {
  FinishTask task{};
  const DeviceView &dst = request.dst;
  task.code = codeOf(request.epilogue);
  MESHWORK_ASSIGN_OR_RETURN(task.dst, matrixOf(dst, dst, "dst"));
  if (request.aux)
    MESHWORK_ASSIGN_OR_RETURN(task.aux, matrixOf(*request.aux, dst, "aux"));
  if (task.code == FinishCode::geluGradient && (!request.aux || request.bias))
    return absl::UnimplementedError(
        "the gradient of a GELU has no aux or has a bias");
  if (request.bias && request.bias->strides.size() != 1)
    return absl::UnimplementedError(absl::StrCat(
        "bias is ", request.bias->describe(), ", expected one dim"));
  if (request.bias)
    MESHWORK_ASSIGN_OR_RETURN(
        task.bias, tensorOf(*request.bias, {dst.shape[2]},
                            {0, 0, request.bias->strides[0]}, "bias"));
  setUnits(task, dst);
  return task;
}

absl::StatusOr<AddUpTask> addUpOf(const MatmulRequest &request) {
  bool ofLhs = request.epilogue == plan::Epilogue::sum_lhs;
  const DeviceView &from = ofLhs ? request.lhs : request.rhs;
  size_t kept = ofLhs ? 1 : 2, summed = ofLhs ? 2 : 1;
  if (from.shape[0] != 1 || !request.aux || request.bias ||
      request.aux->strides.size() != 1)
    return absl::UnimplementedError(absl::StrCat(
        "adds up ", from.describe(),
        ", expected one product without a bias and a place for its sums"));
  AddUpTask task{};
  task.count = from.shape[kept];
  task.depth = from.shape[summed];
  task.isDenseAlongSum = from.strides[summed] == 1 && from.strides[kept] != 1;
  MESHWORK_ASSIGN_OR_RETURN(
      task.from,
      tensorOf(from, from.shape, {from.strides[kept], from.strides[summed], 0},
               ofLhs ? "lhs" : "rhs"));
  MESHWORK_ASSIGN_OR_RETURN(task.to,
                            tensorOf(*request.aux, {task.count},
                                     {request.aux->strides[0], 0, 0}, "aux"));
  return task;
}

int64_t blocksOf(int64_t count, int64_t ofBlock) {
  return (count + ofBlock - 1) / ofBlock;
}
} // namespace

absl::StatusOr<std::shared_ptr<EpilogueKernels>>
EpilogueKernels::load(const Driver &driver) {
  auto made = std::make_shared<EpilogueKernels>(driver);
  MESHWORK_ASSIGN_OR_RETURN(made->code,
                            PtxModule::load(driver, {ptx}, "epilogues"));
  MESHWORK_ASSIGN_OR_RETURN(made->finishProduct,
                            made->code->find("finishProduct"));
  MESHWORK_ASSIGN_OR_RETURN(made->addUp, made->code->find("addUp"));
  return made;
}

MatmulRequest productAlone(MatmulRequest request) {
  request.bias.reset();
  request.aux.reset();
  request.epilogue = plan::Epilogue::none;
  return request;
}

absl::StatusOr<EpilogueKernel>
EpilogueKernel::create(std::shared_ptr<EpilogueKernels> kernels,
                       const MatmulRequest &request) {
  if (isSum(request.epilogue)) {
    absl::StatusOr<AddUpTask> task = addUpOf(request);
    MESHWORK_RETURN_IF_ERROR(task.status());
    return EpilogueKernel(std::move(kernels), *task);
  }
  absl::StatusOr<FinishTask> task = finishOf(request);
  MESHWORK_RETURN_IF_ERROR(task.status());
  return EpilogueKernel(std::move(kernels), *task);
}

absl::Status EpilogueKernel::run(Stream stream) const {
  if (const AddUpTask *sums = std::get_if<AddUpTask>(&task))
    return launch("addUp", kernels->addUp, blocksOf(sums->count, addUpWidth),
                  addUpWidth * addUpWidth, sums, stream);
  const FinishTask &rest = std::get<FinishTask>(task);
  return launch("finishProduct", kernels->finishProduct,
                blocksOf(rest.units, finishThreads), finishThreads, &rest,
                stream);
}

absl::Status EpilogueKernel::launch(const char *name, Function function,
                                    int64_t blocks, int threads,
                                    const void *argument, Stream stream) const {
  std::string what = absl::StrCat("launching \"", name, "\"");
  if (blocks > std::numeric_limits<int32_t>::max())
    return absl::UnimplementedError(
        absl::StrCat(what, ": it takes ", blocks, " blocks"));
  void *parameters[] = {const_cast<void *>(argument)};
  return kernels->driver.check(
      kernels->driver.launchKernel(function, static_cast<unsigned>(blocks), 1,
                                   1, static_cast<unsigned>(threads), 1, 1, 0,
                                   stream, parameters, nullptr),
      what);
}

} // namespace meshwork::runtime::cuda
