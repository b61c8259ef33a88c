#include "runtime/io/Streams.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <unistd.h>

#include <absl/strings/str_cat.h>

#include "meshwork/Runtime/ExitCode.h"

namespace meshwork::runtime {

[[noreturn]] static void outOfMemory() {
  // Without an allocation: there is no memory for one.
  dprintf(STDERR_FILENO, "%s: error: not enough memory\n",
          program_invocation_short_name);
  _exit(static_cast<int>(ExitCode::noResources));
}

void startTool() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0)
      // The lowest free number, which is this stream's.
      static_cast<void>(::open("/", O_PATH));
  signal(SIGXFSZ, SIG_IGN);
  std::set_new_handler(outOfMemory);
}

absl::Status writeOut(std::string_view text) {
  while (!text.empty()) {
    ssize_t put = ::write(STDOUT_FILENO, text.data(), text.size());
    if (put < 0 && errno != EINTR)
      return absl::UnavailableError(
          absl::StrCat("cannot write to stdout: ", std::strerror(errno)));
    text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(put, 0)));
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime
