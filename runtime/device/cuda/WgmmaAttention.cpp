#include "runtime/device/cuda/WgmmaAttention.h"
#include "absl/strings/str_cat.h"
#include "runtime/StatusMacros.h"
#include <algorithm>
#include <limits>

namespace meshwork::runtime::cuda {
namespace {
constexpr char ptx[] =
#include MESHWORK_WGMMA_PTX
    ;
constexpr int narrowHead = 64, widestHead = 128, vectorBytes = 16;

int64_t blocksOf(int64_t count, int64_t ofBlock) {
  return (count + ofBlock - 1) / ofBlock;
}
int64_t samplesOf(const AttentionProblem &problem) { return problem.q.dims[0]; }
int64_t headsOf(const AttentionProblem &problem) { return problem.q.dims[1]; }
int64_t kvHeadsOf(const AttentionProblem &problem) { return problem.k.dims[1]; }
int64_t lengthOf(const AttentionProblem &problem) { return problem.q.dims[2]; }
int64_t headDimOf(const AttentionProblem &problem) { return problem.q.dims[3]; }

/// Kernels, one after the other, each with a struct of its own.
class WgmmaLaunches : public Operation {
public:
  explicit WgmmaLaunches(const Driver &driver) : driver(driver) {}

  template <typename Task>
  void add(const char *name, Function function, int64_t grid, int threads,
           int sharedBytes, const Task &task) {
    launches.push_back({name, function, static_cast<unsigned>(grid),
                        static_cast<unsigned>(threads),
                        static_cast<unsigned>(sharedBytes),
                        std::make_shared<Task>(task)});
  }

  absl::Status enqueue(Stream stream, bool) override {
    for (const Launch &one : launches) {
      void *parameters[] = {one.task.get()};
      MESHWORK_RETURN_IF_ERROR(driver.check(
          driver.launchKernel(one.function, one.grid, 1, 1, one.threads, 1, 1,
                              one.sharedBytes, stream, parameters, nullptr),
          absl::StrCat("launching \"", one.name, "\"")));
    }
    return absl::OkStatus();
  }

private:
  struct Launch {
    const char *name;
    Function function;
    unsigned grid, threads, sharedBytes;
    std::shared_ptr<void> task;
  };
  const Driver &driver;
  std::vector<Launch> launches;
};

WgmmaShape shapeOf(const AttentionProblem &problem,
                   const AttentionPlaces &places) {
  return {static_cast<int>(lengthOf(problem)),
          static_cast<int>(headsOf(problem)),
          static_cast<int>(kvHeadsOf(problem)),
          static_cast<int>(std::min(problem.window, lengthOf(problem))),
          problem.causal,
          problem.scale,
          problem.documents ? places.documents : 0};
}

RowSumsTask rowSums(const AttentionProblem &problem,
                    const AttentionPlaces &places, DevicePtr workspace) {
  RowSumsTask task{};
  task.out = places.out;
  task.dout = places.dout;
  task.lse = places.lse;
  task.rows = workspace;
  for (int i = 0; i < 3; ++i) {
    task.outStrides[i] = problem.out.strides[i];
    task.doutStrides[i] = problem.dout.strides[i];
  }
  for (int i = 0; i < 2; ++i)
    task.lseStrides[i] = problem.lseStrides[i];
  task.length = static_cast<int>(lengthOf(problem));
  task.heads = static_cast<int>(headsOf(problem));
  task.headDim = static_cast<int>(headDimOf(problem));
  return task;
}

int64_t rowValueBytesOf(const AttentionProblem &problem) {
  return samplesOf(problem) * headsOf(problem) *
         blocksOf(lengthOf(problem), wgmmaRows) * wgmmaRows * rowValueBytes;
}
} // namespace

absl::StatusOr<std::unique_ptr<WgmmaKernels>>
WgmmaKernels::load(const Driver &driver, Device device) {
  std::unique_ptr<WgmmaKernels> made(new WgmmaKernels(driver));
  int major = 0, minor = 0;
  for (auto [value, number] :
       {std::pair(&major, attribute::computeMajor),
        std::pair(&minor, attribute::computeMinor),
        std::pair(&made->multiprocessors, attribute::multiprocessors)})
    MESHWORK_RETURN_IF_ERROR(
        driver.check(driver.deviceGetAttribute(value, number, device),
                     "reading an attribute of the GPU"));
  if (major != 9 || minor != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("the GPU has compute capability ", major, ".", minor,
                     ", expected 9.0"));
  if (!driver.tensorMapEncodeTiled)
    return absl::FailedPreconditionError(
        "the driver has no cuTensorMapEncodeTiled, expected one of CUDA 12.0 "
        "or "
        "newer");
  MESHWORK_ASSIGN_OR_RETURN(made->code,
                            PtxModule::load(driver, ptx, "attention"));
  MESHWORK_RETURN_IF_ERROR(made->findClass<narrowHead>(made->narrow));
  MESHWORK_RETURN_IF_ERROR(made->findClass<widestHead>(made->wide));
  return made;
}

template <int D> absl::Status WgmmaKernels::findClass(OfClass &of) {
  of.headDim = D;
  of.forwardBytes = ForwardPlan<D>::sharedBytes;
  of.keyGradBytes = KeyGradPlan<D>::sharedBytes;
  of.queryGradBytes = QueryGradPlan<D>::sharedBytes;
  for (auto [function, name, sharedBytes] :
       {std::tuple(&of.forward, "wgmmaForward", of.forwardBytes),
        std::tuple(&of.rowSums, "wgmmaRowSums", 0),
        std::tuple(&of.keyGrad, "wgmmaKeyGrad", of.keyGradBytes),
        std::tuple(&of.queryGrad, "wgmmaQueryGrad", of.queryGradBytes)}) {
    std::string full = absl::StrCat(name, D);
    MESHWORK_ASSIGN_OR_RETURN(*function, code->find(full.c_str()));
    MESHWORK_RETURN_IF_ERROR(driver.check(
        driver.functionSetAttribute(
            *function, functionAttribute::maxDynamicSharedBytes, sharedBytes),
        absl::StrCat("giving \"", full, "\" ", sharedBytes,
                     " bytes of shared memory")));
  }
  return absl::OkStatus();
}

const WgmmaKernels::OfClass &
WgmmaKernels::of(const AttentionProblem &problem) const {
  return headDimOf(problem) <= narrowHead ? narrow : wide;
}

absl::Status WgmmaKernels::check(const AttentionProblem &problem) {
  if (headDimOf(problem) > widestHead)
    return absl::UnimplementedError(
        absl::StrCat("heads of ", headDimOf(problem),
                     " elements, expected at most ", widestHead));
  if (!(problem.scale > 0))
    return absl::UnimplementedError(
        absl::StrCat("scale is ", problem.scale, ", expected above zero"));
  // Numbers of rows, and of blocks of rows, are i32 in the kernels.
  constexpr int64_t most = std::numeric_limits<int32_t>::max() / 2;
  if (lengthOf(problem) > most / wgmmaRows ||
      samplesOf(problem) * headsOf(problem) >
          most / blocksOf(lengthOf(problem), rowSumThreads / 16))
    return absl::UnimplementedError("2^30 blocks of rows or more");
  return absl::OkStatus();
}

absl::StatusOr<TensorMap> WgmmaKernels::map(const AttentionTensor &tensor,
                                            DevicePtr at,
                                            const char *role) const {
  constexpr uint32_t box[] = {boxColumns, boxRows, 1, 1},
                     steps[] = {1, 1, 1, 1};
  uint64_t dims[4], strides[3];
  for (int i = 0; i < 4; ++i)
    dims[i] = static_cast<uint64_t>(tensor.dims[3 - i]);
  for (int i = 0; i < 3; ++i) // A dim of one element may have any.
    strides[i] = dims[i + 1] == 1 ? vectorBytes : tensor.strides[2 - i] * 2;
  TensorMap map;
  MESHWORK_RETURN_IF_ERROR(
      driver.check(driver.tensorMapEncodeTiled(
                       &map, tensorMap::bfloat16, 4, at, dims, strides, box,
                       steps, tensorMap::interleaveNone, tensorMap::swizzle128B,
                       tensorMap::l2Promotion128B, tensorMap::fillZeros),
                   absl::StrCat("describing ", role)));
  return map;
}

WgmmaWork WgmmaKernels::work(const AttentionProblem &problem,
                             int64_t heads) const {
  int64_t blocks = blocksOf(lengthOf(problem), wgmmaRows),
          pairs = samplesOf(problem) * heads;
  // Two rounds of blocks: in one come the longer ones, in the other the
  // shorter.
  int64_t together = std::min(pairs, blocksOf(2 * multiprocessors, blocks));
  return {static_cast<int>(blocks), static_cast<int>(pairs),
          static_cast<int>(together)};
}
int64_t WgmmaKernels::gridOf(const WgmmaWork &work) const {
  return std::min(int64_t{work.blocks} * work.pairs, int64_t{multiprocessors});
}

absl::StatusOr<std::unique_ptr<Operation>>
WgmmaKernels::forward(const AttentionProblem &problem,
                      const AttentionPlaces &places) const {
  ForwardTask task{};
  MESHWORK_ASSIGN_OR_RETURN(task.q, map(problem.q, places.q, "q"));
  MESHWORK_ASSIGN_OR_RETURN(task.k, map(problem.k, places.k, "k"));
  MESHWORK_ASSIGN_OR_RETURN(task.v, map(problem.v, places.v, "v"));
  MESHWORK_ASSIGN_OR_RETURN(task.out, map(problem.out, places.out, "out"));
  task.lse = places.lse;
  task.lseSample = problem.lseStrides[0];
  task.lseHead = problem.lseStrides[1];
  task.shape = shapeOf(problem, places);
  task.work = work(problem, headsOf(problem));
  auto made = std::make_unique<WgmmaLaunches>(driver);
  made->add("wgmmaForward", of(problem).forward, gridOf(task.work),
            wgmmaThreads, of(problem).forwardBytes, task);
  return made;
}

absl::StatusOr<std::unique_ptr<Operation>>
WgmmaKernels::gradient(const AttentionProblem &problem,
                       const AttentionPlaces &places, DevicePtr workspace,
                       uint64_t workspaceBytes) const {
  if (static_cast<uint64_t>(rowValueBytesOf(problem)) > workspaceBytes)
    return absl::UnimplementedError(
        absl::StrCat("a workspace of ", workspaceBytes, " bytes, expected ",
                     rowValueBytesOf(problem)));
  KeyGradTask keys{};
  QueryGradTask queries{};
  MESHWORK_ASSIGN_OR_RETURN(keys.q, map(problem.q, places.q, "q"));
  MESHWORK_ASSIGN_OR_RETURN(keys.k, map(problem.k, places.k, "k"));
  MESHWORK_ASSIGN_OR_RETURN(keys.v, map(problem.v, places.v, "v"));
  MESHWORK_ASSIGN_OR_RETURN(keys.dout, map(problem.dout, places.dout, "dout"));
  MESHWORK_ASSIGN_OR_RETURN(keys.dk, map(problem.dk, places.dk, "dk"));
  MESHWORK_ASSIGN_OR_RETURN(keys.dv, map(problem.dv, places.dv, "dv"));
  MESHWORK_ASSIGN_OR_RETURN(queries.dq, map(problem.dq, places.dq, "dq"));
  keys.rows = queries.rows = workspace;
  keys.shape = queries.shape = shapeOf(problem, places);
  keys.work = work(problem, kvHeadsOf(problem));
  queries.work = work(problem, headsOf(problem));
  queries.q = keys.q;
  queries.k = keys.k;
  queries.v = keys.v;
  queries.dout = keys.dout;
  auto made = std::make_unique<WgmmaLaunches>(driver);
  const OfClass &kernels = of(problem);
  int64_t rowsOfBlock = rowSumThreads * 8 / kernels.headDim;
  made->add("wgmmaRowSums", kernels.rowSums,
            samplesOf(problem) * headsOf(problem) *
                blocksOf(lengthOf(problem), wgmmaRows) *
                (wgmmaRows / rowsOfBlock),
            rowSumThreads, 0, rowSums(problem, places, workspace));
  made->add("wgmmaKeyGrad", kernels.keyGrad, gridOf(keys.work), wgmmaThreads,
            kernels.keyGradBytes, keys);
  made->add("wgmmaQueryGrad", kernels.queryGrad, gridOf(queries.work),
            wgmmaThreads, kernels.queryGradBytes, queries);
  return made;
}

} // namespace meshwork::runtime::cuda
