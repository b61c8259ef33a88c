#include "runtime/io/Documents.h"

#include <algorithm>

#include <absl/strings/str_cat.h>

namespace meshwork::runtime {
namespace {
using From = DocumentMarks::From;

constexpr uint32_t numBytes = 256; // ids of text read by bytes

} // namespace

std::string describeMarks(const DocumentMarks &marks) {
  return absl::StrCat(marks.from == From::endToken ? "--document-end "
                                                   : "--document-begin ",
                      marks.token);
}

absl::Status checkMarks(const TokenOptions &options) {
  const DocumentMarks &marks = options.documents;
  if (!isByToken(marks))
    return absl::OkStatus();
  bool text = !options.tokenizer.empty() && options.vocabulary > numBytes;
  uint32_t ids = text ? numBytes : options.vocabulary;
  if (marks.token < ids)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      describeMarks(marks), ", expected 0 to ", ids - 1,
      text ? " (tokens are bytes)"
           : absl::StrCat(" (the model's vocabulary is ", ids, ")")));
}

void markByToken(const DocumentMarks &marks, absl::Span<const int32_t> tokens,
                 absl::Span<int32_t> documents) {
  auto token = static_cast<int32_t>(marks.token);
  size_t behind = marks.from == From::endToken ? 1 : 0;
  int32_t begin = 0;
  for (size_t i = 0; i < documents.size(); ++i) {
    if (i >= behind && tokens[i - behind] == token)
      begin = static_cast<int32_t>(i);
    documents[i] = begin;
  }
}

void markByIndex(const std::vector<uint64_t> &firstTokens, uint64_t start,
                 absl::Span<int32_t> documents) {
  auto next = std::lower_bound(firstTokens.begin(), firstTokens.end(), start);
  int32_t begin = 0;
  for (size_t i = 0; i < documents.size(); ++i) {
    if (next != firstTokens.end() && *next == start + i) {
      begin = static_cast<int32_t>(i);
      ++next;
    }
    documents[i] = begin;
  }
}

} // namespace meshwork::runtime
