// Splits PTX text into tokens. A word is an identifier, a directive or an
// instruction with all its modifiers (`ld.global.L1::no_allocate.v4.b32`).
#pragma once

#include "test/Support/Emulator/ptx/Syntax.h"

#include "absl/status/statusor.h"

namespace meshwork::ptx {

struct Token {
  enum class Kind : uint8_t { word, number, string, mark, end } kind;
  std::string_view text; // into the module's text
  Number number;
  int line = 0;

  bool is(std::string_view expected) const {
    return kind != Kind::string && text == expected;
  }
};

/// The last token is of kind end. `text` must outlive the tokens.
absl::StatusOr<std::vector<Token>> tokenize(std::string_view text);

} // namespace meshwork::ptx
