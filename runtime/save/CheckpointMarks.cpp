#include "runtime/save/CheckpointMarks.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "lib/Plan/Checked.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/io/NewFile.h"
#include "runtime/rank/Names.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace meshwork::runtime {
namespace {
constexpr char markBegin[] = ".seen-by-rank-";
/// Before a mark's name, where others read what may also be an error.
constexpr char isMark[] = "mark ";

std::string beginOf(uint32_t rank) {
  return absl::StrCat(markBegin, rank, ".");
}

FileDescriptor openFolder(const std::string &path) {
  return FileDescriptor(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/// Releases before this one wrote them without a random ending.
bool isMarkName(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, markBegin))
    return false;
  size_t digits = name.find_first_not_of("0123456789");
  name.remove_prefix(std::min(digits, name.size()));
  return digits != 0 &&
         (name.empty() || (name[0] == '.' && name.size() == 1 + randomEnding));
}

bool isThere(const FileDescriptor &folder, const std::string &mark) {
  struct stat found;
  return ::fstatat(folder.get(), mark.c_str(), &found, AT_SYMLINK_NOFOLLOW) ==
         0;
}

/// The ranks whose marks are not in `folder`.
std::vector<uint32_t> unseen(const FileDescriptor &folder,
                             absl::Span<const std::string> marks) {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < marks.size(); ++rank)
    if (!isThere(folder, marks[rank]))
      ranks.push_back(rank);
  return ranks;
}

/// The names of all marks, once all are there.
absl::StatusOr<std::vector<std::string>>
exchangeMarks(const Processes &processes, const std::string &mine) {
  std::vector<std::string> all;
  MESHWORK_ASSIGN_OR_RETURN(all, processes.exchange(mine));
  for (std::string &one : all) {
    absl::string_view mark = one;
    if (!absl::ConsumePrefix(&mark, isMark))
      return cannotCheckpoint(one);
    one = std::string(mark);
  }
  return all;
}

std::string missingText(const std::string &folder,
                        const std::vector<uint32_t> &missing) {
  return absl::StrCat(quote(folder), " lacks the files that ranks ",
                      absl::StrJoin(missing, ", "),
                      " have made there: give a folder that all hosts share");
}
} // namespace

std::string whoIs(const Processes &processes) {
  return processes.areMany() ? absl::StrCat("rank ", processes.rank(),
                                            " (host ", hostName(), "): ")
                             : "";
}

absl::Status cannotCheckpoint(const std::string &why) {
  return withExitCode(
      absl::FailedPreconditionError(absl::StrCat("--checkpoint: ", why)),
      ExitCode::cannotCreate);
}

absl::Status agreeOnCheckpoint(const Processes &processes,
                               const std::string &mine) {
  absl::StatusOr<std::vector<std::string>> all = processes.exchange(mine);
  MESHWORK_RETURN_IF_ERROR(all.status());
  for (const std::string &one : *all)
    if (!one.empty())
      return cannotCheckpoint(one);
  return absl::OkStatus();
}

void removeMarksLeft(const std::string &folder) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end;
       !error && entry != end; entry.increment(error))
    if (isMarkName(entry->path().filename().string()))
      found.push_back(entry->path());
  for (const std::filesystem::path &mark : found)
    (void)::unlink(mark.c_str());
}

absl::Status checkShared(const std::string &path, const Processes &processes) {
  FileDescriptor folder = openFolder(path);
  std::string mark;
  bool isMade =
      createNewFile(folder, beginOf(processes.rank()), mark).get() >= 0;
  int why = errno;
  absl::Cleanup remove = [&] {
    if (isMade)
      (void)::unlinkat(folder.get(), mark.c_str(), 0);
  };
  std::vector<std::string> all;
  MESHWORK_ASSIGN_OR_RETURN(
      all, exchangeMarks(processes,
                         isMade ? absl::StrCat(isMark, mark)
                                : absl::StrCat(whoIs(processes), quote(path),
                                               ": cannot create a file there: ",
                                               std::strerror(why))));
  std::vector<uint32_t> missing = unseen(folder, all);
  return agreeOnCheckpoint(
      processes, missing.empty() ? ""
                                 : absl::StrCat(whoIs(processes),
                                                missingText(path, missing)));
}

} // namespace meshwork::runtime
