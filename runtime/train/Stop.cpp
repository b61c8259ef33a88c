#include "runtime/train/Stop.h"
#include "absl/strings/str_cat.h"
#include "meshwork/Runtime/ExitCode.h"
#include <cstring>

namespace meshwork::runtime {

absl::Status stoppedBy(int signal, const std::string &when) {
  const char *name = ::sigabbrev_np(signal);
  return withExitCode(absl::CancelledError(absl::StrCat(
                          "stopped by SIG", name ? name : "?", " ", when)),
                      static_cast<ExitCode>(128 + signal));
}

} // namespace meshwork::runtime
