// How long a list of instructions takes, some of which run on channels.
//
//   cost::ListClock clock;
//   clock.start({.seconds = 2, .channel = 1});
//   clock.compute(3);
//   clock.wait(/*channel=*/1, /*count=*/1); // clock.now() is 3
#ifndef MESHWORK_LIB_COST_LISTCLOCK_H
#define MESHWORK_LIB_COST_LISTCLOCK_H

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace meshwork::cost {

/// Axes of the mesh that something moves over; none: to the host or from it.
using MovedOver = std::vector<uint32_t>;
/// Seconds in which a rank computes nothing because of what moves.
using Exposed = std::map<MovedOver, double>;

/// One run of a list: a clock of the rank and one of each channel. Peers are
/// never late.
class ListClock {
public:
  struct Move {
    double seconds = 0;
    uint64_t channel = 0; // 0: the rank itself moves it
    bool takesCores = false;
    MovedOver over;
  };

  void compute(double seconds) { time += seconds; }
  /// On a channel it is hidden until it is waited for, unless moving the data
  /// takes the cores that compute.
  void start(Move move) {
    if (move.channel == 0 || move.takesCores) {
      exposures[move.over] += move.seconds;
      return compute(move.seconds);
    }
    std::vector<Run> &runs = channels[move.channel].runs;
    double begin = std::max(time, runs.empty() ? 0 : runs.back().end);
    runs.push_back({begin, begin + move.seconds, std::move(move.over)});
  }
  /// For the first `count` of a channel.
  void wait(uint64_t channel, uint64_t count) {
    auto &[runs, awaited] = channels[channel];
    for (; awaited < std::min<uint64_t>(count, runs.size()); ++awaited)
      if (const Run &run = runs[awaited]; run.end > time) {
        exposures[run.over] += run.end - time;
        time = run.end;
      }
  }
  /// Nothing is under way; channels count anew.
  void restart() { channels.clear(); }
  double now() const { return time; }
  const Exposed &exposed() const { return exposures; }

private:
  struct Run {
    double begin, end;
    MovedOver over;
  };
  struct Channel {
    std::vector<Run> runs;
    uint64_t awaited = 0; // the first so many were waited for
  };
  double time = 0;
  std::map<uint64_t, Channel> channels;
  Exposed exposures;
};

/// Of all `runs` of a list in a step, the last of which takes another time.
inline double secondsOfRuns(uint64_t runs, double one, double last) {
  return runs == 0 ? 0 : static_cast<double>(runs - 1) * one + last;
}

} // namespace meshwork::cost

#endif // MESHWORK_LIB_COST_LISTCLOCK_H
