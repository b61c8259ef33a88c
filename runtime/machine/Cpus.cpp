#include "runtime/machine/Cpus.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/Plan/Views.h"
#include "runtime/machine/ControlGroup.h"
#include <algorithm>
#include <fstream>
#include <sched.h>
#include <sys/resource.h>

namespace meshwork::runtime {
namespace {

/// Names without the separators that LLVM and the kernel place differently:
/// "amx-bf16" and "amx_bf16", "sse4.2" and "sse4_2".
std::string plain(std::string name) {
  name.erase(std::remove_if(name.begin(), name.end(),
                            [](char c) {
                              return c == '-' || c == '_' || c == '.' ||
                                     c == '+';
                            }),
             name.end());
  return name;
}

/// Where the two call one feature by different names.
std::string kernelName(const std::string &name) {
  static const auto *aliases =
      new absl::flat_hash_map<std::string, std::string>{
          {"64bit", "lm"},     {"crc32", "sse42"},
          {"lzcnt", "abm"},    {"pclmul", "pclmulqdq"},
          {"bmi", "bmi1"},     {"prfchw", "3dnowprefetch"},
          {"rdrnd", "rdrand"}, {"sahf", "lahflm"},
          {"sha", "shani"},    {"shstk", "usershstk"},
          {"sse3", "pni"},     {"x87", "fpu"}};
  auto found = aliases->find(name);
  return found == aliases->end() ? name : found->second;
}

absl::flat_hash_set<std::string> presentFeatures() {
  absl::flat_hash_set<std::string> present;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, 5, "flags") == 0) {
      for (absl::string_view flag : absl::StrSplit(line, ' '))
        present.insert(plain(std::string(flag)));
      break;
    }
  return present;
}
} // namespace

std::vector<int> allowedCpus() {
  // Larger machines than the default mask exist; double until it fits.
  for (int count = 1024; count <= 1 << 20; count *= 2) {
    cpu_set_t *set = CPU_ALLOC(count);
    size_t bytes = CPU_ALLOC_SIZE(count);
    std::vector<int> cpus;
    if (::sched_getaffinity(0, bytes, set) == 0)
      for (int cpu = 0; cpu < count; ++cpu)
        if (CPU_ISSET_S(cpu, bytes, set))
          cpus.push_back(cpu);
    CPU_FREE(set);
    if (!cpus.empty())
      return cpus;
  }
  return {0};
}

size_t usableCores(const std::string &root) {
  size_t cores = allowedCpus().size();
  // A part of a core is none: threads that share a quota stop together when it
  // is used up, and all ranks wait for them.
  if (std::optional<double> quota = controlGroupCores(root))
    cores = std::min(
        cores, std::max<size_t>(1, static_cast<size_t>(std::min(*quota, 1e9))));
  return cores;
}

void unpin(const std::vector<int> &cpus) {
  if (cpus.empty())
    return;
  int count = cpus.back() + 1;
  cpu_set_t *set = CPU_ALLOC(count);
  size_t bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(bytes, set);
  for (int cpu : cpus)
    CPU_SET_S(cpu, bytes, set);
  (void)::sched_setaffinity(0, bytes, set);
  CPU_FREE(set);
}

void letOthersGoFirst() {
  // A thread's own on Linux, where POSIX means the process. Not the lowest:
  // with that, a save beside other programs took minutes.
  (void)::setpriority(PRIO_PROCESS, 0, 10);
}

std::vector<CoreShare> shareCores(const std::vector<int> &cpus, uint32_t ranks,
                                  int threads, bool pin) {
  std::vector<CoreShare> shares;
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    size_t begin = cpus.size() * rank / ranks;
    size_t end = cpus.size() * (rank + 1) / ranks;
    // The same number everywhere, so that no rank waits for a smaller one.
    int block = static_cast<int>(std::max<size_t>(1, cpus.size() / ranks));
    CoreShare share{threads > 0 ? threads : block, {}};
    share.isFull = static_cast<size_t>(share.threads) >= end - begin;
    if (pin && static_cast<size_t>(share.threads) <= end - begin)
      share.cpus.assign(cpus.begin() + begin,
                        cpus.begin() + begin + share.threads);
    shares.push_back(std::move(share));
  }
  bool allPinned =
      std::all_of(shares.begin(), shares.end(),
                  [](const CoreShare &s) { return !s.cpus.empty(); });
  for (CoreShare &share : shares)
    if (!allPinned)
      share.cpus.clear();
  return shares;
}

absl::Status checkMachine(const plan::Plan &plan) {
  absl::flat_hash_set<std::string> present = presentFeatures();
  std::vector<std::string> missing;
  for (const flatbuffers::String *feature : plan::orEmpty(plan.cpu_features()))
    if (!present.contains(kernelName(plain(feature->str()))))
      missing.push_back(plan::quote(feature));
  if (missing.empty())
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the plan is for ", plan::quote(plan.arch()),
      "; this machine's CPU lacks ", absl::StrJoin(missing, ", "),
      ": compile it with [target] arch = \"native\" on this machine"));
}

} // namespace meshwork::runtime
