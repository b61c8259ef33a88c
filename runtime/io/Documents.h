// Where the documents within a sample begin. Internal to runtime/io.
#pragma once

#include <string>
#include <vector>

#include "runtime/io/Tokens.h"

namespace meshwork::runtime {

/// Whether a token, and not an index, tells where documents begin.
inline bool isByToken(const DocumentMarks &marks) {
  return marks.from == DocumentMarks::From::beginToken ||
         marks.from == DocumentMarks::From::endToken;
}

/// A token that marks is one of the vocabulary and of the tokenizer.
absl::Status checkMarks(const TokenOptions &options);

/// `marks`, by token, as an option: "--document-begin 50256".
std::string describeMarks(const DocumentMarks &marks);

/// For each of `tokens` the position among them at which its document begins.
void markByToken(const DocumentMarks &marks, absl::Span<const int32_t> tokens,
                 absl::Span<int32_t> documents);

/// The same for the tokens from place `start` of a file whose documents begin
/// at the places `firstTokens`, which ascend.
void markByIndex(const std::vector<uint64_t> &firstTokens, uint64_t start,
                 absl::Span<int32_t> documents);

} // namespace meshwork::runtime
