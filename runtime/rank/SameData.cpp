#include "runtime/rank/SameData.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/Checked.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/rank/Names.h"
#include "runtime/rank/OddOnes.h"

namespace meshwork::runtime {

absl::Status agreeOnData(const Processes &processes, const TokenSource &tokens,
                         const std::string &path) {
  if (!processes.areMany())
    return absl::OkStatus();
  std::vector<std::string> identities, files;
  MESHWORK_ASSIGN_OR_RETURN(identities, processes.exchange(tokens.identity()));
  MESHWORK_ASSIGN_OR_RETURN(
      files, processes.exchange(absl::StrCat(quote(path), " on ", hostName())));
  std::vector<uint32_t> odd = oddOnes(identities);
  if (odd.empty())
    return absl::OkStatus();
  uint32_t other = 0;
  while (identities[other] == identities[odd[0]])
    ++other;
  return withExitCode(
      absl::FailedPreconditionError(absl::StrCat(
          ranksWith(odd, "reads", "read"),
          " other data than the other ranks: ", files[odd[0]], " has ",
          identities[odd[0]], "; ", files[other], " of rank ", other, " has ",
          identities[other], ": give all ranks the same tokens")),
      ExitCode::config);
}

} // namespace meshwork::runtime
