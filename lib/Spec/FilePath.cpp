#include "lib/Spec/FilePath.h"

#include "lib/Spec/Diagnostic.h"

#include <filesystem>

namespace meshwork::spec {

std::string pathOf(const std::string &path, const std::string &origin,
                   const std::string &specFile) {
  std::filesystem::path own(path), folder;
  if (origin.starts_with(specFile + ":"))
    folder = std::filesystem::path(specFile).parent_path();
  return (own.is_absolute() ? own : folder / own).string();
}

std::string nameOf(const std::string &place) {
  return place.starts_with("--set ") ? place
                                     : place.substr(place.rfind('/') + 1);
}

std::string cannotRead(const std::string &path) {
  return quote(path) + " cannot be read; a path begins in the folder of the "
                       "spec, that of --set in the working directory";
}

} // namespace meshwork::spec
