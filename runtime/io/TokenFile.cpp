#include "runtime/io/TokenFile.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include <absl/strings/str_cat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/io/Documents.h"
#include "runtime/io/TokenDoubts.h"
#include "runtime/io/ToldTokens.h"

namespace meshwork::runtime {
namespace {

constexpr uint64_t pieceBytes = uint64_t{1} << 20;

/// Position of the first id outside [0, vocabulary), and the id.
struct BadToken {
  uint64_t position;
  int64_t id;
};

struct Decoded {
  std::optional<BadToken> bad;
  int64_t largest = -1;
};

/// Checks and, when `out` is given, converts `count` ids. Two passes, so that
/// the first is a plain minimum and maximum, which vectorizes.
template <typename T>
Decoded decodeAs(const unsigned char *bytes, uint64_t count,
                 uint32_t vocabulary, int32_t *out) {
  T low = std::numeric_limits<T>::max(), high = std::numeric_limits<T>::min();
  for (uint64_t i = 0; i < count; ++i) {
    T id;
    std::memcpy(&id, bytes + i * sizeof(T), sizeof(T));
    low = std::min(low, id);
    high = std::max(high, id);
  }
  auto isBad = [&](int64_t id) { return id < 0 || id >= vocabulary; };
  auto largest = static_cast<int64_t>(high);
  bool bad = count > 0 && (isBad(static_cast<int64_t>(low)) || isBad(largest));
  for (uint64_t i = 0; (bad || out) && i < count; ++i) {
    T id;
    std::memcpy(&id, bytes + i * sizeof(T), sizeof(T));
    if (bad && isBad(static_cast<int64_t>(id)))
      return {BadToken{i, static_cast<int64_t>(id)}};
    if (out)
      out[i] = static_cast<int32_t>(id);
  }
  return {std::nullopt, largest};
}

Decoded decode(TokenType type, const unsigned char *bytes, uint64_t count,
               uint32_t vocabulary, int32_t *out) {
  switch (type) {
  case TokenType::u8:
    return decodeAs<uint8_t>(bytes, count, vocabulary, out);
  case TokenType::i8:
    return decodeAs<int8_t>(bytes, count, vocabulary, out);
  case TokenType::u16:
    return decodeAs<uint16_t>(bytes, count, vocabulary, out);
  case TokenType::i16:
    return decodeAs<int16_t>(bytes, count, vocabulary, out);
  case TokenType::u32:
    return decodeAs<uint32_t>(bytes, count, vocabulary, out);
  case TokenType::i32:
    return decodeAs<int32_t>(bytes, count, vocabulary, out);
  case TokenType::i64:
    return decodeAs<int64_t>(bytes, count, vocabulary, out);
  }
  return {};
}

/// Of bytes that come piece by piece.
class Fingerprint {
public:
  Fingerprint() { XXH3_64bits_reset(&state); }
  template <typename T> void add(const std::vector<T> &values) {
    XXH3_64bits_update(&state, values.data(), values.size() * sizeof(T));
  }
  uint64_t value() const { return XXH3_64bits_digest(&state); }

private:
  XXH3_state_t state;
};

} // namespace

TokenFile::TokenFile(TokenLayout layout, const TokenOptions &options)
    : layout(std::move(layout)), width(widthOf(this->layout.type)),
      vocabulary(options.vocabulary), sequence(options.sequence),
      marks(options.documents) {}

std::string TokenFile::identity() const {
  return absl::StrCat(layout.numTokens, " tokens, fingerprint ",
                      absl::Hex(fingerprint, absl::kZeroPad16));
}

absl::Status TokenFile::read(uint64_t first, uint64_t count,
                             std::vector<unsigned char> &bytes, int32_t *out,
                             TokenDoubts *look) const {
  bytes.resize(count * width);
  auto extent =
      std::upper_bound(layout.extents.begin(), layout.extents.end(), first,
                       [](uint64_t token, const TokenExtent &e) {
                         return token < e.firstToken;
                       });
  for (uint64_t done = 0; done < count; ++extent) {
    const TokenExtent &current = *std::prev(extent);
    uint64_t end =
        extent == layout.extents.end() ? layout.numTokens : extent->firstToken;
    uint64_t token = first + done;
    uint64_t here = std::min(count - done, end - token);
    if (absl::Status status = layout.file.readAt(
            current.offset + (token - current.firstToken) * width,
            bytes.data() + done * width, here * width);
        !status.ok())
      return status;
    done += here;
  }
  auto [bad, largest] =
      decode(layout.type, bytes.data(), count, vocabulary, out);
  if (!bad && look)
    look->see(bytes.data(), count, largest);
  if (!bad)
    return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(quote(layout.file.path()), ": token ", first + bad->position,
                   " is ", bad->id, ", expected 0 to ", vocabulary - 1,
                   " (the model's vocabulary is ", vocabulary, ")",
                   narrowerHint(layout, bytes.data(), count, vocabulary)));
}

absl::Status TokenFile::scan(uint64_t mostPieces,
                             const std::atomic<int> *stop) {
  TokenDoubts look(layout, vocabulary);
  Fingerprint hash;
  hash.add(std::vector<uint64_t>{width});
  hash.add(layout.documents);
  std::vector<unsigned char> bytes;
  std::vector<int32_t> ids; // only until the token that marks was seen
  bool found = !isByToken(marks);
  uint64_t step = pieceBytes / width;
  uint64_t pieces = (layout.numTokens + step - 1) / step;
  uint64_t spread = std::min(pieces, mostPieces);
  // After those that are spread, all, as long as the mark is missing.
  uint64_t atMost = pieces > spread ? spread + pieces : spread;
  for (uint64_t k = 0; k < spread || (!found && k < atMost); ++k) {
    if (stop && *stop != 0)
      return absl::CancelledError("stopped while tokens were checked");
    uint64_t piece = k >= spread   ? k - spread
                     : spread == 1 ? 0
                                   : k * (pieces - 1) / (spread - 1);
    uint64_t first = piece * step;
    uint64_t count = std::min(step, layout.numTokens - first);
    ids.resize(found ? 0 : count);
    if (absl::Status status =
            read(first, count, bytes, found ? nullptr : ids.data(), &look);
        !status.ok())
      return status;
    if (k < spread)
      hash.add(bytes);
    checked += k < spread ? count : 0;
    if (k < spread && masked) {
      bytes.resize(count);
      if (absl::Status status = masked->read(first, absl::MakeSpan(bytes));
          !status.ok())
        return status;
      hash.add(bytes);
    }
    found = found || std::find(ids.begin(), ids.end(),
                               static_cast<int32_t>(marks.token)) != ids.end();
  }
  if (absl::Status status = look.verdict(); !status.ok())
    return status;
  doubts = look.warnings();
  largestSeen = look.largestSeen();
  fingerprint = hash.value();
  if (found)
    return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "token ", marks.token, " does not occur in ", quote(layout.file.path()),
      ": ", describeMarks(marks),
      " tells no documents apart, expected the id that each document ",
      marks.from == DocumentMarks::From::endToken ? "ends" : "begins",
      " with"));
}

absl::Status TokenFile::checkSpans(const SampleSpans &to) const {
  if (to.tokens.size() != sequence || to.targets.size() != sequence ||
      (!to.documents.empty() && to.documents.size() != sequence &&
       to.documents.size() != uint64_t{sequence} + 1) ||
      (!to.counts.empty() && to.counts.size() != sequence))
    return absl::InvalidArgumentError(absl::StrCat(
        "sample needs room for ", sequence,
        " tokens, targets, (or none, or one more) documents and (or none) "
        "counts, got ",
        to.tokens.size(), ", ", to.targets.size(), ", ", to.documents.size(),
        " and ", to.counts.size()));
  if (!to.documents.empty() && marks.from == DocumentMarks::From::nowhere)
    return absl::InvalidArgumentError(absl::StrCat(
        quote(layout.file.path()),
        ": documents are wanted of a sample, but the file was opened without"));
  return absl::OkStatus();
}

absl::Status TokenFile::window(uint64_t start, const SampleSpans &to) const {
  if (absl::Status status = checkSpans(to); !status.ok())
    return status;
  return readSample(packed ? packed->samples[start]
                           : Packing::Sample{start, uint64_t{sequence} + 1},
                    to);
}

uint32_t TokenFile::tokensOf(uint64_t start) const {
  return packed ? static_cast<uint32_t>(std::min<uint64_t>(
                      packed->samples[start].count, sequence))
                : sequence;
}

/// Behind the tokens of the sample is padding.
absl::Status TokenFile::readSample(Packing::Sample which,
                                   const SampleSpans &to) const {
  std::vector<unsigned char> bytes;
  std::vector<int32_t> ids(uint64_t{sequence} + 1);
  if (absl::Status status = read(which.first, which.count, bytes, ids.data());
      !status.ok())
    return status;
  std::copy_n(ids.begin(), sequence, to.tokens.begin());
  std::copy_n(ids.begin() + 1, sequence, to.targets.begin());
  if (isByToken(marks))
    markByToken(marks, ids, to.documents);
  else
    markByIndex(layout.documents, which.first, to.documents);
  for (uint64_t i = which.count; i < to.documents.size(); ++i)
    to.documents[i] = static_cast<int32_t>(which.count);
  return readCounts(which, to.counts);
}

absl::Status TokenFile::readCounts(Packing::Sample which,
                                   absl::Span<unsigned char> counts) const {
  if (counts.empty())
    return absl::OkStatus();
  uint64_t numTargets = which.count - 1;
  std::fill(counts.begin(), counts.end(), 0);
  std::fill_n(counts.begin(), numTargets, 1);
  return masked ? masked->read(which.first + 1, counts.first(numTargets))
                : absl::OkStatus();
}

void TokenFile::pack() {
  packed =
      packDocuments(layout.documents, layout.numTokens, uint64_t{sequence} + 1);
}

/// For at least one sample.
absl::Status TokenFile::checkSize() const {
  if (packed ? !packed->samples.empty() : layout.numTokens > sequence)
    return absl::OkStatus();
  if (packed)
    return absl::DataLossError(absl::StrCat(quote(layout.file.path()),
                                            ": has no document with a token"));
  return absl::DataLossError(absl::StrCat(
      quote(layout.file.path()), ": holds ", layout.numTokens,
      " tokens, expected at least ", uint64_t{sequence} + 1,
      " (sequence + 1); give a longer file or a shorter sequence"));
}

absl::StatusOr<std::unique_ptr<TokenFile>>
TokenFile::open(const TokenOptions &options, uint64_t pieces) {
  absl::StatusOr<TokenLayout> layout = findTokenLayout(options);
  if (!layout.ok())
    return layout.status();
  auto mask = TokenMask::openBeside(layout->file.path(), layout->numTokens);
  if (!mask.ok())
    return mask.status();
  bool isUntold = options.documents.from == DocumentMarks::From::index &&
                  layout->documents.empty();
  if (isUntold && mask->has_value() && options.maskSuffices)
    layout->documents = {0};
  else if (isUntold)
    return absl::InvalidArgumentError(absl::StrCat(
        quote(layout->file.path()),
        ": does not tell where its documents begin, which the plan needs "
        "(batch.documents, batch.positions or batch.document_end_loss of its "
        "spec say so); give --document-begin ID (the "
        "token that each begins with: 50256 in llm.c's GPT-2 files) or "
        "--document-end ID (the token that each ends with)"));
  if (absl::Status status = checkToldTokens(
          layout->file.path(), layout->numTokens, options.vocabulary);
      !status.ok())
    return status;
  auto source = std::make_unique<TokenFile>(*std::move(layout), options);
  source->masked = *std::move(mask);
  if (options.wholeDocuments)
    source->pack();
  if (absl::Status status = source->checkSize(); !status.ok())
    return status;
  if (absl::Status status = source->scan(pieces, options.stop); !status.ok())
    return status;
  return source;
}

} // namespace meshwork::runtime
