// Training data as token ids, from the file formats people have.
//
//   auto source = TokenSource::open({.path = "train.bin", .vocabulary = 50257,
//                                    .sequence = 1024});
//   source.value()->sample(seed, {step, index, ofRun}, {tokens, targets});
//
// Formats, told apart by their first bytes:
//   llm.c .bin          header of 256 int32: magic 20240520, version 1, count,
//                       uint16 ids. Or magic 20240801, version 7, uint32 ids.
//   Megatron .bin/.idx  Index version 1, integer types. Either file may be
//                       given, or their common prefix, where no file has that
//                       name.
//   raw                 little-endian ids without header; type must be given
//   text                with tokenizer "bytes": token = byte, vocabulary 256
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
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

/// Which windows of its files a run reads, and in which order.
enum class SampleOrder : uint8_t {
  random,     // from anywhere, drawn with replacement
  epochs,     // those that stand one behind the other, each once before one is
              // read again
  asTheyStand // the same, from the first of the first file on; no `seed`
};

/// Which windows of a file may be read, where some are held out of training.
enum class WindowPart : uint8_t {
  training, // all but the last ones
  heldOut   // those
};

struct TokenOptions {
  std::string path;        // a file; of a source what else --data takes
  std::string dataType;    // "" | "u16" | "u32", for raw files
  std::string tokenizer;   // "" | "bytes", for text
  uint32_t vocabulary = 0; // every id must be below
  uint32_t sequence = 0;   // tokens a sample
  DocumentMarks documents = {};
  /// Not 0: `open` gives up, `cancelled`. May be null.
  const std::atomic<int> *stop = nullptr;
  /// Samples begin with a document and hold whole ones, by the file's index;
  /// what is left of them is padding, which counts for nothing.
  bool wholeDocuments = false;
  /// A file with a mask need not tell its documents where `documents` asks the
  /// index: its mask alone says which targets count.
  bool maskSuffices = false;
};

/// Where a sample goes: `sequence` elements each.
struct SampleSpans {
  absl::Span<int32_t> tokens, targets;
  /// May be empty, or have one more: of the token behind the last one.
  absl::Span<int32_t> documents = {};
  /// May be empty: 1 where the target counts, 0 where a mask leaves it out.
  absl::Span<unsigned char> counts = {};
};

/// A sample, counted in three ways.
struct SampleNumber {
  uint64_t step = 0;
  uint32_t index = 0; // in the step
  uint64_t ofRun = 0; // since its first start
};

/// Where the tokens of a run come from.
struct SourceOptions {
  /// Of all; `path` is not read.
  TokenOptions each;
  /// A file each, or a folder or a pattern (DataFiles.h).
  std::vector<std::string> paths;
  SampleOrder order = SampleOrder::random;
  /// Shares of samples, one for each of `paths`; none: by windows.
  std::vector<double> weights = {};
  /// Of the windows of each file, how many are held out (rounded down).
  double heldOut = 0;
  WindowPart part = WindowPart::training;
};

/// What is told of a source before the first step.
struct SourceSummary {
  std::string name; // as it was given
  uint64_t files = 0, tokens = 0;
  uint64_t windows = 0;  // one behind the other; or samples of documents
  uint64_t leftOver = 0; // tokens behind the last windows of files
  int64_t largest = -1;  // id, of the tokens that `open` has checked
  uint64_t checked = 0;  // so many
  /// Where all of its files have an index that tells.
  std::optional<uint64_t> documents = 0;
  /// Of samples of documents: those that are cut, and what is cut off.
  uint64_t cutDocuments = 0, cutTokens = 0;
};

/// The files that TokenSource may read for `path`: it, what may be the other
/// half of a Megatron pair, and a mask.
std::vector<std::string> tokenFiles(const std::string &path);

/// Immutable once open; any number of threads may draw samples.
class TokenSource {
public:
  virtual ~TokenSource() = default;
  /// Checks structure, size, at least sequence + 1 tokens, and marks of
  /// documents (a token that occurs, an index that ends a document). Checks
  /// that each id is below the vocabulary. Of larger files it checks the ids
  /// in 64 MiB spread over all of them (in 1 MiB of each file at least), since
  /// reading hundreds would hold up the first step; `sample` checks all ids.
  /// Errors name the file, what was found and what was expected; codes as in
  /// Files.h.
  static absl::StatusOr<std::unique_ptr<TokenSource>>
  openAll(const SourceOptions &options);
  /// Of one file, in random order.
  static absl::StatusOr<std::unique_ptr<TokenSource>>
  open(const TokenOptions &options);

  /// Writes a sample. With w the sequence + 1 tokens of a window, tokens is
  /// w[0, sequence) and targets is w[1, sequence]. Which window it is says the
  /// README; none goes from one file to the next. Documents of an indexed file
  /// are joined in the order of the index. A sample of whole documents may have
  /// fewer tokens: padding follows, of token 0, as a document without targets.
  ///
  /// documents[i] is the position in the sample at which the document of
  /// tokens[i] begins: 0 for the first, which may be cut; never falling, at
  /// most i. It changes neither tokens nor targets. So the last token of a
  /// document has for its target
  ///   beginToken  that token, which is to be predicted: the document is over
  ///   endToken    The first token of the next document. The last token is the
  ///               mark itself. The token before it has the mark for its
  ///               target.
  ///   index       The first token of the next document.
  /// In the latter two that target cannot be told from its document.
  ///
  /// Fails when an id is not in the vocabulary, or when the file was changed
  /// after it was opened or cannot be read any more. Else fails only when a
  /// span has another size, or when documents are wanted but were not asked for
  /// at open.
  virtual absl::Status sample(uint64_t seed, const SampleNumber &number,
                              const SampleSpans &to) const = 0;

  /// Tokens of a sample that are not padding. Nothing is read.
  virtual uint32_t tokensOf(uint64_t seed,
                            const SampleNumber &number) const = 0;

  virtual uint64_t numTokens() const = 0; // of all files
  /// One behind the other, of all files, that may be read.
  uint64_t numWindows() const;

  /// The masks beside the files, x.mask.bin of x.bin: a byte for each token, 1
  /// where it counts as a target. Where there is none all tokens count.
  virtual std::vector<std::string> masks() const = 0;

  virtual const std::vector<SourceSummary> &sources() const = 0;
  /// How often so many samples read source `number`, in epochs.
  virtual double readsOf(size_t number, uint64_t samples) const = 0;

  /// What `open` found likely wrong, a line each: ids that only a part of the
  /// vocabulary has, a "text" of control characters. What is surely wrong is an
  /// error: a file of a known other kind, ids cut in two.
  virtual const std::vector<std::string> &warnings() const = 0;

  /// "5000 tokens, fingerprint 0123456789abcdef": tells a file that was
  /// replaced, or a stale copy. The fingerprint is a hash of the width of ids,
  /// of the ids that are checked at open, and of the documents of an index. For
  /// several files it hashes the identities of all.
  virtual std::string identity() const = 0;
};

} // namespace meshwork::runtime
