// Names a file by its contents, so that one given in another's place is told as
// what it is.
//
//   if (std::optional<FileKind> kind = kindOf(start, sizeBytes))
//     error = absl::StrCat("is ", kind->name, adviceForTokens(*kind));
//
// Contents are untrusted: nothing beyond the bytes at hand is looked at, and
// what is found decides nothing but words. A kind with a short magic number is
// only named when what follows it fits too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace meshwork {

struct FileKind {
  enum class Group : uint8_t {
    pointer, // of Git LFS: stands for a file that was not fetched
    page,    // HTML, in place of what it shows
    json,
    text,       // any other
    numpy,      // one array with a header
    packed,     // compressed, or an archive
    table,      // rows and columns, of which ids may be one
    pickled,    // reading it could run code
    weights,    // safetensors
    unreadable, // pictures, programs, weights in other formats
  };
  Group group;
  const char *name; // "a gzip file"
};

/// As many bytes as decide; fewer of a shorter file.
inline constexpr uint64_t kindBytes = 4096;

/// `start` is the first kindBytes of a file of `sizeBytes`; nothing when they
/// are of no kind that is known.
std::optional<FileKind> kindOf(std::string_view start, uint64_t sizeBytes);

/// What to do with a file of this kind, to follow its name: "; run ...".
std::string adviceForTokens(const FileKind &kind);
std::string adviceForWeights(const FileKind &kind);
std::string adviceForConfig(const FileKind &kind);

} // namespace meshwork
