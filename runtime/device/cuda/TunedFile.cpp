// The file of Tuned: a line that names the format, and its text. It is read as
// if anybody had written it: bounded, and a choice only selects among
// candidates that are there anyway.
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/Tuned.h"
#include "runtime/io/Files.h"
#include <cstdlib>
#include <filesystem>

namespace meshwork::runtime::cuda {
namespace {
constexpr absl::string_view firstLine = "meshwork tuned 1\n";
constexpr size_t maxBytes = 1 << 20; // some thousand choices

std::string folderFor(const char *variable, const char *below) {
  const char *value = std::getenv(variable);
  if (!value || value[0] != '/')
    return "";
  return absl::StrCat(value, "/", below);
}

std::string cacheFolder() {
  if (const char *ours = std::getenv("MESHWORK_CACHE_DIR"))
    return ours;
  std::string folder = folderFor("XDG_CACHE_HOME", "meshwork");
  return folder.empty() ? folderFor("HOME", ".cache/meshwork") : folder;
}
} // namespace

std::string tunedPath(size_t version, absl::string_view gpu) {
  std::string folder = cacheFolder(), name;
  for (char c : gpu)
    name += absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.'
                ? c
                : '_';
  return folder.empty() ? ""
                        : absl::StrCat(folder, "/tuned-cublasLt-", version, "-",
                                       name, ".txt");
}

std::string readTuned(const std::string &path) {
  if (path.empty())
    return "";
  absl::StatusOr<InputFile> file = InputFile::open(path);
  if (!file.ok() || file->size() > maxBytes)
    return "";
  std::string text(file->size(), '\0');
  absl::string_view rest = text;
  if (!file->readAt(0, text.data(), text.size()).ok() ||
      !absl::ConsumePrefix(&rest, firstLine))
    return "";
  return std::string(rest);
}

absl::Status writeTuned(const std::string &path, const Tuned &tuned) {
  std::error_code error;
  std::filesystem::create_directories(folderOf(path), error);
  if (error)
    return absl::FailedPreconditionError(absl::StrCat(
        quote(folderOf(path)), ": cannot make the folder: ", error.message()));
  std::string text = absl::StrCat(firstLine, tuned.text(/*onlyUsed=*/false));
  if (text.size() > maxBytes)
    text = absl::StrCat(firstLine, tuned.text(/*onlyUsed=*/true));
  return writeWhole(path, text, OutputLink::replaced);
}

} // namespace meshwork::runtime::cuda
