#include "runtime/selftest/GpuChecks.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/MeasureGpu.h"
#include "runtime/selftest/OddOnesOut.h"
#include <sstream>

namespace meshwork::runtime {
namespace {
/// Between more hosts communicators would take too much memory.
constexpr size_t mostHosts = 16;

absl::StatusOr<std::vector<GpuRates>> measureAll(GpuTransport &gpu,
                                                 uint32_t rank) {
  GpuRates mine;
  MESHWORK_ASSIGN_OR_RETURN(mine, gpu.measure());
  std::vector<std::string> texts;
  MESHWORK_ASSIGN_OR_RETURN(
      texts, gpu.exchange(rank,
                          absl::StrFormat("%.17g %.17g %.17g", mine.f32,
                                          mine.bf16, mine.copyBytes),
                          "rates of GPUs"));
  std::vector<GpuRates> all;
  for (const std::string &text : texts) {
    GpuRates &one = all.emplace_back();
    std::istringstream(text) >> one.f32 >> one.bf16 >> one.copyBytes;
  }
  return all;
}
} // namespace

GpuHere gpuHere() {
  absl::StatusOr<const cuda::Driver *> driver = cuda::Driver::open();
  cuda::Device device = 0;
  char name[256] = "";
  int major = 0, minor = 0;
  if (!driver.ok() || (*driver)->deviceGet(&device, 0) != 0 ||
      (*driver)->deviceGetName(name, sizeof(name), device) != 0 ||
      (*driver)->deviceGetAttribute(&major, cuda::attribute::computeMajor,
                                    device) != 0 ||
      (*driver)->deviceGetAttribute(&minor, cuda::attribute::computeMinor,
                                    device) != 0)
    return {};
  return {absl::StrCat(name, " (compute capability ", major, ".", minor, ")"),
          cuda::archOf(major)};
}

absl::StatusOr<std::vector<int>> agreeOnGpus(Processes &processes,
                                             uint32_t ranks,
                                             const RunOptions &options,
                                             std::string &why) {
  absl::StatusOr<const cuda::Driver *> driver = cuda::Driver::open();
  cuda::keepLaunchOrder();
  auto isMissing = [](const std::string &one) { return !one.empty(); };
  std::vector<std::string> lacks;
  MESHWORK_ASSIGN_OR_RETURN(
      lacks, processes.exchange(std::string(driver.status().message())));
  if (absl::c_all_of(lacks, isMissing))
    return std::vector<int>{}; // nobody has GPUs
  absl::StatusOr<std::vector<int>> chosen = std::vector<int>{};
  if (absl::c_none_of(lacks, isMissing)) {
    chosen =
        cuda::gpusOfRanks(**driver, processes.deviceOptions(ranks, options));
    MESHWORK_ASSIGN_OR_RETURN(
        lacks, processes.exchange(
                   options.shareGpu ? "--share-gpu puts all ranks on one GPU"
                                    : std::string(chosen.status().message())));
  }
  auto first = absl::c_find_if(lacks, isMissing);
  why = first == lacks.end() ? "" : *first;
  return why.empty() ? *chosen : std::vector<int>{};
}

absl::StatusOr<GpusFound> checkGpu(Transport &host, uint32_t rank, int ordinal,
                                   const MovesToCheck &what,
                                   double timeoutSeconds) {
  MovesToCheck here = what;
  if (here.hosts.size() > mostHosts)
    here.leaders.clear();
  std::unique_ptr<GpuTransport> gpu;
  MESHWORK_ASSIGN_OR_RETURN(
      gpu, GpuTransport::create(host, Mesh(here.mesh), rank, ordinal,
                                here.collectives(rank), here.pairs(rank),
                                timeoutSeconds));
  GpusFound found;
  MESHWORK_ASSIGN_OR_RETURN(found.work, measureAll(*gpu, rank));
  MESHWORK_ASSIGN_OR_RETURN(found.moves, checkMoves(*gpu, rank, here));
  return found;
}

std::vector<std::string> GpusFound::slow() const {
  std::vector<double> products, copies;
  for (const GpuRates &one : work) {
    products.push_back(one.bf16);
    copies.push_back(one.copyBytes);
  }
  std::vector<std::string> all = moves.slow("GPU");
  for (const auto &found : {slowRanks(products, "products of its GPU"),
                            slowRanks(copies, "copies of its GPU")})
    all.insert(all.end(), found.begin(), found.end());
  return all;
}

} // namespace meshwork::runtime
