// Processes that work on one thing each, as many at a time as there are cores.
// A crash in one of them costs its own result alone.
//
//   Workers workers(2);
//   workers.start(7, [] { return std::string("result of 7"); });
//   std::optional<Workers::Finished> first = workers.wait();
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace meshwork::tune {

class Workers {
public:
  struct Finished {
    size_t task = 0;
    std::string result; // empty where the process died
  };

  explicit Workers(size_t most) : most(most) {}
  /// Ends what still runs.
  ~Workers();
  Workers(const Workers &) = delete;
  Workers &operator=(const Workers &) = delete;

  bool isFull() const { return running.size() >= most; }
  bool isIdle() const { return running.empty(); }
  /// Runs `work` in a child; to be called while this process has one thread.
  /// Whether there was a process for it.
  bool start(size_t task, const std::function<std::string()> &work);
  /// The next that ends; nothing where none runs, or a signal came.
  std::optional<Finished> wait();

private:
  struct Running {
    size_t task;
    pid_t process;
    int pipe;
    std::string text;
  };
  std::optional<Finished> readFrom(size_t which);

  size_t most;
  std::vector<Running> running;
};

} // namespace meshwork::tune
