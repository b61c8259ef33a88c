#include "lib/Text/FileKind.h"

#include <algorithm>
#include <cstring>

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include "meshwork/Plan/Frame.h"
#include "meshwork/Text/Escape.h"

namespace meshwork {
namespace {
using Group = FileKind::Group;
using namespace std::string_view_literals;

/// What is left of a file's start, little endian; 0 past its end.
template <typename T> T load(std::string_view start, size_t at) {
  T value = 0;
  if (at <= start.size() && sizeof(T) <= start.size() - at)
    std::memcpy(&value, start.data() + at, sizeof(T));
  return value;
}

uint8_t byteAt(std::string_view start, size_t at) {
  return load<uint8_t>(start, at);
}

/// RFC 1952: deflate, no reserved flag, a known level and system.
bool isGzip(std::string_view start, uint64_t) {
  uint8_t level = byteAt(start, 8), system = byteAt(start, 9);
  return start.size() >= 18 && byteAt(start, 3) < 32 &&
         (level == 0 || level == 2 || level == 4) &&
         (system <= 13 || system == 255);
}

/// The name of the first entry, at most the bytes at hand.
std::string_view firstEntry(std::string_view start) {
  return start.substr(std::min<size_t>(start.size(), 30))
      .substr(0, load<uint16_t>(start, 26));
}
bool isZip(std::string_view start, uint64_t) {
  return byteAt(start, 4) < 100 && !firstEntry(start).empty();
}
bool isTorch(std::string_view start, uint64_t size) {
  return isZip(start, size) && firstEntry(start).ends_with("data.pkl");
}
bool isNpz(std::string_view start, uint64_t size) {
  return isZip(start, size) && firstEntry(start).ends_with(".npy");
}

/// Protocols 4 and 5 begin with a frame, older ones with an opcode that makes a
/// container or looks a class up.
bool isPickle(std::string_view start, uint64_t size) {
  uint8_t protocol = byteAt(start, 1);
  if (protocol >= 4 && protocol <= 5)
    return byteAt(start, 2) == 0x95 && load<uint64_t>(start, 3) < size;
  return (protocol == 2 || protocol == 3) && start.size() > 4 &&
         "](}c\x8a"sv.find(start[2]) != std::string_view::npos &&
         (byteAt(start, 3) == 'q' || start[2] == 'c' || start[2] == '\x8a');
}

/// The stream format of datasets: no schema is shorter than 64 bytes.
bool isArrowStream(std::string_view start, uint64_t size) {
  auto schema = load<uint32_t>(start, 4);
  return schema >= 64 && schema % 8 == 0 && schema < size &&
         load<uint32_t>(start, 8) < schema;
}

bool isSafeTensors(std::string_view start, uint64_t size) {
  auto header = load<uint64_t>(start, 0);
  return start.size() >= 10 && header >= 2 && header <= size - 8 &&
         start.substr(8).starts_with("{") &&
         (byteAt(start, 9) == '"' || byteAt(start, 9) == '}');
}

bool isTar(std::string_view start, uint64_t) {
  return start.size() >= 512 && start.substr(257).starts_with("ustar");
}

bool isJpeg(std::string_view start, uint64_t) {
  return start.size() > 3 &&
         "\xdb\xe0\xe1\xee"sv.find(start[3]) != std::string_view::npos;
}

struct Known {
  std::string_view magic; // at the start
  FileKind kind;
  bool (*fits)(std::string_view start, uint64_t sizeBytes) = nullptr;
};
constexpr Known known[] = {
    {"\x1f\x8b\x08"sv, {Group::packed, "a gzip file"}, isGzip},
    {"PK\3\4"sv,
     {Group::pickled, "a pickled file of PyTorch (a zip archive)"},
     isTorch},
    {"PK\3\4"sv, {Group::packed, "a NumPy archive (.npz)"}, isNpz},
    {"PK\3\4"sv, {Group::packed, "a zip archive"}, isZip},
    {"\x28\xb5\x2f\xfd"sv, {Group::packed, "a Zstandard file"}},
    {"\xfd"
     "7zXZ\0"sv,
     {Group::packed, "an xz file"}},
    {"BZh"sv,
     {Group::packed, "a bzip2 file"},
     [](std::string_view start, uint64_t) {
       return start.size() > 4 && start.substr(4).starts_with("1AY&SY");
     }},
    {"\x04\x22\x4d\x18"sv, {Group::packed, "an LZ4 file"}},
    {"7z\xbc\xaf\x27\x1c"sv, {Group::packed, "a 7-Zip archive"}},
    {""sv, {Group::packed, "a tar archive"}, isTar},
    {"\x93NUMPY"sv, {Group::numpy, "a NumPy array (.npy)"}},
    {"PAR1"sv, {Group::table, "a Parquet file"}},
    {"ARROW1\0\0"sv, {Group::table, "an Arrow file"}},
    {"\xff\xff\xff\xff"sv,
     {Group::table, "an Arrow stream (of a saved data set)"},
     isArrowStream},
    {"FEA1"sv, {Group::table, "a Feather file"}},
    {"Obj\1"sv, {Group::table, "an Avro file"}},
    {"\x89HDF\r\n\x1a\n"sv, {Group::table, "an HDF5 file"}},
    {"SQLite format 3\0"sv, {Group::table, "an SQLite database"}},
    {"\x80"sv, {Group::pickled, "a pickled file of Python"}, isPickle},
    {""sv, {Group::weights, "a safetensors file"}, isSafeTensors},
    {"GGUF"sv, {Group::unreadable, "a GGUF file of llama.cpp"}},
    {std::string_view(plan::magic, sizeof(plan::magic)),
     {Group::unreadable, "a plan of Meshwork"}},
    {"\x89PNG\r\n\x1a\n"sv, {Group::unreadable, "a PNG picture"}},
    {"\xff\xd8\xff"sv, {Group::unreadable, "a JPEG picture"}, isJpeg},
    {"%PDF-"sv, {Group::unreadable, "a PDF document"}},
    {"\x7f"
     "ELF"sv,
     {Group::unreadable, "a program or library"}},
};

/// Letters and white space alone. The last letter may be cut.
bool isText(std::string_view start) {
  for (size_t at = 0; at < start.size();) {
    auto c = static_cast<unsigned char>(start[at]);
    if (c < 0x80) {
      if (c == 0x7f || (c < 0x20 && "\t\n\v\f\r"sv.find(start[at]) ==
                                        std::string_view::npos))
        return false;
      ++at;
      continue;
    }
    size_t bytes = detail::bytesOfLetter(start, at);
    if (bytes == 0)
      return start.size() - at < 4;
    at += bytes;
  }
  return true;
}

std::optional<FileKind> kindOfText(std::string_view start, uint64_t sizeBytes) {
  constexpr uint64_t longestPointer = 1024; // as Git LFS has it
  constexpr size_t enough = 64;             // a few ids may look like letters
  if (start.starts_with("version https://git-lfs") &&
      sizeBytes < longestPointer)
    return FileKind{Group::pointer, "a pointer of Git LFS"};
  std::string_view text = start;
  text.remove_prefix(text.starts_with("\xef\xbb\xbf") ? 3 : 0);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  std::string first = absl::AsciiStrToLower(std::string(text.substr(0, 14)));
  if (first.starts_with("<!doctype html") || first.starts_with("<html"))
    return FileKind{Group::page, "a web page (HTML)"};
  if (start.size() < enough)
    return std::nullopt;
  bool isJson = text.starts_with("{") || text.starts_with("[");
  return isJson ? FileKind{Group::json, "JSON"} : FileKind{Group::text, "text"};
}

/// Of what came in place of the file that was wanted; else "".
std::string howToFetch(const FileKind &kind) {
  if (kind.group == Group::pointer)
    return ", which stands for a file that was not fetched; run `git lfs "
           "pull` in its repository, or download the file itself";
  if (kind.group == Group::page)
    return ", which came in place of the file; download the file itself: on "
           "the Hugging Face Hub its address has /resolve/ where the page's "
           "has /blob/, and some repositories want you to log in";
  return "";
}

} // namespace

std::optional<FileKind> kindOf(std::string_view start, uint64_t sizeBytes) {
  if (isText(start)) // one may begin with any of these words
    return kindOfText(start, sizeBytes);
  for (const Known &one : known)
    if (start.starts_with(one.magic) &&
        (!one.fits || one.fits(start, sizeBytes)))
      return one.kind;
  return std::nullopt;
}

std::string adviceForTokens(const FileKind &kind) {
  constexpr const char *write =
      "; write the ids alone, as little-endian 16- or 32-bit numbers";
  switch (kind.group) {
  case Group::pointer:
  case Group::page:
    return howToFetch(kind);
  case Group::packed:
    return "; unpack it first";
  case Group::numpy:
    return absl::StrCat(
        write, ": numpy.load(FILE).astype(\"uint32\").tofile(NEW) in Python, "
               "then --data NEW --data-type u32");
  case Group::json:
  case Group::text:
    return ", which is no token ids; give --tokenizer bytes for a model of "
           "bytes, or tokenize it and give the ids";
  case Group::table:
  case Group::pickled:
    return absl::StrCat(write, " (numpy's tofile does it)");
  case Group::weights:
    return ", which holds weights and no tokens; name a file of token ids";
  case Group::unreadable:
    return "; name a file of token ids";
  }
  return "";
}

std::string adviceForWeights(const FileKind &kind) {
  constexpr const char *expected = "; expected a safetensors file";
  switch (kind.group) {
  case Group::pointer:
  case Group::page:
    return howToFetch(kind);
  case Group::pickled:
    return "; pickled files can run code and are never opened: load it where "
           "you trust it, and write model.safetensors with Transformers' "
           "save_pretrained";
  case Group::packed:
    return "; unpack it first";
  case Group::json:
    return absl::StrCat(expected, ", or an index whose name ends in .json");
  default:
    return expected;
  }
}

std::string adviceForConfig(const FileKind &kind) {
  std::string fetch = howToFetch(kind);
  return fetch.empty() ? "; expected a config.json, or a model as text (.mlir)"
                       : fetch;
}

} // namespace meshwork
