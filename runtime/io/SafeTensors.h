// Reads and writes weights in the safetensors format.
//
//   auto reader = SafeTensorsReader::open("model.safetensors");
//   if (const TensorInfo *info = reader.value()->find("wte.weight"))
//     status = reader.value()->read("wte.weight", absl::MakeSpan(weights));
//
// A file is 8 bytes header length, little endian, the header (JSON, an object
// of name -> {dtype, shape, data_offsets}), then the data. Files come from
// strangers: everything is checked at open, and nothing is allocated by a
// number from the file before that number is checked against the file's size.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include "runtime/io/Files.h"

namespace meshwork::runtime {

struct TensorInfo {
  std::string dtype;           // as in the file: "F32", "BF16", "I64" ...
  std::vector<uint64_t> shape; // row-major; empty is a scalar
  uint64_t numElements = 0;
};

/// Immutable once open; any number of threads may read.
class SafeTensorsReader {
public:
  virtual ~SafeTensorsReader() = default;
  /// `path` is a .safetensors file; a .json index, whose files lie beside it;
  /// or a folder that holds model.safetensors.index.json with its files, or
  /// model.safetensors. The folder may be a repository in the Hub's cache or a
  /// snapshot there. `links` are those to files of an index. Codes as in
  /// Files.h.
  static absl::StatusOr<std::unique_ptr<SafeTensorsReader>>
  open(const std::string &path, const LinkRule &links = {});

  /// Null when there is no such tensor. Owned by the reader.
  virtual const TensorInfo *find(std::string_view name) const = 0;

  /// Converts F32, F16, BF16 or F64 to f32 (to nearest). `out` must hold
  /// exactly the tensor's elements. kNotFound when there is no such tensor.
  virtual absl::Status read(std::string_view name,
                            absl::Span<float> out) const = 0;

  /// The same for elements [first, first + out.size()) of its row-major order;
  /// kInvalidArgument when they are not all there.
  virtual absl::Status readRange(std::string_view name, uint64_t first,
                                 absl::Span<float> out) const = 0;

  /// The files that are read, an index too.
  virtual std::vector<std::string> paths() const = 0;

  /// All names, sorted.
  virtual std::vector<std::string> names() const = 0;
};

struct TensorToWrite {
  std::string name; // not empty, UTF-8, no control characters
  std::vector<uint64_t> shape;
  const float *data = nullptr; // row-major, as many as the shape says
  /// In place of `data`: fills a buffer with the elements from `first` on, when
  /// their turn has come. Ranges follow one another without gaps.
  std::function<absl::Status(uint64_t first, absl::Span<float>)> produce =
      nullptr;
  /// Elements that `produce` is asked for at a time, which need memory; 0: all.
  uint64_t slice = 0;
  /// "F32", or "F16" or "BF16", rounded to the nearest, half to even.
  std::string dtype = "F32";
};

/// Writes the tensors in the order given. The file appears under `path` only
/// when it is complete; an earlier file of that name stays until then.
absl::Status writeSafeTensors(const std::string &path,
                              absl::Span<const TensorToWrite> tensors);

} // namespace meshwork::runtime
