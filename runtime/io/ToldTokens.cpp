#include "runtime/io/ToldTokens.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <nlohmann/json.hpp>

#include "runtime/io/Files.h"

namespace meshwork::runtime {
namespace {
constexpr uint64_t mostBytes = 1 << 20;

/// Null where there is none, or it is no object of ours.
nlohmann::json toldIn(const std::string &path) {
  absl::StatusOr<InputFile> file = InputFile::open(path);
  if (!file.ok() || file->size() > mostBytes)
    return nullptr;
  std::string text(file->size(), '\0');
  if (!file->readAt(0, text.data(), text.size()).ok())
    return nullptr;
  auto told = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  auto isNumber = [&](const char *key) {
    auto found = told.find(key);
    return found != told.end() && found->is_number_unsigned();
  };
  bool isOurs = told.is_object() && told.contains("tokenizer_sha256") &&
                isNumber("vocabulary") && isNumber("tokens");
  return isOurs ? told : nullptr;
}
} // namespace

absl::Status checkToldTokens(const std::string &path, uint64_t numTokens,
                             uint32_t vocabulary) {
  if (!absl::EndsWith(path, ".bin"))
    return absl::OkStatus();
  std::string beside = path.substr(0, path.size() - 4) + ".json";
  nlohmann::json told = toldIn(beside);
  if (told.is_null())
    return absl::OkStatus();
  if (uint64_t tokens = told["tokens"]; tokens != numTokens)
    return absl::DataLossError(absl::StrCat(
        quote(path), ": holds ", numTokens, " tokens, but ", quote(beside),
        " tells of ", tokens, ": they are of two runs of meshwork tokenize"));
  if (uint64_t ids = told["vocabulary"]; ids > vocabulary)
    return absl::DataLossError(
        absl::StrCat(quote(path), ": is of a tokenizer with ", ids, " ids (",
                     quote(beside), "), the model's vocabulary is ", vocabulary,
                     ": take the model's own tokenizer"));
  return absl::OkStatus();
}

} // namespace meshwork::runtime
