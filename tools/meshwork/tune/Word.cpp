#include "tools/meshwork/tune/Word.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace meshwork::tune {
namespace {

/// What keys of a choice take, and what --fixed gives them instead.
constexpr size_t mostWords = 256;

std::vector<std::string_view> &words() {
  static std::vector<std::string_view> all = {""};
  return all;
}
} // namespace

uint8_t Word::numberOf(std::string_view text) {
  auto &all = words();
  auto found = std::find(all.begin(), all.end(), text);
  if (found == all.end()) {
    if (all.size() == mostWords)
      std::abort(); // seven keys have no more words
    found = all.insert(all.end(), text);
  }
  return static_cast<uint8_t>(found - all.begin());
}

std::string_view Word::text() const { return words()[number]; }

} // namespace meshwork::tune
