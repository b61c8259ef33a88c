// A thread that works beside others on cores that are all theirs, and takes a
// small share of its own accord. A low priority is not enough. Threads that
// share a loop wait for the slowest of them, so time taken from one is taken
// from all. At nice 10 that is a tenth.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

namespace meshwork::runtime {

/// Any thread may call, but for `rest`.
class Pace {
public:
  /// Of a thread that is yet to be started, and is to rest until `begin`.
  ///   rests  false: it never rests
  void start(bool rests);
  /// Changes nothing when it has begun.
  void begin();
  /// Sleeps until the processor time of this thread is one part in `share` of
  /// the time since `begin`, or until somebody is in a hurry.
  void rest();
  /// No more rests, and an end to the present one.
  void hurry();

  static constexpr int64_t share = 16;

private:
  std::mutex mutex; // guards what follows
  std::condition_variable changed;
  bool rests = false;
  std::optional<int64_t> began; // ns
};

} // namespace meshwork::runtime
