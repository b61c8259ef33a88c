// Rising numbers as text, those that follow each other as a range.
//
//   numberRanges(std::vector{0, 1, 2, 5})    "0-2, 5"
#pragma once

#include <string>

namespace meshwork {

template <typename Numbers> std::string numberRanges(const Numbers &numbers) {
  std::string text;
  for (auto at = numbers.begin(); at != numbers.end();) {
    auto first = *at, last = first;
    while (++at != numbers.end() && *at > last && *at - 1 == last)
      last = *at;
    text += (text.empty() ? "" : ", ") + std::to_string(first);
    if (last != first)
      text += (last - 1 == first ? ", " : "-") + std::to_string(last);
  }
  return text;
}

} // namespace meshwork
