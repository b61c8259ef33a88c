#include "tools/meshwork-run/Ending.h"
#include "absl/strings/str_cat.h"
#include "meshwork/Runtime/ExitCode.h"
#include <algorithm>
#include <cstring>
#include <sys/wait.h>

namespace meshwork {

bool Ending::byCode() const { return WIFEXITED(status); }

int Ending::code() const {
  return byCode() ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string Ending::text() const {
  return byCode() ? absl::StrCat("ended with exit code ", code())
                  : absl::StrCat("was killed by signal ", WTERMSIG(status),
                                 " (", strsignal(WTERMSIG(status)), ")");
}

bool Ending::isFinal() const {
  using runtime::ExitCode;
  constexpr ExitCode codes[] = {
      ExitCode::ok,      ExitCode::usage,        ExitCode::badData,
      ExitCode::noInput, ExitCode::cannotCreate, ExitCode::config,
      ExitCode::hungUp,  ExitCode::interrupted,  ExitCode::terminated};
  return byCode() &&
         std::find(std::begin(codes), std::end(codes),
                   static_cast<ExitCode>(code())) != std::end(codes);
}

} // namespace meshwork
