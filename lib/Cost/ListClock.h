// How long a list of instructions takes, some of which run on channels.
//
//   cost::ListClock clock;
//   clock.start(/*seconds=*/2, /*channel=*/1, /*takesCores=*/false);
//   clock.compute(3);
//   clock.wait(/*channel=*/1, /*count=*/1); // clock.now() is 3
#ifndef MESHWORK_LIB_COST_LISTCLOCK_H
#define MESHWORK_LIB_COST_LISTCLOCK_H

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace meshwork::cost {

/// One run of a list: a clock of the rank and one of each channel. Peers are
/// never late.
class ListClock {
public:
  void compute(double seconds) { time += seconds; }
  /// On a channel it is hidden until it is waited for, unless moving the data
  /// takes the cores that compute. Channel 0 is the rank itself.
  void start(double seconds, uint64_t channel, bool takesCores) {
    if (channel == 0 || takesCores)
      return compute(seconds);
    std::vector<double> &ends = endsOf[channel];
    double begin = std::max(time, ends.empty() ? 0 : ends.back());
    ends.push_back(begin + seconds);
  }
  /// For the first `count` of a channel.
  void wait(uint64_t channel, uint64_t count) {
    const std::vector<double> &ends = endsOf[channel];
    count = std::min<uint64_t>(count, ends.size());
    if (count > 0)
      time = std::max(time, ends[count - 1]);
  }
  /// Nothing is under way; channels count anew.
  void restart() { endsOf.clear(); }
  double now() const { return time; }

private:
  double time = 0;
  std::map<uint64_t, std::vector<double>> endsOf; // by channel
};

/// Of all `runs` of a list in a step, the last of which takes another time.
inline double secondsOfRuns(uint64_t runs, double one, double last) {
  return runs == 0 ? 0 : static_cast<double>(runs - 1) * one + last;
}

} // namespace meshwork::cost

#endif // MESHWORK_LIB_COST_LISTCLOCK_H
