#include "runtime/rank/OddOnes.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <map>
#include <string_view>

namespace meshwork::runtime {

std::string usual(const std::vector<std::string> &texts) {
  std::map<std::string_view, size_t> counts;
  for (const std::string &text : texts)
    ++counts[text];
  std::string_view most = texts[0];
  for (const auto &[text, count] : counts)
    if (count > counts[most])
      most = text;
  return std::string(most);
}

std::vector<uint32_t> oddOnes(const std::vector<std::string> &texts) {
  std::string most = usual(texts);
  std::vector<uint32_t> odd;
  for (uint32_t rank = 0; rank < texts.size(); ++rank)
    if (texts[rank] != most)
      odd.push_back(rank);
  return odd;
}

std::string ranksWith(const std::vector<uint32_t> &ranks, const char *one,
                      const char *many) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(ranks, ", "), " ",
                      ranks.size() == 1 ? one : many);
}

} // namespace meshwork::runtime
