#include "runtime/device/cuda/WgmmaAttention.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/WgmmaTasks.h"
#include <algorithm>

namespace meshwork::runtime::cuda {
namespace {
constexpr char ptx[] =
#include MESHWORK_WGMMA_PTX
    ;
constexpr unsigned char cubin[] = {
#include MESHWORK_WGMMA_CUBIN
};
constexpr int narrowHead = 64, widestHead = 128, vectorBytes = 16;

/// The build writes a lone zero where it had no assembler.
DeviceCode codeOfBuild() {
  return {ptx, sizeof(cubin) > 1 ? absl::MakeConstSpan(cubin)
                                 : absl::Span<const unsigned char>()};
}

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
    return absl::UnimplementedError(
        absl::StrCat("the GPU has compute capability ", major, ".", minor,
                     ", expected 9.0"));
  if (!driver.tensorMapEncodeTiled)
    return absl::FailedPreconditionError(
        "the driver has no cuTensorMapEncodeTiled, "
        "expected one of CUDA 12.0 or newer");
  MESHWORK_ASSIGN_OR_RETURN(
      made->code, PtxModule::load(driver, codeOfBuild(), "attention"));
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
    MESHWORK_RETURN_IF_ERROR(checkRegisters(*function, full, sharedBytes > 0));
    MESHWORK_RETURN_IF_ERROR(driver.check(
        driver.functionSetAttribute(
            *function, functionAttribute::maxDynamicSharedBytes, sharedBytes),
        absl::StrCat("giving \"", full, "\" ", sharedBytes,
                     " bytes of shared memory")));
  }
  return absl::OkStatus();
}

/// Warpgroups hand registers to each other: with fewer at the launch they would
/// wait for them for ever, and numbers kept in memory instead are slow.
absl::Status WgmmaKernels::checkRegisters(Function function,
                                          const std::string &name,
                                          bool handsOver) const {
  int local = 0, registers = 0;
  MESHWORK_ASSIGN_OR_RETURN(
      local, code->read(functionAttribute::localBytes, function));
  MESHWORK_ASSIGN_OR_RETURN(registers,
                            code->read(functionAttribute::registers, function));
  bool hasAll = !handsOver || registers == registersAtLaunch;
  if (local == 0 && hasAll)
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the driver has made \"", name, "\" with ", registers,
      " registers a thread and ", local, " bytes of local memory, expected ",
      handsOver ? absl::StrCat(registersAtLaunch, " and 0") : "0 bytes",
      ": use another driver, or leave attention to the plan's kernels"));
}

const WgmmaKernels::OfClass &
WgmmaKernels::of(const AttentionProblem &problem) const {
  return problem.headDim() <= narrowHead ? narrow : wide;
}

absl::Status WgmmaKernels::check(const AttentionProblem &problem) {
  if (problem.headDim() > widestHead)
    return absl::UnimplementedError(absl::StrCat("heads of ", problem.headDim(),
                                                 " elements, expected at most ",
                                                 widestHead));
  if (!(problem.scale > 0))
    return absl::UnimplementedError(
        absl::StrCat("scale is ", problem.scale, ", expected above zero"));
  for (const auto *runs : {&problem.queries, &problem.keys})
    if (runs->size() > 2)
      return absl::UnimplementedError(
          absl::StrCat("a part of a sequence in ", runs->size(),
                       " runs, expected at most 2"));
  // Numbers of tokens, and of blocks of rows, are i32 in the kernels.
  constexpr int64_t most = 1 << 30, mostRows = most / wgmmaRows;
  int64_t rows =
      std::max({problem.rows(), problem.columns(), problem.totalKeys});
  if (rows > mostRows)
    return absl::UnimplementedError(absl::StrCat(
        "a sequence of ", rows, " tokens, expected at most ", mostRows));
  if (problem.samples() * problem.heads() >
      most / blocksOf(std::max(rows, int64_t{1}), rowSumThreads / 16))
    return absl::UnimplementedError("2^30 blocks of rows or more");
  return absl::OkStatus();
}

/// `rows`, if less than the tensor has: others read as zeros.
absl::StatusOr<TensorMap> WgmmaKernels::map(const AttentionTensor &tensor,
                                            DevicePtr at, const char *role,
                                            int64_t rows) const {
  if (tensor.isF32)
    return TensorMap{}; // Nobody looks at it.
  constexpr uint32_t box[] = {boxColumns, boxRows, 1, 1},
                     steps[] = {1, 1, 1, 1};
  uint64_t dims[4], strides[3];
  for (int i = 0; i < 4; ++i)
    dims[i] = static_cast<uint64_t>(tensor.dims[3 - i]);
  dims[1] = static_cast<uint64_t>(std::clamp(rows, int64_t{1}, tensor.dims[2]));
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

/// Pairs are done in groups of equal size. The keys and values of a group fit
/// half of an H100's 50 MB of L2 cache; a group may be larger to give each
/// multiprocessor work at least twice. Then those that begin with long items
/// get to the short ones that are left.
absl::StatusOr<WgmmaWork> WgmmaKernels::work(const AttentionProblem &problem,
                                             int64_t rows, int64_t heads,
                                             Stream stream) const {
  constexpr int64_t cacheBytes = 25'000'000;
  int64_t blocks = blocksOf(rows, wgmmaRows), pairs = problem.samples() * heads,
          pairBytes = std::max(rows, problem.columns()) * problem.headDim() * 4,
          most = std::max(cacheBytes / std::max(pairBytes, int64_t{1}),
                          blocksOf(2 * multiprocessors, blocks)),
          together = blocksOf(pairs, blocksOf(pairs, most));
  WgmmaWork work{static_cast<int>(blocks), static_cast<int>(pairs),
                 static_cast<int>(together), 0};
  MESHWORK_ASSIGN_OR_RETURN(work.counter, counters.take(stream));
  return work;
}
int64_t WgmmaKernels::gridOf(const WgmmaWork &work) const {
  return std::min(int64_t{work.blocks} * work.pairs, int64_t{multiprocessors});
}

absl::Status WgmmaKernels::mapOperands(const AttentionProblem &problem,
                                       const AttentionPlaces &places,
                                       TensorMap &q, TensorMap &k,
                                       TensorMap &v) const {
  int64_t rows = tokenRows(problem.queries, problem.rows()),
          columns = tokenRows(problem.keys, problem.columns());
  MESHWORK_ASSIGN_OR_RETURN(q, map(problem.q, places.q, "q", rows));
  MESHWORK_ASSIGN_OR_RETURN(k, map(problem.k, places.k, "k", columns));
  MESHWORK_ASSIGN_OR_RETURN(v, map(problem.v, places.v, "v", columns));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Operation>>
WgmmaKernels::forward(const AttentionProblem &problem,
                      const AttentionPlaces &places, Stream stream) const {
  ForwardTask task{};
  MESHWORK_RETURN_IF_ERROR(
      mapOperands(problem, places, task.q, task.k, task.v));
  MESHWORK_ASSIGN_OR_RETURN(
      task.out, map(problem.out, places.out, "out", problem.rows()));
  task.wideOut = wideOf(problem.out, places.out);
  task.lse = places.lse;
  task.lseSample = problem.lseStrides[0];
  task.lseHead = problem.lseStrides[1];
  task.shape = shapeOf(problem, places);
  MESHWORK_ASSIGN_OR_RETURN(
      task.work, work(problem, problem.rows(), problem.heads(), stream));
  auto made = std::make_unique<WgmmaLaunches>(driver);
  made->add("wgmmaForward", of(problem).forward, gridOf(task.work),
            wgmmaThreads, of(problem).forwardBytes, task);
  return made;
}

absl::StatusOr<KeyGradTask>
WgmmaKernels::keyGrad(const AttentionProblem &problem,
                      const AttentionPlaces &places, Stream stream) const {
  KeyGradTask task{};
  int64_t columns = problem.columns();
  MESHWORK_RETURN_IF_ERROR(
      mapOperands(problem, places, task.q, task.k, task.v));
  MESHWORK_ASSIGN_OR_RETURN(task.dout,
                            map(problem.dout, places.dout, "dout",
                                tokenRows(problem.queries, problem.rows())));
  MESHWORK_ASSIGN_OR_RETURN(task.dk, map(problem.dk, places.dk, "dk", columns));
  MESHWORK_ASSIGN_OR_RETURN(task.dv, map(problem.dv, places.dv, "dv", columns));
  task.wideDk = wideOf(problem.dk, places.dk);
  task.wideDv = wideOf(problem.dv, places.dv);
  task.shape = shapeOf(problem, places);
  MESHWORK_ASSIGN_OR_RETURN(task.work,
                            work(problem, columns, problem.kvHeads(), stream));
  return task;
}

absl::StatusOr<std::unique_ptr<Operation>>
WgmmaKernels::gradient(const AttentionProblem &problem,
                       const AttentionPlaces &places, DevicePtr workspace,
                       uint64_t workspaceBytes, Stream stream) const {
  if (static_cast<uint64_t>(rowValueBytesOf(problem)) > workspaceBytes)
    return absl::UnimplementedError(
        absl::StrCat("a workspace of ", workspaceBytes, " bytes, expected ",
                     rowValueBytesOf(problem)));
  KeyGradTask keys{};
  QueryGradTask queries{};
  MESHWORK_ASSIGN_OR_RETURN(keys, keyGrad(problem, places, stream));
  MESHWORK_ASSIGN_OR_RETURN(queries.dq,
                            map(problem.dq, places.dq, "dq", problem.rows()));
  keys.rowValues = queries.rowValues = workspace;
  queries.q = keys.q;
  queries.k = keys.k;
  queries.v = keys.v;
  queries.dout = keys.dout;
  queries.wideDq = wideOf(problem.dq, places.dq);
  queries.shape = keys.shape;
  MESHWORK_ASSIGN_OR_RETURN(
      queries.work, work(problem, problem.rows(), problem.heads(), stream));
  auto made = std::make_unique<WgmmaLaunches>(driver);
  const OfClass &kernels = of(problem);
  int64_t rowsOfBlock = rowSumThreads * 8 / kernels.headDim;
  made->add("wgmmaRowSums", kernels.rowSums,
            int64_t{queries.work.pairs} * queries.work.blocks *
                (wgmmaRows / rowsOfBlock),
            rowSumThreads, 0, rowSumsTask(problem, places, workspace));
  made->add("wgmmaKeyGrad", kernels.keyGrad, gridOf(keys.work), wgmmaThreads,
            kernels.keyGradBytes, keys);
  made->add("wgmmaQueryGrad", kernels.queryGrad, gridOf(queries.work),
            wgmmaThreads, kernels.queryGradBytes, queries);
  return made;
}

} // namespace meshwork::runtime::cuda
