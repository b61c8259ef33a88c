#include "runtime/machine/CoreClaims.h"
#include "absl/strings/str_cat.h"
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>

namespace meshwork::runtime {
namespace {

/// False when somebody else has it. Where names cannot be had at all, cores are
/// nobody's.
bool claimOne(int cpu, std::vector<FileDescriptor> &held) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0)
    return true;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::string name = absl::StrCat("meshwork-cpu-", cpu);
  std::memcpy(address.sun_path + 1, name.data(), name.size()); // after a zero
  auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(socket.get(), reinterpret_cast<sockaddr *>(&address), size) != 0)
    return errno != EADDRINUSE;
  held.push_back(std::move(socket));
  return true;
}
} // namespace

std::vector<int> pinnedCpus(const std::vector<CoreShare> &shares) {
  std::vector<int> all;
  for (const CoreShare &share : shares)
    all.insert(all.end(), share.cpus.begin(), share.cpus.end());
  return all;
}

bool CoreClaims::claim(const std::vector<int> &cpus) {
  std::vector<FileDescriptor> claimed;
  for (int cpu : cpus)
    if (!claimOne(cpu, claimed))
      return false;
  for (FileDescriptor &one : claimed)
    held.push_back(std::move(one));
  return true;
}

std::vector<CoreShare> CoreClaims::share(const std::vector<int> &cpus,
                                         uint32_t ranks, int threads,
                                         bool pin) {
  std::vector<CoreShare> shares = shareCores(cpus, ranks, threads, pin);
  if (claim(pinnedCpus(shares)))
    return shares;
  std::vector<int> free;
  std::vector<FileDescriptor> looked;
  for (int cpu : cpus)
    if (claimOne(cpu, looked))
      free.push_back(cpu);
  looked.clear();
  int each = shares[0].threads;
  if (free.size() >= static_cast<size_t>(each) * ranks)
    if (auto others = shareCores(free, ranks, each, pin);
        claim(pinnedCpus(others)))
      return others;
  tooFew = true;
  for (CoreShare &one : shares)
    one.cpus.clear();
  return shares;
}

} // namespace meshwork::runtime
