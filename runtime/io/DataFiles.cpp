#include "runtime/io/DataFiles.h"

#include <algorithm>
#include <filesystem>
#include <glob.h>

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include "runtime/io/Files.h"
#include "runtime/io/TokenMask.h"

namespace meshwork::runtime {
namespace fs = std::filesystem;
namespace {
/// The order of names in a folder depends on nothing but them.
std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

/// Of ascending names. The index of a pair and a mask go by their tokens.
std::vector<std::string>
withoutCompanions(const std::vector<std::string> &files) {
  auto isBeside = [&](const std::string &file, std::string_view ending) {
    return absl::EndsWith(file, std::string(ending)) &&
           std::binary_search(files.begin(), files.end(),
                              file.substr(0, file.size() - ending.size()) +
                                  ".bin");
  };
  std::vector<std::string> kept;
  for (const std::string &file : files)
    if (!isBeside(file, ".idx") && !isBeside(file, maskEnding))
      kept.push_back(file);
  return kept;
}

absl::StatusOr<std::vector<std::string>> filesIn(const std::string &folder,
                                                 const char *ending) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    // A link to nowhere is one, too: opening it tells of it.
    if (std::error_code none; absl::EndsWith(at->path().string(), ending) &&
                              !fs::is_directory(at->path(), none))
      files.push_back(at->path().string());
  if (error)
    return absl::NotFoundError(
        absl::StrCat(quote(folder), ": ", error.message()));
  if (files.empty())
    return absl::NotFoundError(
        absl::StrCat(quote(folder), ": is a folder without files that end in ",
                     ending, "; give files, or a pattern in quotes, like ",
                     quote(folder + "/*.tokens")));
  return withoutCompanions(sorted(std::move(files)));
}

absl::StatusOr<std::vector<std::string>> matching(const std::string &pattern) {
  glob_t found = {};
  int result =
      ::glob(pattern.c_str(), GLOB_MARK | GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> files;
  for (size_t i = 0; result == 0 && i < found.gl_pathc; ++i)
    if (std::string file = found.gl_pathv[i]; !absl::EndsWith(file, "/"))
      files.push_back(std::move(file));
  ::globfree(&found);
  if (files.empty())
    return absl::NotFoundError(
        absl::StrCat(quote(pattern), ": no file has such a name"));
  return withoutCompanions(sorted(std::move(files)));
}
/// A name around the last number in it, of at most 18 digits.
struct Counted {
  std::string before, digits, behind;
  uint64_t number = 0;

  explicit Counted(const std::string &name) {
    constexpr const char *all = "0123456789";
    size_t last = name.find_last_of(all);
    size_t first =
        last == std::string::npos ? last : name.find_last_not_of(all, last) + 1;
    if (first == std::string::npos || last - first >= 18)
      return;
    before = name.substr(0, first);
    digits = name.substr(first, last + 1 - first);
    behind = name.substr(last + 1);
    number = std::stoull(digits);
  }
  bool isBehind(const Counted &other) const {
    return !digits.empty() && before == other.before &&
           behind == other.behind && digits.size() == other.digits.size();
  }
  std::string at(uint64_t other) const {
    std::string text = std::to_string(other);
    return before +
           std::string(digits.size() - std::min(text.size(), digits.size()),
                       '0') +
           text + behind;
  }
};
} // namespace

std::string missingShard(const std::vector<std::string> &files) {
  for (size_t i = 1; i < files.size(); ++i) {
    Counted before(files[i - 1]), now(files[i]);
    if (now.isBehind(before) && now.number > before.number + 1)
      return before.at(before.number + 1);
  }
  return "";
}

absl::StatusOr<std::vector<std::string>> dataFiles(const std::string &path,
                                                   bool isText) {
  std::error_code none;
  if (fs::is_directory(path, none) && !fs::exists(path + ".idx", none))
    return filesIn(path, isText ? ".txt" : ".bin");
  if (path.find_first_of("*?[") != std::string::npos && !fs::exists(path, none))
    return matching(path);
  return std::vector<std::string>{path};
}

} // namespace meshwork::runtime
