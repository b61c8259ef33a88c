// A process that may have only so many threads.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace meshwork::runtime::test {

/// Only root may become a user who has no other process, not even another test,
/// whose threads would count too.
inline bool canLimitThreads() { return ::geteuid() == 0; }

/// From here on this process has at most `threads`, for good: for a child.
inline void limitThreads(rlim_t threads) {
  uid_t nobodyElse = 20000 + static_cast<uid_t>(::getpid()) % 40000;
  struct rlimit limit = {threads, threads};
  if (::setrlimit(RLIMIT_NPROC, &limit) != 0 || ::setuid(nobodyElse) != 0)
    ::_exit(99);
}

} // namespace meshwork::runtime::test
