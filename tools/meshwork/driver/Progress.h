// Reports a long compilation on stderr while it runs. It says nothing in the
// first ten seconds (a minute where nobody watches). Then it says how long its
// phases took and which one runs now.
//
//   Progress progress(isatty(STDERR_FILENO));
//   progress.begin("step");
//   progress.watch();  // a thread that speaks up within a phase, too
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace meshwork::driver {

/// What to say, without a clock: seconds are those since the beginning, and
/// never fall. Each text is whole lines, or empty.
class ProgressText {
public:
  static constexpr double quietOnTerminal = 10, quietElsewhere = 60,
                          everySeconds = 30;
  explicit ProgressText(bool isTerminal)
      : next(isTerminal ? quietOnTerminal : quietElsewhere) {}

  /// The phase before has ended, and `phase` begins. Of one that took no time
  /// nothing is said.
  std::string begin(const std::string &phase, double seconds);
  /// Time went by.
  std::string tick(double seconds);
  /// When tick() will next have something to say.
  double nextSeconds() const { return next; }

private:
  void end(double seconds);
  std::string tell(double seconds);

  std::string done, current; // phases not told yet; what runs
  double began = 0, next;
};

class Progress {
public:
  explicit Progress(bool isTerminal) : text(isTerminal) {}
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void begin(const std::string &phase);
  /// Also speaks where a phase takes long, if there is a thread for it.
  void watch();

private:
  double seconds() const;
  void run();

  const std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
  std::mutex mutex;
  std::condition_variable changed;
  ProgressText text;
  bool ends = false;
  std::thread thread;
};

} // namespace meshwork::driver
