// Where the tokens lie in a file, and how one is stored; found by the readers
// of the formats, used by TokenSource. Internal to runtime/io.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/io/Files.h"
#include "runtime/io/Tokens.h"

namespace meshwork::runtime {

enum class TokenType : uint8_t { u8, i8, u16, i16, u32, i32, i64 };

inline uint64_t widthOf(TokenType type) {
  switch (type) {
  case TokenType::u8:
  case TokenType::i8:
    return 1;
  case TokenType::u16:
  case TokenType::i16:
    return 2;
  case TokenType::u32:
  case TokenType::i32:
    return 4;
  case TokenType::i64:
    return 8;
  }
  return 8;
}

/// A run of tokens that follow each other in the file.
struct TokenExtent {
  uint64_t firstToken; // of the whole source
  uint64_t offset;     // of firstToken, in bytes from the start of the file
};

struct TokenLayout {
  enum class Form : uint8_t {
    described, // by a header or an index
    raw,
    text
  };
  InputFile file; // holds the ids
  TokenType type;
  Form form = Form::described;
  uint64_t numTokens = 0;
  std::vector<TokenExtent> extents; // by firstToken, the first is 0
  /// The first token of each document, ascending; only when the index is asked.
  std::vector<uint64_t> documents;
  std::optional<uint64_t> numDocuments; // of a file whose index tells
};

/// Recognises the format of `options.path` and checks its structure, not the
/// ids.
absl::StatusOr<TokenLayout> findTokenLayout(const TokenOptions &options);

/// True when the file starts as a Megatron index does.
bool isMegatronIndex(const InputFile &file);

/// `index` is the .idx file, `binary` the .bin file it describes.
absl::StatusOr<TokenLayout>
readMegatronIndex(const InputFile &index, InputFile binary, bool withDocuments);

} // namespace meshwork::runtime
