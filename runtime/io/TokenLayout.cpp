// llm.c, raw and text files, and the choice between the formats.
#include "runtime/io/TokenLayout.h"

#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include "lib/Text/FileKind.h"
#include "runtime/io/TokenMask.h"

namespace meshwork::runtime {
namespace {

constexpr uint64_t llmcHeaderBytes = 1024;
constexpr int32_t llmcMagic16 = 20240520, llmcMagic32 = 20240801;

TokenLayout oneExtent(InputFile file, TokenType type, uint64_t offset,
                      uint64_t numTokens) {
  TokenLayout layout;
  layout.file = std::move(file);
  layout.type = type;
  layout.numTokens = numTokens;
  layout.extents = {{0, offset}};
  return layout;
}

absl::StatusOr<TokenLayout> readLlmc(InputFile file, int32_t magic) {
  bool wide = magic == llmcMagic32;
  int32_t wantedVersion = wide ? 7 : 1;
  uint64_t width = wide ? 4 : 2;
  int32_t header[3];
  if (file.size() < llmcHeaderBytes)
    return absl::DataLossError(absl::StrCat(
        quote(file.path()), ": is ", file.size(),
        " bytes, expected an llm.c header of 1024 bytes; the file is cut off"));
  if (absl::Status status = file.readAt(0, header, sizeof(header));
      !status.ok())
    return status;
  if (header[1] != wantedVersion)
    return absl::DataLossError(absl::StrCat(
        quote(file.path()), ": llm.c file of version ", header[1],
        ", expected version ", wantedVersion, " for magic ", magic));
  uint64_t held = file.size() - llmcHeaderBytes;
  if (header[2] < 0 || static_cast<uint64_t>(header[2]) * width != held)
    return absl::DataLossError(absl::StrCat(
        quote(file.path()), ": the llm.c header promises ", header[2],
        " tokens of ", width, " bytes, the file holds ", held,
        " bytes of them; it was cut off or its header is wrong"));
  return oneExtent(std::move(file), wide ? TokenType::u32 : TokenType::u16,
                   llmcHeaderBytes, held / width);
}

absl::StatusOr<TokenLayout> readRaw(InputFile file, TokenType type) {
  uint64_t width = widthOf(type), size = file.size();
  if (size % width != 0)
    return absl::DataLossError(absl::StrCat(
        quote(file.path()), ": is ", size, " bytes, expected a multiple of ",
        width, "; it was cut off or --data-type is wrong"));
  TokenLayout layout = oneExtent(std::move(file), type, 0, size / width);
  layout.form =
      type == TokenType::u8 ? TokenLayout::Form::text : TokenLayout::Form::raw;
  return layout;
}

bool isLetters(const FileKind &kind) {
  using Group = FileKind::Group;
  return kind.group == Group::text || kind.group == Group::json ||
         kind.group == Group::page;
}

/// Refuses what is known to be something else than is said.
absl::Status checkKind(const InputFile &file, const TokenOptions &options) {
  std::optional<FileKind> kind = kindOf(file);
  if (!kind || (!options.tokenizer.empty() && isLetters(*kind)))
    return absl::OkStatus();
  // Of letters nothing was said yet.
  bool isUsage = isLetters(*kind) && options.dataType.empty();
  return {isUsage ? absl::StatusCode::kInvalidArgument
                  : absl::StatusCode::kDataLoss,
          absl::StrCat(quote(file.path()), ": is ", kind->name,
                       adviceForTokens(*kind))};
}

/// The first four bytes as llm.c's magic number, 0 when it is not one.
absl::StatusOr<int32_t> llmcMagicOf(const InputFile &file) {
  int32_t magic = 0;
  if (file.size() < sizeof(magic))
    return 0;
  if (absl::Status status = file.readAt(0, &magic, sizeof(magic)); !status.ok())
    return status;
  return magic == llmcMagic16 || magic == llmcMagic32 ? magic : 0;
}

absl::StatusOr<TokenLayout> readMegatron(InputFile file, bool withDocuments) {
  std::string stem = file.path().substr(0, file.path().size() - 4);
  bool isIndex = isMegatronIndex(file);
  if (isIndex && !absl::EndsWith(file.path(), ".idx"))
    return absl::DataLossError(absl::StrCat(
        quote(file.path()), ": is a Megatron index, expected its name to end "
                            "in .idx, to find the .bin file beside it"));
  absl::StatusOr<InputFile> other =
      InputFile::open(stem + (isIndex ? ".bin" : ".idx"));
  if (!other.ok())
    return other.status();
  return isIndex ? readMegatronIndex(file, *std::move(other), withDocuments)
                 : readMegatronIndex(*other, std::move(file), withDocuments);
}

/// Whether `file` is one half of a Megatron pair.
bool isMegatron(const InputFile &file) {
  if (isMegatronIndex(file))
    return true;
  if (!absl::EndsWith(file.path(), ".bin"))
    return false;
  absl::StatusOr<InputFile> index =
      InputFile::open(file.path().substr(0, file.path().size() - 4) + ".idx");
  return index.ok() && isMegatronIndex(*index);
}

absl::Status unknownFormat(const InputFile &file) {
  char start[8] = {};
  uint64_t length = std::min<uint64_t>(file.size(), sizeof(start));
  if (absl::Status status = file.readAt(0, start, length); !status.ok())
    return status;
  return absl::InvalidArgumentError(absl::StrCat(
      quote(file.path()), ": starts with ",
      quote(std::string_view(start, length)),
      ", which is neither an llm.c nor a Megatron file; give --data-type u16 "
      "or "
      "u32 for raw little-endian tokens, or --tokenizer bytes for text"));
}

absl::Status conflict(const InputFile &file, const char *format,
                      const TokenOptions &options) {
  std::string given = options.tokenizer.empty()
                          ? "--data-type " + options.dataType
                          : "--tokenizer " + options.tokenizer;
  return absl::InvalidArgumentError(
      absl::StrCat(quote(file.path()), ": is ", format, ", which ", given,
                   " contradicts; leave the option out"));
}

} // namespace

/// Whether `path` is the prefix of a Megatron pair, as its tools want it.
static bool isMegatronPrefix(const std::string &path) {
  std::error_code none;
  if (path.empty() || std::filesystem::is_regular_file(path, none))
    return false;
  absl::StatusOr<InputFile> index = InputFile::open(path + ".idx");
  return index.ok() && isMegatronIndex(*index);
}

std::vector<std::string> tokenFiles(const std::string &path) {
  if (isMegatronPrefix(path))
    return {path + ".bin", path + ".idx", maskBeside(path + ".bin")};
  std::vector<std::string> files;
  if (!path.empty())
    files.push_back(path);
  std::string stem = path.substr(0, path.size() < 4 ? 0 : path.size() - 4);
  if (absl::EndsWith(path, ".bin"))
    files.push_back(stem + ".idx");
  if (absl::EndsWith(path, ".idx"))
    files.push_back(stem + ".bin");
  if (files.size() > 1)
    files.push_back(maskBeside(stem + ".bin"));
  return files;
}

absl::StatusOr<TokenLayout> findTokenLayout(const TokenOptions &options) {
  absl::StatusOr<InputFile> file = InputFile::open(
      options.path + (isMegatronPrefix(options.path) ? ".idx" : ""));
  if (!file.ok())
    return file.status();
  absl::StatusOr<int32_t> magic = llmcMagicOf(*file);
  if (!magic.ok())
    return magic.status();
  bool text = !options.tokenizer.empty();
  if (*magic != 0) {
    const char *type = *magic == llmcMagic32 ? "u32" : "u16";
    if (text || (!options.dataType.empty() && options.dataType != type))
      return conflict(*file,
                      *magic == llmcMagic32 ? "an llm.c file of 32-bit tokens"
                                            : "an llm.c file of 16-bit tokens",
                      options);
    return readLlmc(*std::move(file), *magic);
  }
  if (isMegatron(*file)) {
    if (text || !options.dataType.empty())
      return conflict(*file, "a Megatron file, whose index names the type",
                      options);
    return readMegatron(*std::move(file),
                        options.documents.from == DocumentMarks::From::index);
  }
  if (absl::Status status = checkKind(*file, options); !status.ok())
    return status;
  if (text)
    return readRaw(*std::move(file), TokenType::u8);
  if (options.dataType == "u16")
    return readRaw(*std::move(file), TokenType::u16);
  if (options.dataType == "u32")
    return readRaw(*std::move(file), TokenType::u32);
  return unknownFormat(*file);
}

} // namespace meshwork::runtime
