#include "runtime/io/OtherProgram.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace meshwork::runtime {

absl::StatusOr<ScratchFolder> ScratchFolder::make() {
  const char *given = std::getenv("TMPDIR");
  std::string path =
      absl::StrCat(given && *given ? given : "/tmp", "/meshwork-XXXXXX");
  if (!::mkdtemp(path.data()))
    return absl::UnavailableError(absl::StrCat(
        "a folder of its own in ", given && *given ? "TMPDIR" : "/tmp", ": ",
        std::strerror(errno)));
  return ScratchFolder(path);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path.empty())
    std::filesystem::remove_all(path, ignored);
}

absl::StatusOr<std::string> programHere(const std::string &name) {
  std::error_code error;
  std::filesystem::path own =
      std::filesystem::read_symlink("/proc/self/exe", error);
  std::string path = (own.parent_path() / name).string();
  if (error || ::access(path.c_str(), X_OK) != 0)
    return absl::NotFoundError(absl::StrCat(name, " is not in the folder of ",
                                            own.filename().string(),
                                            "; keep them together"));
  return path;
}

absl::Status runProgram(const std::vector<std::string> &command,
                        const ScratchFolder &scratch) {
  std::vector<char *> arguments;
  for (const std::string &one : command)
    arguments.push_back(const_cast<char *>(one.c_str()));
  arguments.push_back(nullptr);
  std::string said = scratch.file("said");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, said.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  int error = ::posix_spawn(&child, arguments[0], &actions, nullptr,
                            arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return absl::UnavailableError(
        absl::StrCat(command[0], " cannot be started: ", std::strerror(error)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  if (status == 0)
    return absl::OkStatus();
  std::stringstream text;
  text << std::ifstream(said).rdbuf();
  return absl::FailedPreconditionError(absl::StrCat(
      std::filesystem::path(command[0]).filename().string(), " failed: ",
      absl::StrReplaceAll(absl::StripAsciiWhitespace(text.str()),
                          {{scratch.file(""), ""}})));
}

} // namespace meshwork::runtime
