#include <optional>

#include <absl/container/flat_hash_set.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <nlohmann/json.hpp>

#include "runtime/io/SafeTensorsHeader.h"

namespace meshwork::runtime {
namespace {

/// The JSON string of `name`; nothing when it is not UTF-8.
std::optional<std::string> jsonString(const std::string &name) {
  using nlohmann::json;
  std::string strict =
      json(name).dump(-1, ' ', false, json::error_handler_t::ignore);
  std::string marked =
      json(name).dump(-1, ' ', false, json::error_handler_t::replace);
  if (strict != marked) // they differ exactly where a byte is not UTF-8
    return std::nullopt;
  return strict;
}

} // namespace

absl::StatusOr<std::string>
safeTensorsHeader(absl::Span<const HeaderEntry> tensors, uint64_t alignment) {
  // Loaders of the Transformers library want the key "format".
  std::string header = R"({"__metadata__":{"format":"pt"})";
  absl::flat_hash_set<std::string_view> names;
  uint64_t offset = 0;
  for (const HeaderEntry &tensor : tensors) {
    std::optional<std::string> name = jsonString(tensor.name);
    if (!name || !isPrintableName(tensor.name) ||
        tensor.name == "__metadata__" || !names.insert(tensor.name).second)
      return absl::InvalidArgumentError(absl::StrCat(
          "cannot write a tensor named ", quote(tensor.name),
          ": names must differ, be UTF-8 without control characters, not be "
          "empty and not be \"__metadata__\""));
    std::optional<uint64_t> end = checkedAdd(offset, tensor.bytes);
    if (!end)
      return absl::InvalidArgumentError(
          "the tensors together do not fit 64 bits");
    absl::StrAppend(&header, ",", *name, R"(:{"dtype":")", tensor.dtype,
                    R"(","shape":[)", absl::StrJoin(tensor.shape, ","),
                    R"(],"data_offsets":[)", offset, ",", *end, "]}");
    offset = *end;
  }
  header += '}';
  uint64_t length, whole = header.size() + sizeof(length);
  header.append((alignment - whole % alignment) % alignment, ' ');
  length = header.size();
  if (length > maxHeaderBytes)
    return absl::InvalidArgumentError(absl::StrCat("the header takes ", length,
                                                   " bytes, the format allows ",
                                                   maxHeaderBytes));
  return std::string(reinterpret_cast<const char *>(&length), sizeof(length)) +
         header;
}

} // namespace meshwork::runtime
