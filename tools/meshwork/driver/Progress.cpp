#include "tools/meshwork/driver/Progress.h"

#include <cstdio>

#include <unistd.h>

#include "runtime/base/StartThread.h"

namespace meshwork::driver {
namespace {

std::string secondsText(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), seconds < 10 ? "%.1f s" : "%.0f s",
                seconds);
  return text;
}

/// At once and whole: other threads write to stderr, too.
void say(const std::string &text) {
  size_t done = 0;
  while (done < text.size()) {
    ssize_t count =
        ::write(STDERR_FILENO, text.data() + done, text.size() - done);
    if (count <= 0)
      return; // Nobody listens, which stops no compilation.
    done += static_cast<size_t>(count);
  }
}
} // namespace

void ProgressText::end(double seconds) {
  constexpr double moment = 0.1;
  if (!current.empty() && seconds - began >= moment)
    done += (done.empty() ? "" : ", ") + current + " " +
            secondsText(seconds - began);
}

std::string ProgressText::tell(double seconds) {
  next = seconds + everySeconds;
  if (current.empty())
    return "";
  std::string line = "meshwork: " + secondsText(seconds) + ": ";
  if (!done.empty())
    line += done + "; ";
  done.clear();
  if (seconds == began)
    return line + "now " + current + "\n";
  return line + current + " has run for " + secondsText(seconds - began) + "\n";
}

std::string ProgressText::begin(const std::string &phase, double seconds) {
  end(seconds);
  current = phase;
  began = seconds;
  return tick(seconds);
}

std::string ProgressText::tick(double seconds) {
  return seconds < next ? "" : tell(seconds);
}

Progress::~Progress() {
  {
    std::lock_guard lock(mutex);
    ends = true;
  }
  changed.notify_one();
  if (thread.joinable())
    thread.join();
}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

void Progress::begin(const std::string &phase) {
  std::lock_guard lock(mutex);
  say(text.begin(phase, seconds()));
}

void Progress::watch() {
  if (!thread.joinable())
    (void)runtime::startThread(thread, [this] { run(); });
}

void Progress::run() {
  std::unique_lock lock(mutex);
  while (!ends) {
    auto due = std::chrono::duration<double>(text.nextSeconds());
    changed.wait_until(
        lock,
        start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                    due));
    if (!ends)
      say(text.tick(seconds()));
  }
}

} // namespace meshwork::driver
