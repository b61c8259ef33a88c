// A number with its noun, in the singular of one.
//
//   counted(1, "microbatch")    "1 microbatch"
//   counted(3, "process")       "3 processes"
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace meshwork {

/// The regular plural: "axis" and the like need it given.
inline std::string pluralOf(std::string_view noun) {
  auto ends = [&](std::string_view with) { return noun.ends_with(with); };
  std::string text(noun);
  if (ends("s") || ends("x") || ends("ch") || ends("sh"))
    return text + "es";
  bool afterVowel = ends("ay") || ends("ey") || ends("oy") || ends("uy");
  if (!ends("y") || afterVowel)
    return text + "s";
  text.pop_back();
  return text + "ies";
}

template <std::integral Number>
std::string counted(Number count, std::string_view noun,
                    std::string_view plural = {}) {
  std::string number = std::to_string(count) + " ";
  if (count == 1)
    return number.append(noun);
  return number + (plural.empty() ? pluralOf(noun) : std::string(plural));
}

} // namespace meshwork
