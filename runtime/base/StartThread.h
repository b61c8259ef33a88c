// Starting a thread where the system may give none.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include <functional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace meshwork::runtime {

/// Makes `thread` run `body`. resourceExhausted, with `thread` as it was, when
/// a limit on processes, threads or memory is reached.
template <typename Body>
absl::Status startThread(std::thread &thread, Body body) {
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error &error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread: ", error.code().message(),
                     "; look at `ulimit -u` and the control group's pids.max, "
                     "or run with fewer --threads"));
  }
  return absl::OkStatus();
}

/// Runs all `bodies` at once, each on a thread of its own, and returns when all
/// are done. Those for which there is no thread run here, one by one.
inline void runAtOnce(std::vector<std::function<void()>> bodies) {
  std::vector<std::thread> threads(bodies.size());
  std::vector<size_t> left;
  for (size_t i = 0; i < bodies.size(); ++i)
    if (!startThread(threads[i], bodies[i]).ok())
      left.push_back(i);
  for (size_t i : left)
    bodies[i]();
  for (std::thread &thread : threads)
    if (thread.joinable())
      thread.join();
}

} // namespace meshwork::runtime
