#include <algorithm>
#include <optional>
#include <vector>

#include <absl/strings/str_cat.h>

#include "runtime/io/Convert.h"
#include "runtime/io/Files.h"
#include "runtime/io/SafeTensors.h"
#include "runtime/io/SafeTensorsHeader.h"

namespace meshwork::runtime {
namespace {

// Readers may map the file and want aligned data.
constexpr uint64_t alignmentBytes = 8;
constexpr uint64_t convertedAtOnce = 1 << 18; // elements

absl::StatusOr<uint64_t> bytesOf(const TensorToWrite &tensor) {
  std::optional<FloatWriter> writer = writerOfFloats(tensor.dtype);
  if (!writer)
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", quote(tensor.name), ": its type is ",
                     quote(tensor.dtype), ", expected F32, F16 or BF16"));
  std::optional<uint64_t> bytes = writer->width;
  for (uint64_t size : tensor.shape)
    if (bytes)
      bytes = checkedMultiply(*bytes, size);
  if (!bytes)
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", quote(tensor.name), ": its size does not fit 64 bits"));
  if (*bytes > 0 && !tensor.data && !tensor.produce)
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", quote(tensor.name), ": has no data"));
  return *bytes;
}

absl::StatusOr<std::string> headerOf(absl::Span<const TensorToWrite> tensors) {
  std::vector<HeaderEntry> entries;
  for (const TensorToWrite &tensor : tensors) {
    absl::StatusOr<uint64_t> bytes = bytesOf(tensor);
    if (!bytes.ok())
      return bytes.status();
    entries.push_back({tensor.name, tensor.dtype, tensor.shape, *bytes});
  }
  return safeTensorsHeader(entries, alignmentBytes);
}

absl::Status writeElements(const FloatWriter &writer,
                           absl::Span<const float> values,
                           std::vector<unsigned char> &bytes,
                           OutputFile &file) {
  if (writer.width == sizeof(float))
    return file.write(values.data(), values.size() * sizeof(float));
  bytes.resize(std::min<uint64_t>(values.size(), convertedAtOnce) *
               writer.width);
  for (size_t at = 0; at < values.size(); at += convertedAtOnce) {
    absl::Span<const float> part = values.subspan(at, convertedAtOnce);
    writer.write(part.data(), part.size(), bytes.data());
    if (absl::Status status =
            file.write(bytes.data(), part.size() * writer.width);
        !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status writeTensor(const TensorToWrite &tensor, OutputFile &file) {
  FloatWriter writer = *writerOfFloats(tensor.dtype);
  uint64_t count = *bytesOf(tensor) / writer.width;
  std::vector<unsigned char> bytes;
  if (tensor.data)
    return writeElements(writer, {tensor.data, count}, bytes, file);
  uint64_t slice = std::min(tensor.slice ? tensor.slice : count, count);
  std::vector<float> values(slice);
  for (uint64_t first = 0; first < count; first += slice) {
    values.resize(std::min(slice, count - first));
    absl::Status status = tensor.produce(first, absl::MakeSpan(values));
    if (status.ok())
      status = writeElements(writer, values, bytes, file);
    if (!status.ok())
      return status;
  }
  return absl::OkStatus();
}

} // namespace

absl::Status writeSafeTensors(const std::string &path,
                              absl::Span<const TensorToWrite> tensors) {
  absl::StatusOr<std::string> header = headerOf(tensors);
  if (!header.ok())
    return header.status();
  absl::StatusOr<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return file.status();
  if (absl::Status status = file->write(header->data(), header->size());
      !status.ok())
    return status;
  for (const TensorToWrite &tensor : tensors)
    if (absl::Status status = writeTensor(tensor, *file); !status.ok())
      return status;
  return file->commit();
}

} // namespace meshwork::runtime
