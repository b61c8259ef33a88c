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
///
/// On a machine where hiding is not free, computing takes `slowdown` of the
/// hidden seconds longer; the host sends each instruction in `host` seconds,
/// and the rank begins none before.
class ListClock {
public:
  explicit ListClock(double slowdown = 0, double host = 0)
      : slowdown(slowdown), host(host) {}

  struct Move {
    double seconds = 0;
    uint64_t channel = 0; // 0: the rank itself moves it
    bool takesCores = false;
    bool usesAdapters = false; // which other channels use too, one at a time
    MovedOver over;
    double runs = 1;
  };

  struct Span {
    double begin = 0, end = 0;
  };

  /// All of so many runs, which the host sends one by one. Returns when.
  Span compute(double seconds, double runs = 1) {
    double begin = std::max(time, sent + host);
    time = begin + seconds;
    sent += host * runs;
    time = std::max(time, sent + seconds / std::max(runs, 1.0));
    return {begin, time};
  }
  /// On a channel it is hidden until it is waited for, unless moving the data
  /// takes the cores that compute.
  Span start(Move move) {
    if (move.channel == 0 || move.takesCores)
      return moveNow(move);
    sent += host * move.runs;
    time = std::max(time, sent);
    std::vector<Run> &runs = channels[move.channel].runs;
    double begin = std::max(time, runs.empty() ? 0 : runs.back().end);
    if (move.usesAdapters)
      begin = std::max(begin, adaptersFree);
    runs.push_back({begin, begin + move.seconds, std::move(move.over)});
    if (move.usesAdapters)
      adaptersFree = runs.back().end;
    return {begin, runs.back().end};
  }
  /// For the first `count` of a channel.
  Span wait(uint64_t channel, uint64_t count) {
    double begin = time;
    auto &[runs, awaited] = channels[channel];
    for (; awaited < std::min<uint64_t>(count, runs.size()); ++awaited) {
      const Run &run = runs[awaited];
      double exposed = std::max(0.0, run.end - time);
      if (exposed > 0)
        exposures[run.over] += exposed;
      double hidden = std::max(0.0, run.end - run.begin - exposed);
      time += exposed + slowdown * hidden;
    }
    return {begin, time};
  }
  /// Nothing is under way; channels count anew.
  void restart() { channels.clear(); }
  double now() const { return time; }
  const Exposed &exposed() const { return exposures; }

private:
  /// The rank waits for it, and for adapters that channels use.
  Span moveNow(const Move &move) {
    double waited = move.usesAdapters ? std::max(0.0, adaptersFree - time) : 0;
    exposures[move.over] += waited + move.seconds;
    time += waited;
    Span span = compute(move.seconds, move.runs);
    if (move.usesAdapters)
      adaptersFree = span.end;
    return span;
  }

  struct Run {
    double begin, end;
    MovedOver over;
  };
  struct Channel {
    std::vector<Run> runs;
    uint64_t awaited = 0; // the first so many were waited for
  };
  double slowdown, host;
  double time = 0, sent = 0, adaptersFree = 0;
  std::map<uint64_t, Channel> channels;
  Exposed exposures;
};

/// Of all `runs` of a list in a step, the last of which takes another time.
inline double secondsOfRuns(uint64_t runs, double one, double last) {
  return runs == 0 ? 0 : static_cast<double>(runs - 1) * one + last;
}

} // namespace meshwork::cost

#endif // MESHWORK_LIB_COST_LISTCLOCK_H
