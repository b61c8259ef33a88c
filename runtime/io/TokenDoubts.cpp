#include "runtime/io/TokenDoubts.h"

#include <algorithm>
#include <cstring>

#include <absl/strings/str_cat.h>

namespace meshwork::runtime {
namespace {
using Form = TokenLayout::Form;

// Of each piece, enough to tell one type from another.
constexpr uint64_t lookedAt = 4096;

uint64_t loadId(const unsigned char *bytes, uint64_t width) {
  uint64_t id = 0; // little endian, as the formats and this machine
  std::memcpy(&id, bytes, width);
  return id;
}

} // namespace

TokenDoubts::TokenDoubts(const TokenLayout &layout, uint32_t vocabulary)
    : layout(layout), width(widthOf(layout.type)), vocabulary(vocabulary) {}

void TokenDoubts::see(const unsigned char *bytes, uint64_t count,
                      int64_t largestHere) {
  numSeen += count;
  largest = std::max(largest, largestHere);
  if (layout.form == Form::raw)
    seeHalves(bytes, std::min(count, lookedAt));
  if (layout.form == Form::text)
    seeText(bytes, std::min(count, lookedAt));
}

void TokenDoubts::seeHalves(const unsigned char *bytes, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    largestAt[i % 4] =
        std::max(largestAt[i % 4], loadId(bytes + i * width, width));
    if (i % 2 == 0)
      evenBytes.set(bytes[i * width]);
  }
  numCompared += count;
}

void TokenDoubts::seeText(const unsigned char *bytes, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i)
    numControls += bytes[i] < '\t' || (bytes[i] > '\r' && bytes[i] < ' ');
  numBytes += count;
}

// Every second one holds the upper half of an id, which no vocabulary fills:
// only 0, or with 16 bits above 65536 a few numbers.
absl::Status TokenDoubts::verdict() const {
  constexpr uint64_t enough = 64;
  constexpr size_t varied = 16;
  uint64_t upper = width == 2 ? (vocabulary - 1) >> 16 : 0;
  if (layout.form != Form::raw || numCompared < enough ||
      evenBytes.count() < varied || largestAt[1] > upper ||
      largestAt[3] > upper)
    return absl::OkStatus();
  bool isFour = width == 2 && largestAt[2] <= upper && largestAt[0] > upper;
  uint64_t bits = width * 8 * (isFour ? 4 : 2);
  return absl::DataLossError(absl::StrCat(
      quote(layout.file.path()), ": ",
      isFour ? "of every four ids the last three are " : "every second id is ",
      upper == 0 ? "0" : absl::StrCat("at most ", upper), ", so it holds ",
      bits, "-bit ids, which --data-type u", width * 8,
      bits == 32 ? " cuts in two; give --data-type u32"
                 : " cuts in pieces; write them with 32 bits, as "
                   "numpy.fromfile(FILE, \"int64\").astype(\"uint32\")"
                   ".tofile(NEW) does, and give --data-type u32"));
}

std::string TokenDoubts::aboutText() const {
  constexpr uint64_t mostControls = 50; // one in so many bytes
  if (numControls * mostControls <= numBytes)
    return "";
  return absl::StrCat(
      quote(layout.file.path()), ": ", numControls * 100 / numBytes,
      " % of its bytes are control characters, so it is no UTF-8 text; if it "
      "holds token ids, give --data-type in place of --tokenizer bytes");
}

std::string TokenDoubts::aboutVocabulary() const {
  // A vocabulary of bytes may have marks, and be padded.
  constexpr uint32_t fewIds = 1024;
  // So many tokens of any text have one of the last quarter of its vocabulary.
  constexpr uint64_t enough = 65536;
  std::string has =
      absl::StrCat("; the model's vocabulary is ", vocabulary, ": ");
  if (layout.form == Form::text)
    return vocabulary <= fewIds
               ? ""
               : absl::StrCat(quote(layout.file.path()),
                              ": --tokenizer bytes makes ids from 0 to 255",
                              has,
                              "tokenize the text with the model's own "
                              "tokenizer, and give the ids");
  constexpr const char *question =
      "were these ids made with the model's own tokenizer?";
  bool isShort = layout.type == TokenType::u16 || layout.type == TokenType::i16;
  if (isShort && vocabulary > 65536)
    return absl::StrCat(quote(layout.file.path()),
                        ": holds 16-bit ids, none above 65535", has, question);
  if (vocabulary > fewIds && numSeen >= enough &&
      static_cast<uint64_t>(largest) + 1 < uint64_t{vocabulary} * 3 / 4)
    return absl::StrCat(quote(layout.file.path()), ": the largest of ", numSeen,
                        " ids looked at is ", largest, has, question);
  return "";
}

std::vector<std::string> TokenDoubts::warnings() const {
  std::vector<std::string> all;
  for (std::string line : {aboutText(), aboutVocabulary()})
    if (!line.empty())
      all.push_back(std::move(line));
  return all;
}

std::string narrowerHint(const TokenLayout &layout, const unsigned char *bytes,
                         uint64_t count, uint32_t vocabulary) {
  if (layout.form != Form::raw || layout.type != TokenType::u32)
    return "";
  for (uint64_t i = 0; i < 2 * count; ++i)
    if (loadId(bytes + i * 2, 2) >= vocabulary)
      return "";
  return "; read as 16-bit ids they would all fit: give --data-type u16?";
}

} // namespace meshwork::runtime
