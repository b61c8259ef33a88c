#include "lib/Plan/WaitCircle.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/Circle.h"
#include <map>

namespace meshwork::plan {
namespace {

struct Edge {
  uint32_t to;
};
bool isWait(const Edge &) { return true; }

/// Ranks as nodes, numbered as they stand in `blocked`.
class Ranks {
public:
  explicit Ranks(const std::vector<Blocked> &blocked)
      : waiting(blocked.size()) {
    for (uint32_t i = 0; i < blocked.size(); ++i)
      numbers[blocked[i].rank] = i;
    for (uint32_t i = 0; i < blocked.size(); ++i)
      for (uint32_t rank : blocked[i].waitsFor)
        if (auto cause = numbers.find(rank); cause != numbers.end())
          waiting[cause->second].push_back({i});
        else
          forEnded = std::min(forEnded, i);
  }

  size_t size() const { return waiting.size(); }
  const Edge *begin(uint32_t node) const { return waiting[node].data(); }
  const Edge *end(uint32_t node) const {
    return waiting[node].data() + waiting[node].size();
  }
  /// The first that waits for a rank which has ended; none: the first of all.
  uint32_t waitsForEnded() const { return forEnded < size() ? forEnded : 0; }

private:
  std::map<uint32_t, uint32_t> numbers; // by rank
  std::vector<std::vector<Edge>> waiting;
  uint32_t forEnded = UINT32_MAX;
};
} // namespace

std::string describe(const std::vector<Blocked> &blocked,
                     absl::FunctionRef<uint64_t(uint32_t)> nameOf) {
  Ranks ranks(blocked);
  auto circle = shortestCircle(ranks, std::vector<bool>(ranks.size(), true));
  if (circle.hops.empty()) {
    const Blocked &one = blocked[ranks.waitsForEnded()];
    return absl::StrCat("rank ", nameOf(one.rank), " would wait forever ",
                        one.where,
                        ": the ranks of its group do not all come there");
  }
  std::vector<CircleRow> rows;
  for (const auto &hop : circle.hops)
    rows.push_back({absl::StrCat(nameOf(blocked[hop.to].rank)), "",
                    blocked[hop.to].where,
                    absl::StrCat("rank ", nameOf(blocked[hop.from].rank)), ""});
  return absl::StrCat("ranks would wait forever: ",
                      circleText(circle.isShortest, std::move(rows)));
}

} // namespace meshwork::plan
