// A thread that works beside others on cores that are all theirs, and takes a
// small share of its own accord. A low priority is not enough: threads that
// share a loop wait for the slowest of them, so what is taken from one is taken
// from all, and at nice 10 that is a tenth.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace meshwork::runtime {

/// Any thread may call, but for `rest`.
class Pace {
public:
  /// Of a thread that is yet to be started.
  ///   rests   false: it never rests
  ///   before  ns that others have just worked for it
  void start(bool rests, int64_t before);
  /// Sleeps until `before` and the processor time of this thread are one part
  /// in `share` of all the time, or until somebody is in a hurry.
  void rest();
  /// No more rests, and an end to the present one.
  void hurry();

  static constexpr int64_t share = 16;

private:
  std::mutex mutex; // guards what follows
  std::condition_variable changed;
  bool rests = false;
  int64_t began = 0, worked = 0; // ns
};

} // namespace meshwork::runtime
