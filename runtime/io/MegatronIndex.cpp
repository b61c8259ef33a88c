// Megatron's .idx file, little endian, begins with 9 bytes magic, u64
// version 1, u8 element type, u64 sequences, u64 documents. Then come i32
// lengths[sequences], i64 byte offsets in .bin[sequences], i64 first sequence
// of each document[documents]. It ends with i8 modes[sequences] or nothing.
// Offsets and lengths are trusted by no one: each range is checked against the
// .bin file once, here.
#include "runtime/io/TokenLayout.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <absl/strings/str_cat.h>

#include "lib/Plan/StatusMacros.h"

namespace meshwork::runtime {
namespace {

constexpr char magic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr uint64_t headerBytes = 34;

struct Header {
  TokenType type;
  uint64_t sequences, documents;
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

absl::StatusOr<Header> readHeader(const InputFile &file) {
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
  return Header{*type, sequences, documents};
}

/// Reads the sections of a file behind each other, a piece at a time: each byte
/// once, whatever the file's size.
class FrontToBack {
public:
  FrontToBack(const InputFile &file, uint64_t offset)
      : file(file), offset(offset) {}

  /// `use` gets the number and the value of each of `count`, until it fails.
  template <typename T, typename Use>
  absl::Status each(uint64_t count, const Use &use) {
    constexpr uint64_t mostAtOnce = 1 << 16;
    std::vector<T> piece;
    for (uint64_t done = 0; done < count; done += piece.size()) {
      piece.resize(std::min(mostAtOnce, count - done));
      uint64_t bytes = piece.size() * sizeof(T);
      MESHWORK_RETURN_IF_ERROR(file.readAt(offset, piece.data(), bytes));
      offset += bytes;
      for (uint64_t i = 0; i < piece.size(); ++i)
        MESHWORK_RETURN_IF_ERROR(use(done + i, piece[i]));
    }
    return absl::OkStatus();
  }

private:
  const InputFile &file;
  uint64_t offset;
};

/// What the index says, as it is read. Of each section only the lengths stay,
/// until the documents are counted by them.
class IndexReader {
public:
  IndexReader(const InputFile &index, const Header &header,
              const InputFile &binary)
      : index(index), header(header), binary(binary),
        width(widthOf(header.type)), sections(index, headerBytes) {
    layout.type = header.type;
  }

  absl::Status read(bool withDocuments) {
    lengths.reserve(header.sequences); // compared with the file's size
    MESHWORK_RETURN_IF_ERROR(
        sections.each<int32_t>(header.sequences, [&](uint64_t, int32_t length) {
          lengths.push_back(length);
          return absl::OkStatus();
        }));
    MESHWORK_RETURN_IF_ERROR(sections.each<int64_t>(
        header.sequences, [&](uint64_t i, int64_t offset) {
          return addSequence(i, lengths[i], offset);
        }));
    if (header.documents == 0)
      return broken(index, "has no document that starts at sequence 0");
    MESHWORK_RETURN_IF_ERROR(sections.each<int64_t>(
        header.documents, [&](uint64_t i, int64_t start) {
          return addDocument(i, start, withDocuments);
        }));
    // The writer puts the number of sequences after each document's last one.
    if (withDocuments && header.documents < 2)
      return broken(index,
                    "ends no document, so it does not tell documents apart; "
                    "give --document-begin or --document-end");
    layout.numDocuments = header.documents - 1;
    return absl::OkStatus();
  }
  TokenLayout take() && { return std::move(layout); }

private:
  absl::Status addSequence(uint64_t i, int64_t length, int64_t offset) {
    auto begin = static_cast<uint64_t>(offset);
    std::optional<uint64_t> end =
        checkedAdd(begin, static_cast<uint64_t>(length) * width);
    if (length < 0 || offset < 0 || !end || *end > binary.size())
      return broken(index, absl::StrCat("puts sequence ", i, " of ", length,
                                        " tokens at byte ", offset, ", but ",
                                        quote(binary.path()), " has ",
                                        binary.size(), " bytes"));
    if (length == 0)
      return absl::OkStatus();
    if (begin != next)
      layout.extents.push_back({layout.numTokens, begin});
    next = *end;
    // 2^31 tokens a sequence, and as many sequences as bytes: no overflow.
    layout.numTokens += static_cast<uint64_t>(length);
    return absl::OkStatus();
  }

  /// Where each document that has tokens begins; the last may be the end.
  absl::Status addDocument(uint64_t i, int64_t start, bool isWanted) {
    auto sequences = static_cast<int64_t>(header.sequences);
    if (i == 0 && start != 0)
      return broken(index, "has no document that starts at sequence 0");
    if (start < previous || start > sequences)
      return broken(index,
                    absl::StrCat("starts document ", i, " at sequence ", start,
                                 ", expected ", previous, " to ", sequences));
    for (; previous < start; ++previous)
      token += static_cast<uint64_t>(lengths[static_cast<size_t>(previous)]);
    auto &documents = layout.documents;
    if (isWanted && (documents.empty() || documents.back() != token))
      documents.push_back(token);
    return absl::OkStatus();
  }

  const InputFile &index;
  Header header;
  const InputFile &binary;
  uint64_t width;
  FrontToBack sections;
  std::vector<int32_t> lengths;
  TokenLayout layout;
  uint64_t next = ~uint64_t{0}; // where a sequence would continue the extent
  int64_t previous = 0;         // sequences before the document at hand
  uint64_t token = 0;           // its first one
};

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
  absl::StatusOr<Header> header = readHeader(index);
  if (!header.ok())
    return header.status();
  IndexReader reader(index, *header, binary);
  MESHWORK_RETURN_IF_ERROR(reader.read(withDocuments));
  TokenLayout layout = std::move(reader).take();
  layout.file = std::move(binary);
  return layout;
}

} // namespace meshwork::runtime
