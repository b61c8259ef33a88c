// Paths that a spec names.
#pragma once

#include <string>

namespace meshwork::spec {

/// Where `path` leads: it begins in the folder of `specFile` when `origin`
/// (Result::origins) is a place in it, else in the working directory.
std::string pathOf(const std::string &path, const std::string &origin,
                   const std::string &specFile);
/// What to say of one that does not open.
std::string cannotRead(const std::string &path);

} // namespace meshwork::spec
