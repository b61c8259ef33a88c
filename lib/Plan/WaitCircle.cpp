#include "lib/Plan/WaitCircle.h"
#include "absl/strings/str_cat.h"
#include <algorithm>
#include <deque>
#include <map>

namespace meshwork::runtime {
namespace {
/// From how many ranks a circle is looked for: the shortest one is near most.
constexpr size_t maxStarts = 64;

class Circles {
public:
  explicit Circles(const std::vector<Blocked> &blocked) : blocked(blocked) {
    for (uint32_t i = 0; i < blocked.size(); ++i)
      numbers[blocked[i].rank] = i;
  }

  /// Numbers into `blocked`; empty when there is no circle.
  std::vector<uint32_t> shortest() const {
    std::vector<uint32_t> best;
    for (uint32_t i = 0; i < std::min(blocked.size(), maxStarts); ++i)
      if (std::vector<uint32_t> found = through(i);
          !found.empty() && (best.empty() || found.size() < best.size()))
        best = std::move(found);
    return best;
  }

  /// The first that waits for a rank which has ended; none: the first of all.
  const Blocked &forEnded() const {
    for (const Blocked &one : blocked)
      for (uint32_t other : one.waitsFor)
        if (!numbers.contains(other))
          return one;
    return blocked.front();
  }

private:
  /// Breadth first, back to where it began.
  std::vector<uint32_t> through(uint32_t start) const {
    constexpr uint32_t unknown = UINT32_MAX;
    std::vector<uint32_t> from(blocked.size(), unknown);
    std::deque<uint32_t> next = {start};
    for (; !next.empty(); next.pop_front())
      for (uint32_t rank : blocked[next.front()].waitsFor) {
        auto other = numbers.find(rank);
        if (other == numbers.end())
          continue;
        if (other->second == start)
          return pathTo(next.front(), start, from);
        if (from[other->second] != unknown)
          continue;
        from[other->second] = next.front();
        next.push_back(other->second);
      }
    return {};
  }

  static std::vector<uint32_t> pathTo(uint32_t end, uint32_t start,
                                      const std::vector<uint32_t> &from) {
    std::vector<uint32_t> path = {end};
    while (path.back() != start)
      path.push_back(from[path.back()]);
    std::reverse(path.begin(), path.end());
    return path;
  }

  const std::vector<Blocked> &blocked;
  std::map<uint32_t, uint32_t> numbers; // in `blocked`, by rank
};
} // namespace

std::string describe(const std::vector<Blocked> &blocked,
                     absl::FunctionRef<uint64_t(uint32_t)> nameOf) {
  Circles circles(blocked);
  std::vector<uint32_t> circle = circles.shortest();
  if (circle.empty()) {
    const Blocked &one = circles.forEnded();
    return absl::StrCat("rank ", nameOf(one.rank), " would wait forever ",
                        one.where,
                        ": the ranks of its group do not all come there");
  }
  std::string text = "ranks would wait forever for each other: ";
  for (uint32_t number : circle)
    absl::StrAppend(&text, number == circle.front() ? "rank " : "; rank ",
                    nameOf(blocked[number].rank), " ", blocked[number].where);
  return text;
}

} // namespace meshwork::runtime
