// A file's tensors under the names that the plan has for them. Internal to
// runtime/save.
#pragma once

#include "runtime/comm/Strided.h"
#include "runtime/io/SafeTensors.h"
#include <map>
#include <memory>
#include <optional>

namespace meshwork::runtime {

/// A tensor that is a part of one in a file.
struct PartInFile {
  TensorInfo info; // of the part
  Box box;         // its elements in the file's tensor, and row-major
};

struct PlaceInFile {
  std::string tensor;                            // as the file calls it
  std::optional<PartInFile> part = std::nullopt; // none: all of it
};

class RenamedWeights final : public SafeTensorsReader {
public:
  using Places = std::map<std::string, PlaceInFile, std::less<>>;
  RenamedWeights(std::shared_ptr<const SafeTensorsReader> file, Places places)
      : file(std::move(file)), places(std::move(places)) {}

  const TensorInfo *find(std::string_view name) const override;
  absl::Status read(std::string_view name,
                    absl::Span<float> out) const override;
  absl::Status readRange(std::string_view name, uint64_t first,
                         absl::Span<float> out) const override;
  std::vector<std::string> paths() const override { return file->paths(); }
  std::vector<std::string> names() const override;

private:
  absl::Status readPart(const PlaceInFile &place, uint64_t first,
                        absl::Span<float> out) const;

  std::shared_ptr<const SafeTensorsReader> file;
  Places places;
};

} // namespace meshwork::runtime
