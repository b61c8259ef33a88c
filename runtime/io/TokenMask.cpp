#include "runtime/io/TokenMask.h"

#include <algorithm>
#include <utility>

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <sys/stat.h>

namespace meshwork::runtime {

std::string maskBeside(const std::string &tokens) {
  if (!absl::EndsWith(tokens, ".bin"))
    return "";
  return absl::StrCat(tokens.substr(0, tokens.size() - 4),
                      std::string(maskEnding));
}

absl::StatusOr<std::optional<TokenMask>>
TokenMask::openBeside(const std::string &tokens, uint64_t numTokens) {
  std::string path = maskBeside(tokens);
  struct stat status;
  if (path.empty() || ::lstat(path.c_str(), &status) != 0)
    return std::nullopt;
  absl::StatusOr<InputFile> file = InputFile::open(path);
  if (!file.ok())
    return file.status();
  if (file->size() != numTokens)
    return absl::DataLossError(
        absl::StrCat(quote(path), ": holds ", file->size(), " bytes, expected ",
                     numTokens, ", one for each token of ", quote(tokens),
                     "; make both anew, or move the mask away"));
  return TokenMask(*std::move(file));
}

absl::Status TokenMask::read(uint64_t first,
                             absl::Span<unsigned char> to) const {
  if (absl::Status status = file.readAt(first, to.data(), to.size());
      !status.ok())
    return status;
  auto bad = std::find_if(to.begin(), to.end(),
                          [](unsigned char one) { return one > 1; });
  if (bad == to.end())
    return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      quote(file.path()), ": byte ",
      first + static_cast<uint64_t>(bad - to.begin()), " is ", int{*bad},
      ", expected 1 where the token counts as a target, else 0"));
}

} // namespace meshwork::runtime
