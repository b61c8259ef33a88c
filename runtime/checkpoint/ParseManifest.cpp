#include "runtime/checkpoint/CheckManifest.h"
#include "runtime/checkpoint/HashedFile.h"
#include "runtime/checkpoint/ManifestHandler.h"

namespace meshwork::runtime {
namespace {
/// The text before the line with its hash, when they fit.
absl::StatusOr<std::string_view> hashedPart(std::string_view text) {
  std::string_view body = text;
  if (body.ends_with('\n'))
    body.remove_suffix(1);
  size_t line = body.rfind('\n');
  if (line == std::string_view::npos)
    return absl::DataLossError(
        "does not end in a line with its own hash; it was cut off");
  std::string_view last = body.substr(line + 1);
  body = body.substr(0, line + 1);
  std::string right = absl::StrCat("\"xxh3_128\":\"", hashText(body), "\"}");
  if (last != right)
    return absl::DataLossError(
        absl::StrCat("its last line is ", quote(last.substr(0, 60)),
                     ", expected ", quote(right), " for its ", body.size(),
                     " bytes before: it was cut off or changed"));
  return body;
}
} // namespace

absl::StatusOr<Manifest> parseManifest(std::string_view text) {
  if (absl::Status status = hashedPart(text).status(); !status.ok())
    return status;
  manifest::ManifestHandler handler;
  if (absl::Status status = parseJson(text, handler); !status.ok())
    return handler.isOfOtherVersion()
               ? absl::UnimplementedError(status.message())
               : status;
  if (absl::Status status = checkManifest(handler.manifest); !status.ok())
    return status;
  return std::move(handler.manifest);
}

} // namespace meshwork::runtime
