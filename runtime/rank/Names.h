// Names of instructions and tensors, for people.
#pragma once

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <string>
#include <vector>

namespace meshwork::runtime {

/// "h.11.mlp.c_fc" -> "h.*.mlp.c_fc", escaped for a terminal: one name for what
/// every layer has.
std::string withoutNumbers(const std::string &name);

/// "a, b, c, d, e and 7 more": at most five are named.
std::string firstOf(const std::vector<std::string> &names);

/// "[64,176]"
template <typename Sizes> std::string shapeText(const Sizes &sizes) {
  return absl::StrCat("[", absl::StrJoin(sizes, ","), "]");
}

/// Of the machine that this process runs on.
std::string hostName();

} // namespace meshwork::runtime
