// What the entries of a header must mean: sizes that fit, offsets that tile.
#include <algorithm>
#include <optional>

#include <absl/strings/str_cat.h>

#include "runtime/io/SafeTensorsHeader.h"

namespace meshwork::runtime {
namespace {

/// Elements and bytes of one entry against its offsets.
absl::Status checkEntry(TensorEntry &entry) {
  auto wrong = [&](std::string text) {
    return absl::DataLossError(
        absl::StrCat("tensor ", quote(entry.name), ": ", text));
  };
  uint64_t bits = bitsOfDType(entry.info.dtype);
  if (bits == 0)
    return wrong(absl::StrCat("unknown dtype ", quote(entry.info.dtype)));
  std::optional<uint64_t> elements = 1;
  for (uint64_t size : entry.info.shape)
    if (elements)
      elements = checkedMultiply(*elements, size);
  std::optional<uint64_t> total;
  if (elements)
    total = checkedMultiply(*elements, bits);
  if (!total)
    return wrong("the product of its shape does not fit 64 bits");
  if (*total % 8 != 0)
    return wrong(absl::StrCat("ends inside a byte (", *elements,
                              " elements of ", bits, " bits)"));
  if (entry.begin > entry.end)
    return wrong(absl::StrCat("begins at byte ", entry.begin,
                              ", after its end at ", entry.end));
  if (entry.end - entry.begin != *total / 8)
    return wrong(absl::StrCat("its offsets span ",
                              plural(entry.end - entry.begin, "byte"),
                              ", expected ", *total / 8, " for ", *elements,
                              " elements of ", entry.info.dtype));
  entry.info.numElements = *elements;
  return absl::OkStatus();
}

/// Sorted entries must tile [0, dataBytes).
absl::Status checkTiling(const std::vector<TensorEntry> &entries,
                         uint64_t dataBytes) {
  uint64_t next = 0;
  for (const TensorEntry &entry : entries) {
    if (entry.begin != next)
      return absl::DataLossError(absl::StrCat(
          "tensor ", quote(entry.name), ": begins at byte ", entry.begin,
          ", expected ", next,
          entry.begin < next ? ": it overlaps the tensor before it"
                             : ": no byte may belong to no tensor"));
    next = entry.end;
  }
  if (next != dataBytes)
    return absl::DataLossError(absl::StrCat(
        "the tensors end at byte ", next, " of the data, but the file has ",
        plural(dataBytes, "byte"), " of data",
        next > dataBytes ? "; it was cut off" : ""));
  return absl::OkStatus();
}

} // namespace

absl::Status checkEntries(std::vector<TensorEntry> &entries,
                          uint64_t dataBytes) {
  for (TensorEntry &entry : entries)
    if (absl::Status status = checkEntry(entry); !status.ok())
      return status;
  std::sort(entries.begin(), entries.end(),
            [](const TensorEntry &a, const TensorEntry &b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  return checkTiling(entries, dataBytes);
}

uint64_t bitsOfDType(std::string_view dtype) {
  constexpr std::pair<std::string_view, uint64_t> types[] = {
      {"BOOL", 8}, {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},
      {"U16", 16}, {"F16", 16},    {"BF16", 16},   {"I32", 32},    {"U32", 32},
      {"F32", 32}, {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};
  for (auto [name, bits] : types)
    if (name == dtype)
      return bits;
  return 0;
}

bool isPrintableName(std::string_view name) {
  return !name.empty() && std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

std::string plural(uint64_t count, const char *noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

} // namespace meshwork::runtime
