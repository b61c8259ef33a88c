#include "runtime/save/RenamedWeights.h"
#include "absl/strings/str_cat.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {
constexpr int64_t readAtOnce = 1 << 16; // elements

/// A run of the file's tensor, whose neighbours may be `srcStride` apart, to
/// the front of `out`.
absl::Status readRun(const SafeTensorsReader &file, const std::string &tensor,
                     const Run &run, absl::Span<float> out) {
  if (run.srcStride == 1)
    return file.readRange(tensor, static_cast<uint64_t>(run.src),
                          out.first(static_cast<size_t>(run.count)));
  std::vector<float> between;
  int64_t most = std::max<int64_t>(readAtOnce / run.srcStride, 1);
  for (int64_t at = 0; at < run.count; at += most) {
    int64_t count = std::min(most, run.count - at);
    between.resize(static_cast<size_t>((count - 1) * run.srcStride + 1));
    absl::Status status = file.readRange(
        tensor, static_cast<uint64_t>(run.src + at * run.srcStride),
        absl::MakeSpan(between));
    if (!status.ok())
      return status;
    for (int64_t i = 0; i < count; ++i)
      out[static_cast<size_t>(at + i)] =
          between[static_cast<size_t>(i * run.srcStride)];
  }
  return absl::OkStatus();
}
} // namespace

const TensorInfo *RenamedWeights::find(std::string_view name) const {
  auto found = places.find(name);
  if (found == places.end())
    return file->find(name);
  const PlaceInFile &place = found->second;
  return place.part ? &place.part->info : file->find(place.tensor);
}

absl::Status RenamedWeights::read(std::string_view name,
                                  absl::Span<float> out) const {
  auto found = places.find(name);
  if (found == places.end())
    return file->read(name, out);
  if (!found->second.part)
    return file->read(found->second.tensor, out);
  if (out.size() != found->second.part->info.numElements)
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", quote(name), " has ", found->second.part->info.numElements,
        " elements, expected ", out.size()));
  return readPart(found->second, 0, out);
}

absl::Status RenamedWeights::readRange(std::string_view name, uint64_t first,
                                       absl::Span<float> out) const {
  auto found = places.find(name);
  if (found == places.end())
    return file->readRange(name, first, out);
  const PlaceInFile &place = found->second;
  return place.part ? readPart(place, first, out)
                    : file->readRange(place.tensor, first, out);
}

absl::Status RenamedWeights::readPart(const PlaceInFile &place, uint64_t first,
                                      absl::Span<float> out) const {
  uint64_t elements = place.part->info.numElements;
  if (first > elements || out.size() > elements - first)
    return absl::InvalidArgumentError(absl::StrCat(
        "a part of tensor ", quote(place.tensor), " has ", elements,
        " elements, expected ", out.size(), " from ", first));
  absl::Status status;
  place.part->box.forEachRun(
      static_cast<int64_t>(first), static_cast<int64_t>(first + out.size()),
      [&](const Run &run) {
        if (status.ok())
          status = readRun(*file, place.tensor, run, out);
        out.remove_prefix(static_cast<size_t>(run.count));
      });
  return status;
}

std::vector<std::string> RenamedWeights::names() const {
  std::vector<std::string> all;
  for (const auto &[name, place] : places)
    all.push_back(name);
  return all;
}

} // namespace meshwork::runtime
