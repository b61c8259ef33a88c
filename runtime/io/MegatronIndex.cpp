// Megatron's .idx file, little endian:
//   9 bytes magic, u64 version 1, u8 element type, u64 sequences, u64
//   documents, i32 lengths[sequences], i64 byte offsets in .bin[sequences], i64
//   first sequence of each document[documents], then i8 modes[sequences] or
//   nothing. Offsets and lengths are trusted by no one: each range is checked
//   against the .bin file once, here.
#include "runtime/io/TokenLayout.h"

#include <cstring>
#include <optional>
#include <utility>

#include <absl/strings/str_cat.h>

namespace meshwork::runtime {
namespace {

constexpr char magic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr uint64_t headerBytes = 34;

struct Index {
  TokenType type;
  std::vector<int32_t> lengths;
  std::vector<int64_t> offsets;
  std::vector<int64_t> documents;
};

absl::Status broken(const InputFile &file, const std::string &what) {
  return absl::DataLossError(
      absl::StrCat(quote(file.path()), ": Megatron index ", what));
}

std::optional<TokenType> typeOf(uint8_t code) {
  switch (code) {
  case 1:
    return TokenType::u8;
  case 2:
    return TokenType::i8;
  case 3:
    return TokenType::i16;
  case 4:
    return TokenType::i32;
  case 5:
    return TokenType::i64;
  case 8:
    return TokenType::u16;
  default: // 6 and 7 are floating point
    return std::nullopt;
  }
}

/// 34 + 12 sequences + 8 documents, or nothing when that overflows.
std::optional<uint64_t> bytesWithoutModes(uint64_t sequences,
                                          uint64_t documents) {
  std::optional<uint64_t> first = checkedMultiply(sequences, 12);
  std::optional<uint64_t> second = checkedMultiply(documents, 8);
  if (!first || !second)
    return std::nullopt;
  std::optional<uint64_t> both = checkedAdd(*first, *second);
  return both ? checkedAdd(*both, headerBytes) : std::nullopt;
}

template <typename T>
absl::Status readVector(const InputFile &file, uint64_t &offset, uint64_t count,
                        std::vector<T> &to) {
  to.resize(count); // the caller compared count with the file's size
  uint64_t bytes = count * sizeof(T);
  absl::Status status = file.readAt(offset, to.data(), bytes);
  offset += bytes;
  return status;
}

absl::StatusOr<Index> readIndex(const InputFile &file) {
  if (file.size() < headerBytes)
    return broken(file, absl::StrCat("is ", file.size(),
                                     " bytes, expected at least 34; it was cut "
                                     "off"));
  char header[headerBytes];
  if (absl::Status status = file.readAt(0, header, headerBytes); !status.ok())
    return status;
  uint64_t version, sequences, documents;
  std::memcpy(&version, header + 9, 8);
  std::memcpy(&sequences, header + 18, 8);
  std::memcpy(&documents, header + 26, 8);
  uint8_t code = static_cast<uint8_t>(header[17]);
  if (version != 1)
    return broken(file, absl::StrCat("has version ", version, ", expected 1"));
  std::optional<TokenType> type = typeOf(code);
  if (!type)
    return broken(file,
                  absl::StrCat("has element type ", int{code},
                               ", expected an integer type: 1 (u8), 2 "
                               "(i8), 3 (i16), 4 (i32), 5 (i64), 8 (u16)"));
  std::optional<uint64_t> bytes = bytesWithoutModes(sequences, documents);
  // With modes there is one more byte for each sequence.
  if (!bytes || *bytes > file.size() ||
      (file.size() != *bytes && file.size() - *bytes != sequences))
    return broken(file,
                  absl::StrCat("promises ", sequences, " sequences and ",
                               documents, " documents, which ", file.size(),
                               " bytes do not hold exactly; it was cut "
                               "off or its header is wrong"));
  Index index;
  index.type = *type;
  uint64_t offset = headerBytes;
  for (absl::Status status :
       {readVector(file, offset, sequences, index.lengths),
        readVector(file, offset, sequences, index.offsets),
        readVector(file, offset, documents, index.documents)})
    if (!status.ok())
      return status;
  return index;
}

absl::Status checkDocuments(const InputFile &file, const Index &index) {
  int64_t previous = 0;
  int64_t sequences = static_cast<int64_t>(index.lengths.size());
  if (index.documents.empty() || index.documents[0] != 0)
    return broken(file, "has no document that starts at sequence 0");
  for (size_t i = 0; i < index.documents.size(); ++i) {
    int64_t start = index.documents[i];
    if (start < previous || start > sequences)
      return broken(file,
                    absl::StrCat("starts document ", i, " at sequence ", start,
                                 ", expected ", previous, " to ", sequences));
    previous = start;
  }
  return absl::OkStatus();
}

/// The writer puts the number of sequences after each document's last one.
absl::Status checkEnds(const InputFile &file, const Index &index) {
  if (index.documents.size() > 1)
    return absl::OkStatus();
  return broken(file, "ends no document, so it does not tell documents apart; "
                      "give --document-begin or --document-end");
}

/// Where each document that has tokens begins; the last may be the end.
std::vector<uint64_t> firstTokens(const Index &index) {
  std::vector<uint64_t> first;
  uint64_t token = 0;
  int64_t sequence = 0;
  for (int64_t start : index.documents) {
    for (; sequence < start; ++sequence)
      token +=
          static_cast<uint64_t>(index.lengths[static_cast<size_t>(sequence)]);
    if (first.empty() || first.back() != token)
      first.push_back(token);
  }
  return first;
}

} // namespace

bool isMegatronIndex(const InputFile &file) {
  char start[sizeof(magic)];
  return file.size() >= sizeof(magic) &&
         file.readAt(0, start, sizeof(start)).ok() &&
         std::memcmp(start, magic, sizeof(magic)) == 0;
}

absl::StatusOr<TokenLayout> readMegatronIndex(const InputFile &index,
                                              InputFile binary,
                                              bool withDocuments) {
  absl::StatusOr<Index> read = readIndex(index);
  if (!read.ok())
    return read.status();
  if (absl::Status status = checkDocuments(index, *read); !status.ok())
    return status;
  TokenLayout layout;
  layout.type = read->type;
  uint64_t width = widthOf(layout.type);
  uint64_t next = ~uint64_t{0}; // where a sequence would continue the extent
  for (size_t i = 0; i < read->lengths.size(); ++i) {
    int64_t length = read->lengths[i], offset = read->offsets[i];
    uint64_t begin = static_cast<uint64_t>(offset);
    std::optional<uint64_t> end =
        checkedAdd(begin, static_cast<uint64_t>(length) * width);
    if (length < 0 || offset < 0 || !end || *end > binary.size())
      return broken(index, absl::StrCat("puts sequence ", i, " of ", length,
                                        " tokens at byte ", offset, ", but ",
                                        quote(binary.path()), " has ",
                                        binary.size(), " bytes"));
    if (length == 0)
      continue;
    if (begin != next)
      layout.extents.push_back({layout.numTokens, begin});
    next = *end;
    // 2^31 tokens a sequence, and as many sequences as bytes: no overflow.
    layout.numTokens += static_cast<uint64_t>(length);
  }
  layout.file = std::move(binary);
  if (!withDocuments)
    return layout;
  if (absl::Status status = checkEnds(index, *read); !status.ok())
    return status;
  layout.documents = firstTokens(*read);
  return layout;
}

} // namespace meshwork::runtime
