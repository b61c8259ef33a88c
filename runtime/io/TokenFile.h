// The tokens of one file: windows of them, and what was found out when it was
// opened. Internal to runtime/io.
#pragma once

#include "runtime/io/Packing.h"
#include "runtime/io/TokenLayout.h"
#include "runtime/io/TokenMask.h"

namespace meshwork::runtime {

class TokenFile {
public:
  /// See TokenSource::open. `pieces` of 1 MiB are checked, spread over it.
  static absl::StatusOr<std::unique_ptr<TokenFile>>
  open(const TokenOptions &options, uint64_t pieces);

  uint64_t numTokens() const { return layout.numTokens; }
  const std::string &path() const { return layout.file.path(); }
  const std::vector<std::string> &warnings() const { return doubts; }
  const std::optional<TokenMask> &mask() const { return masked; }
  std::string identity() const;
  /// The largest id of what was checked, and how many tokens that were.
  int64_t largest() const { return largestSeen; }
  uint64_t numChecked() const { return checked; }
  std::optional<uint64_t> numDocuments() const { return layout.numDocuments; }
  /// Of whole documents; null where samples are windows.
  const Packing *packing() const { return packed ? &*packed : nullptr; }
  /// See TokenSource::sample: the window that begins at token `start`, or with
  /// `packing` the sample of that number.
  absl::Status window(uint64_t start, const SampleSpans &to) const;
  /// Of that window: what is not padding.
  uint32_t tokensOf(uint64_t start) const;

  TokenFile(TokenLayout layout, const TokenOptions &options);

private:
  /// See TokenSource::open.
  absl::Status scan(uint64_t mostPieces, const std::atomic<int> *stop);
  /// Reads tokens [first, first + count); `out` may be null to check only.
  absl::Status read(uint64_t first, uint64_t count,
                    std::vector<unsigned char> &bytes, int32_t *out,
                    class TokenDoubts *look = nullptr) const;
  absl::Status checkSize() const;
  void pack();
  absl::Status readSample(Packing::Sample which, const SampleSpans &to) const;
  absl::Status readCounts(Packing::Sample which,
                          absl::Span<unsigned char> counts) const;
  absl::Status checkSpans(const SampleSpans &to) const;

  TokenLayout layout;
  std::optional<TokenMask> masked;
  std::optional<Packing> packed;
  uint64_t width;
  uint32_t vocabulary;
  uint32_t sequence;
  DocumentMarks marks;
  std::vector<std::string> doubts;
  uint64_t fingerprint = 0, checked = 0;
  int64_t largestSeen = -1;
};

} // namespace meshwork::runtime
