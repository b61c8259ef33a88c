// The header of a safetensors file and the index of a folder of them, checked
// in full. Internal to the runtime's readers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "runtime/io/Files.h"
#include "runtime/io/SafeTensors.h"

namespace meshwork::runtime {

/// The largest header the format allows, also applied to index files.
inline constexpr uint64_t maxHeaderBytes = 100'000'000;

struct TensorEntry {
  std::string name;
  TensorInfo info;
  uint64_t begin = 0, end = 0; // bytes from the start of the data
};

/// Parses the JSON of a header; `dataBytes` is what follows it in the file.
/// The entries come sorted by `begin` and cover the data without hole or
/// overlap. Messages do not name the file; the caller does.
absl::StatusOr<std::vector<TensorEntry>>
parseSafeTensorsHeader(std::string_view json, uint64_t dataBytes);

/// A tensor of a file to be written; they lie one behind the other.
struct HeaderEntry {
  std::string name, dtype;
  std::vector<uint64_t> shape;
  uint64_t bytes = 0;
};

/// The bytes in front of the data: the header with its length, padded so that
/// the data begins at a multiple of `alignment`. The error kInvalidArgument
/// names a tensor whose name no file can hold. Names differ, are UTF-8 without
/// control characters, and neither empty nor "__metadata__".
absl::StatusOr<std::string>
safeTensorsHeader(absl::Span<const HeaderEntry> tensors, uint64_t alignment);

/// Fills numElements, sorts by `begin`, and checks that dtype and shape give
/// the offsets and that the entries tile [0, dataBytes).
absl::Status checkEntries(std::vector<TensorEntry> &entries,
                          uint64_t dataBytes);

/// Parses model.safetensors.index.json: pairs of tensor and file name, in the
/// order of the file, without duplicates. File names are not checked here.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>>
parseSafeTensorsIndex(std::string_view json);

/// Bits of one element; 0 for a type the format does not have.
uint64_t bitsOfDType(std::string_view dtype);

/// A name that is neither empty nor holds control characters.
bool isPrintableName(std::string_view name);

/// `count` and `noun`: "1 byte", "2 bytes".
std::string plural(uint64_t count, const char *noun);

} // namespace meshwork::runtime
