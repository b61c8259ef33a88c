// Training data as token ids, from the file formats people have.
//
//   auto source = TokenSource::open({.path = "train.bin", .vocabulary = 50257,
//                                    .sequence = 1024});
//   source.value()->sample(seed, step, index, {tokens, targets});
//
// Formats, told apart by their first bytes:
//   llm.c .bin         256 int32 header: magic 20240520, version 1, count,
//   uint16
//                      ids; or magic 20240801, version 7, uint32 ids
//   Megatron .bin/.idx index version 1, integer types; either file may be
//   given, or their common prefix, where no file has that name
//   raw                little-endian ids without header; the type must be given
//   text               with tokenizer "bytes": token = byte, vocabulary 256
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

namespace meshwork::runtime {

/// What tells where the documents of a file begin.
struct DocumentMarks {
  enum class From : uint8_t {
    nowhere,    // not asked for
    index,      // the file's own: Megatron's
    beginToken, // at each `token`: llm.c's 50256, a BOS
    endToken    // after each `token`: Megatron's --append-eod
  };
  From from = From::nowhere;
  uint32_t token = 0;
};

struct TokenOptions {
  std::string path;
  std::string dataType;    // "" | "u16" | "u32", for raw files
  std::string tokenizer;   // "" | "bytes", for text
  uint32_t vocabulary = 0; // every id must be below
  uint32_t sequence = 0;   // tokens a sample
  DocumentMarks documents = {};
  /// Not 0: `open` gives up, `cancelled`. May be null.
  const std::atomic<int> *stop = nullptr;
};

/// Where a sample goes: `sequence` elements each.
struct SampleSpans {
  absl::Span<int32_t> tokens, targets;
  /// May be empty, or have one more: of the token behind the last one.
  absl::Span<int32_t> documents = {};
};

/// The files that TokenSource may read for `path`: it, and what may be the
/// other half of a Megatron pair.
std::vector<std::string> tokenFiles(const std::string &path);

/// Immutable once open; any number of threads may draw samples.
class TokenSource {
public:
  virtual ~TokenSource() = default;
  /// Checks structure, size, at least sequence + 1 tokens, marks of documents
  /// (a token that occurs, an index that ends a document), and each id below
  /// the vocabulary: of 64 MiB spread over a file that is larger, since reading
  /// hundreds of them would hold up the first step; `sample` checks them all.
  /// Errors name the file, what was found and what was expected; codes as in
  /// Files.h.
  static absl::StatusOr<std::unique_ptr<TokenSource>>
  open(const TokenOptions &options);

  /// Writes sample `index` of optimizer step `step`, a function of the three
  /// numbers and the file only: with w the sequence + 1 tokens from a start
  /// drawn uniformly from all places where such a window fits, tokens is
  /// w[0, sequence) and targets is w[1, sequence]. Documents of an indexed file
  /// are joined in the order of the index.
  ///
  /// documents[i] is the position in the sample at which the document of
  /// tokens[i] begins: 0 for the first, which may be cut; never falling, at
  /// most i. It changes neither tokens nor targets. So the last token of a
  /// document has for its target
  ///   beginToken  that token, which is to be predicted: the document is over
  ///   endToken    the first token of the next document. The last token is the
  ///               mark itself; the token before it has the mark for its target
  ///   index       the first token of the next document
  /// and in the latter two that target cannot be told from its document.
  ///
  /// The start is floor(r * places / 2^64), where r is the first two words
  /// (low first) of Philox4x32-10 with key (seed low, seed high) and counter
  /// (step low, step high, index, 0x6e6b6f74).
  ///
  /// Fails when an id is not in the vocabulary, or the file was changed after
  /// it was opened or cannot be read any more; else only when a span has
  /// another size, or documents are wanted but were not asked for at open.
  virtual absl::Status sample(uint64_t seed, uint64_t step, uint32_t index,
                              const SampleSpans &to) const = 0;

  virtual uint64_t numTokens() const = 0;

  /// What `open` found likely wrong, a line each: ids that only a part of the
  /// vocabulary has, a "text" of control characters. What is surely wrong is an
  /// error: a file of a known other kind, ids cut in two.
  virtual const std::vector<std::string> &warnings() const = 0;

  /// "5000 tokens, fingerprint 0123456789abcdef": tells a file that was
  /// replaced, or a stale copy. The fingerprint is a hash of the width of ids,
  /// of the ids that are checked at open, and of the documents of an index.
  virtual std::string identity() const = 0;
};

} // namespace meshwork::runtime
