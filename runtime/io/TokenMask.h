// Which tokens of a file count as targets, in a file beside it: x.mask.bin of
// x.bin has a byte for each token, 1 where it counts and 0 where not. Internal
// to runtime/io.
#pragma once

#include <optional>
#include <vector>

#include <absl/types/span.h>

#include "runtime/io/Files.h"

namespace meshwork::runtime {

/// Behind the stem of the tokens' name.
constexpr std::string_view maskEnding = ".mask.bin";

/// The name of the mask of a .bin file; "" of other files, which have none.
std::string maskBeside(const std::string &tokens);

class TokenMask {
public:
  /// Nothing where no mask is beside the tokens. kDataLoss where it has another
  /// number of bytes than there are tokens.
  static absl::StatusOr<std::optional<TokenMask>>
  openBeside(const std::string &tokens, uint64_t numTokens);

  const std::string &path() const { return file.path(); }
  /// Of the tokens from `first` on. kDataLoss at what is neither 0 nor 1.
  absl::Status read(uint64_t first, absl::Span<unsigned char> to) const;

private:
  explicit TokenMask(InputFile file) : file(std::move(file)) {}
  InputFile file;
};

} // namespace meshwork::runtime
