// Paths that a spec names.
#pragma once

#include <string>

namespace meshwork::spec {

/// Where `path` leads: it begins in the folder of `specFile` when `origin`
/// (Result::origins) is a place in it, else in the working directory.
std::string pathOf(const std::string &path, const std::string &origin,
                   const std::string &specFile);
/// The part of a path, or of a place in a file ("specs/a.toml:3:5"), that a
/// plan keeps: all after the last '/'. So files elsewhere with the same name
/// and content give the same plan. An argument of the command line stays whole.
std::string nameOf(const std::string &place);
/// What to say of one that does not open.
std::string cannotRead(const std::string &path);

} // namespace meshwork::spec
