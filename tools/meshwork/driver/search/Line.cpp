#include "tools/meshwork/driver/search/Line.h"

#include <algorithm>

using namespace mlir;

namespace meshwork::driver {
namespace {

using Point = Tried<int64_t>;

class Walk {
public:
  Walk(const Line &line, uint64_t limit)
      : line(line), limit(limit), above(line.above) {}

  /// The way to try next; nothing at the end.
  std::optional<int64_t> next() const {
    if (!most)
      return numTried < line.corners.size()
                 ? std::optional(line.corners[numTried])
                 : std::nullopt;
    if (!above || above->way - most->way <= 1 || numBetween >= line.mostTrials)
      return std::nullopt;
    return between();
  }

  void note(const Point &point) {
    ++numTried;
    numBetween += most.has_value();
    (fits(point.trial, limit) ? most : above) = point;
  }

  const std::optional<Point> &found() const { return most ? most : above; }

private:
  int64_t between() const {
    auto room = static_cast<double>(above->way - most->way);
    double share = 0.5;
    if (above->trial) {
      auto bytes = static_cast<double>(most->trial->bytes);
      share = (static_cast<double>(limit) - bytes) /
              std::max(static_cast<double>(above->trial->bytes) - bytes, 1.0);
    }
    return std::clamp(most->way + static_cast<int64_t>(share * room),
                      most->way + 1, above->way - 1);
  }

  const Line &line;
  uint64_t limit;
  std::optional<Point> most, above; // the last that fits, and what does not
  size_t numTried = 0, numBetween = 0;
};
} // namespace

FailureOr<Point> mostThatFits(const Line &line, uint64_t limit,
                              llvm::function_ref<Outcome(int64_t)> compile) {
  Walk walk(line, limit);
  auto next = [&](ArrayRef<Point> tried) {
    if (!tried.empty())
      walk.note(tried.back());
    return walk.next();
  };
  if (failed(tryWays<int64_t>(
          next, [&](const int64_t &way) { return compile(way); })))
    return failure();
  return *walk.found();
}

} // namespace meshwork::driver
