#include "runtime/run/MeasureGpus.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/base/StartThread.h"
#include "runtime/comm/InProcess.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/run/GpuLinks.h"
#include <sstream>
#include <thread>

namespace meshwork::runtime {
namespace {
using cuda::GpuWork;

std::vector<double *> numbersOf(GpuWork &work) {
  std::vector<double *> all = {&work.copyBytes, &work.launchSeconds,
                               &work.hostBytes, &work.hostSeconds};
  for (cuda::FittedRate *rate : {&work.f32, &work.bf16, &work.fp8})
    all.insert(all.end(), {&rate->flops, &rate->halfSize});
  for (cuda::AttentionRate *rate : {&work.forward, &work.gradient})
    all.insert(all.end(), {&rate->flops, &rate->halfHead, &rate->halfKeys});
  return all;
}

/// For the other ranks: a line of numbers, and what the GPU is.
std::string textOf(GpuWork work, const std::string &name) {
  std::string text;
  for (const double *number : numbersOf(work))
    absl::StrAppendFormat(&text, "%.17g ", *number);
  return absl::StrCat(text, "\n", name);
}

GpuWork meanOf(absl::Span<const GpuWork> all) {
  GpuWork mean;
  std::vector<double *> to = numbersOf(mean);
  for (GpuWork one : all) {
    std::vector<double *> from = numbersOf(one);
    for (size_t i = 0; i < to.size(); ++i)
      *to[i] += *from[i] / static_cast<double>(all.size());
  }
  return mean;
}

/// Rates of GPUs of two kinds say nothing of either.
absl::Status checkAlike(const std::vector<std::string> &names) {
  for (size_t rank = 1; rank < names.size(); ++rank)
    if (names[rank] != names[0])
      return absl::FailedPreconditionError(absl::StrCat(
          "rank 0 has GPU ", names[0], " and rank ", rank, " has ", names[rank],
          ", expected GPUs of one kind: a machine file describes one; choose "
          "some by CUDA_VISIBLE_DEVICES"));
  return absl::OkStatus();
}

/// One rank's part, the same result on all of them.
absl::StatusOr<MeasuredGpus> measureRank(Transport &host, uint32_t rank,
                                         uint32_t ranksPerNode, int ordinal,
                                         double timeoutSeconds) {
  const cuda::Driver *driver = nullptr;
  MESHWORK_ASSIGN_OR_RETURN(driver, cuda::Driver::open());
  std::unique_ptr<cuda::Gpu> gpu;
  MESHWORK_ASSIGN_OR_RETURN(gpu, cuda::Gpu::open(*driver, ordinal));
  MeasuredGpus found;
  found.name = gpu->describe();
  found.ranks = host.numRanks();
  found.ranksPerNode = ranksPerNode;
  int major = 0, minor = 0;
  MESHWORK_RETURN_IF_ERROR(cuda::readCapability(*gpu, major, minor));
  found.arch = cuda::archOf(major);
  if (major < 8)
    return absl::FailedPreconditionError(absl::StrCat(
        "GPU ", found.name, ", expected compute capability 8.0 or newer"));
  GpuWork mine;
  MESHWORK_ASSIGN_OR_RETURN(
      mine, measureGpu(*gpu, {rank, host, nullptr, nullptr, timeoutSeconds}));
  std::vector<std::string> texts, names;
  MESHWORK_ASSIGN_OR_RETURN(
      texts, host.exchange(rank, textOf(mine, found.name), "rates of GPUs"));
  std::vector<GpuWork> all;
  for (const std::string &text : texts) {
    std::pair<std::string, std::string> parts = absl::StrSplit(text, '\n');
    names.push_back(parts.second);
    std::istringstream in(parts.first);
    for (double *number : numbersOf(all.emplace_back()))
      in >> *number;
  }
  MESHWORK_RETURN_IF_ERROR(checkAlike(names));
  found.work = meanOf(all);
  found.work.whyNoAttention = mine.whyNoAttention; // they are alike
  MESHWORK_RETURN_IF_ERROR(
      measureGpuLinks({*gpu, host, rank, found.ranks / ranksPerNode,
                       ranksPerNode, timeoutSeconds},
                      found.withinNode, found.betweenNodes));
  return found;
}

/// All ranks as threads of this process.
absl::StatusOr<MeasuredGpus> measureThreads(const std::vector<int> &ordinals,
                                            double timeoutSeconds) {
  auto ranks = static_cast<uint32_t>(ordinals.size());
  InProcessTransport host(Mesh({ranks}), {timeoutSeconds, /*spins=*/false});
  std::vector<absl::StatusOr<MeasuredGpus>> found(ranks);
  std::vector<std::thread> threads(ranks);
  auto measure = [&](uint32_t rank) {
    found[rank] =
        measureRank(host, rank, ranks, ordinals[rank], timeoutSeconds);
    if (!found[rank].ok())
      host.abort(rank, found[rank].status());
  };
  for (uint32_t rank = 0; rank < ranks; ++rank)
    if (absl::Status started =
            startThread(threads[rank], [&, rank] { measure(rank); });
        !started.ok())
      host.abort(rank, started);
  for (std::thread &thread : threads)
    if (thread.joinable())
      thread.join();
  MESHWORK_RETURN_IF_ERROR(host.failure());
  return found[0];
}

/// Ranks of a node are neighbours, and as many in each.
absl::StatusOr<uint32_t> ranksPerNode(const Processes &processes) {
  uint32_t here = processes.ranksHere(processes.count());
  std::vector<std::string> all;
  MESHWORK_ASSIGN_OR_RETURN(all, processes.exchange(absl::StrCat(here)));
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      return absl::FailedPreconditionError(absl::StrCat(
          "the node of rank 0 has ", all[0], " ranks and that of rank ", rank,
          " has ", all[rank], ", expected as many on each"));
  return here;
}

absl::StatusOr<MeasuredGpus> measureOnGpus(Processes &processes,
                                           const RunOptions &options) {
  const cuda::Driver *driver = nullptr;
  MESHWORK_ASSIGN_OR_RETURN(driver, cuda::Driver::open());
  cuda::keepLaunchOrder();
  uint32_t ranks = processes.areMany() ? processes.count()
                                       : static_cast<uint32_t>(driver->devices);
  MESHWORK_RETURN_IF_ERROR(processes.shareCores(ranks, options).status());
  std::vector<int> ordinals;
  MESHWORK_ASSIGN_OR_RETURN(
      ordinals,
      cuda::gpusOfRanks(*driver, processes.deviceOptions(ranks, options)));
  if (!processes.areMany())
    return measureThreads(ordinals, options.timeoutSeconds);
  uint32_t here = 0;
  MESHWORK_ASSIGN_OR_RETURN(here, ranksPerNode(processes));
  auto host =
      processes.makeTransport(Mesh({ranks}), options.timeoutSeconds, false);
  return measureRank(*host, processes.rank(), here, ordinals[0],
                     options.timeoutSeconds);
}

absl::Status
measureIn(Processes &processes, const RunOptions &options,
          absl::FunctionRef<absl::Status(const MeasuredGpus &)> deliver) {
  absl::StatusOr<MeasuredGpus> found = measureOnGpus(processes, options);
  MESHWORK_RETURN_IF_ERROR(found.status());
  return processes.agreeOnEnd(processes.isFirst() ? deliver(*found)
                                                  : absl::OkStatus());
}
} // namespace

absl::Status
measureGpus(const RunOptions &options,
            absl::FunctionRef<absl::Status(const MeasuredGpus &)> deliver) {
  absl::StatusOr<Processes> processes = Processes::start(options);
  MESHWORK_RETURN_IF_ERROR(processes.status());
  return processes->settle(measureIn(*processes, options, deliver));
}

} // namespace meshwork::runtime
