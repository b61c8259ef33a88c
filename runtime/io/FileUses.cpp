#include "runtime/io/FileUses.h"

#include <filesystem>
#include <optional>
#include <tuple>
#include <vector>

#include <sys/stat.h>

#include <absl/strings/str_cat.h>

#include "runtime/io/Files.h"
#include "runtime/io/NewFile.h"

namespace meshwork::runtime {
namespace {

/// Device and inode. For a missing file: those of its folder, and its name
/// there. An input may be missing; then the writer must not make it.
using Identity = std::tuple<dev_t, ino_t, std::string>;

/// Nothing where no bytes can be lost.
std::optional<Identity> identityOf(const FileUse &use) {
  const std::string &path = use.path;
  if (path.empty())
    return std::nullopt;
  struct stat status;
  bool isThere = use.replacesLink ? lstat(path.c_str(), &status) == 0
                                  : stat(path.c_str(), &status) == 0;
  bool isReplaced = use.replacesLink && isThere && S_ISLNK(status.st_mode);
  if (isThere && !isReplaced)
    return S_ISREG(status.st_mode)
               ? std::optional(Identity(status.st_dev, status.st_ino, ""))
               : std::nullopt;
  std::filesystem::path target =
      isReplaced ? path : outputTarget(path).value_or(path);
  std::string folder = folderOf(target.string());
  if (stat(folder.c_str(), &status) == 0)
    return Identity(status.st_dev, status.st_ino, target.filename().string());
  return Identity(0, 0, target.string());
}

absl::Status conflict(const FileUse &a, const FileUse &b) {
  if (a.isWritten && b.isWritten)
    return absl::InvalidArgumentError(
        absl::StrCat(a.role, " ", quote(a.path), " and ", b.role, " ",
                     quote(b.path), " are one file: name two"));
  const FileUse &output = a.isWritten ? a : b, &input = a.isWritten ? b : a;
  return absl::InvalidArgumentError(absl::StrCat(
      output.role, " ", quote(output.path), " would overwrite ", input.role,
      " ", quote(input.path), ", which is the same file: name another one"));
}

} // namespace

absl::Status checkFileUses(absl::Span<const FileUse> uses) {
  std::vector<std::optional<Identity>> identities;
  for (const FileUse &use : uses)
    identities.push_back(identityOf(use));
  for (size_t i = 0; i < uses.size(); ++i)
    for (size_t j = i + 1; j < uses.size(); ++j)
      if ((uses[i].isWritten || uses[j].isWritten) && identities[i] &&
          identities[i] == identities[j])
        return conflict(uses[i], uses[j]);
  return absl::OkStatus();
}

} // namespace meshwork::runtime
