#include "tools/meshwork/tune/Workers.h"

#include <cerrno>
#include <csignal>
#include <cstdio>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace meshwork::tune {
namespace {

void writeAll(int to, const std::string &text) {
  for (size_t at = 0; at < text.size();) {
    ssize_t put = ::write(to, text.data() + at, text.size() - at);
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      return;
    at += static_cast<size_t>(put);
  }
}

[[noreturn]] void runChild(const std::function<std::string()> &work,
                           pid_t parent, int to) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A terminal sends it to all of them; the parent ends the others.
  ::signal(SIGINT, SIG_IGN);
  if (int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0)
    ::dup2(nowhere, STDERR_FILENO); // what a crash says
  if (::getppid() != parent)
    ::_exit(1);
  writeAll(to, work());
  ::_exit(0); // the system takes memory back faster than destructors do
}

void waitFor(pid_t process) {
  while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
}
} // namespace

Workers::~Workers() {
  for (Running &one : running) {
    ::kill(one.process, SIGKILL);
    ::close(one.pipe);
    waitFor(one.process);
  }
}

bool Workers::start(size_t task, const std::function<std::string()> &work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return false;
  std::fflush(nullptr);
  pid_t parent = ::getpid(), child = ::fork();
  if (child == 0)
    runChild(work, parent, ends[1]);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return false;
  }
  running.push_back({task, child, ends[0], {}});
  return true;
}

/// Something when that one has said all.
std::optional<Workers::Finished> Workers::readFrom(size_t which) {
  Running &one = running[which];
  char buffer[1 << 14];
  ssize_t got = ::read(one.pipe, buffer, sizeof(buffer));
  if (got > 0) {
    one.text.append(buffer, static_cast<size_t>(got));
    return std::nullopt;
  }
  if (got < 0 && errno == EINTR)
    return std::nullopt;
  ::close(one.pipe);
  waitFor(one.process);
  Finished finished{one.task, std::move(one.text)};
  running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
  return finished;
}

std::optional<Workers::Finished> Workers::wait() {
  while (!running.empty()) {
    std::vector<pollfd> pipes;
    for (const Running &one : running)
      pipes.push_back({one.pipe, POLLIN, 0});
    if (::poll(pipes.data(), pipes.size(), -1) < 0)
      return std::nullopt;
    for (size_t i = 0; i < pipes.size(); ++i)
      if (pipes[i].revents != 0) {
        if (std::optional<Finished> finished = readFrom(i))
          return finished;
        break;
      }
  }
  return std::nullopt;
}

} // namespace meshwork::tune
