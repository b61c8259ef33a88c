#include "tools/meshwork-run/Supervise.h"
#include "absl/strings/str_cat.h"
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Text/Escape.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/comm/Launch.h"
#include "tools/meshwork-run/Ending.h"
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

namespace meshwork {
namespace {
using runtime::ExitCode;
using runtime::RunOptions;

// Between two failures without a new checkpoint: twice as long each time, so
// that a disk may be cleared or a machine come back.
constexpr double firstPauseS = 0.1, longestPauseS = 60;

/// Signals that a supervisor waits for, and passes on but for SIGCHLD.
sigset_t watchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    struct sigaction now = {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) // by nohup; waiting would bring it back
      sigaddset(&set, signal);
  }
  return set;
}

class Supervisor {
public:
  Supervisor(RunOptions &options, const std::optional<runtime::Launch> &launch)
      : options(options),
        who(launch ? absl::StrCat("rank ", launch->rank, ": ") : "") {
    nameIt();
    sigset_t watched = watchedSignals();
    sigprocmask(SIG_BLOCK, &watched, &before);
  }

  /// Nothing in a child.
  std::optional<int> run();

private:
  static void nameIt();
  std::optional<pid_t> start(const std::optional<uint64_t> &from);
  std::optional<Ending> watch(pid_t child, double forSeconds);
  void passOn(int signal, pid_t child);
  std::optional<uint64_t> newestStep() const;
  double pauseAfter(const std::optional<uint64_t> &newest);
  void say(const std::string &text) const;

  RunOptions &options;
  std::string who; // of several, "rank 3: "
  sigset_t before;
  uint32_t restarts = 0, failuresInARow = 0;
  std::optional<uint64_t> seen; // the newest checkpoint at the last failure
  int asked = 0;                // the signal that asked for the end
};

/// So that rank 0 tells a process that is started again from a second one that
/// was started by mistake (MeetingPlace::supervisor).
void Supervisor::nameIt() {
  std::array<uint64_t, 2> name{};
  if (::getrandom(name.data(), sizeof(name), 0) == sizeof(name))
    ::setenv("MESHWORK_SUPERVISOR",
             absl::StrCat(absl::Hex(name[0]), "-", absl::Hex(name[1])).c_str(),
             1);
}

void Supervisor::say(const std::string &text) const {
  std::fprintf(stderr, "meshwork-run: %s%s\n", who.c_str(),
               printable(text).c_str());
  std::fflush(stderr);
}

std::optional<uint64_t> Supervisor::newestStep() const {
  auto found = runtime::findCheckpoints(options.checkpoint);
  if (!found.ok() || found->complete.empty())
    return std::nullopt;
  return found->complete.front().step;
}

/// The child; nothing in the child itself.
std::optional<pid_t> Supervisor::start(const std::optional<uint64_t> &from) {
  pid_t parent = getpid();
  std::fflush(nullptr);
  pid_t child = fork();
  if (child != 0)
    return child;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent)
    _exit(static_cast<int>(ExitCode::retry));
  sigprocmask(SIG_SETMASK, &before, nullptr);
  options.restarts = 0;
  // Without a new checkpoint it begins once more where it was told to.
  if (restarts > 0 && (from || options.resume.empty()))
    options.resume = "auto";
  return std::nullopt;
}

void Supervisor::passOn(int signal, pid_t child) {
  if (signal != SIGUSR1)
    asked = signal;
  if (child > 0)
    kill(child, signal);
}

/// Until the child has ended, or for so long when it is 0: there is none.
std::optional<Ending> Supervisor::watch(pid_t child, double forSeconds) {
  sigset_t watched = watchedSignals();
  timespec pause{
      static_cast<time_t>(forSeconds),
      static_cast<long>((forSeconds - std::floor(forSeconds)) * 1e9)};
  for (;;) {
    Ending ending;
    if (child > 0 && waitpid(child, &ending.status, WNOHANG) == child)
      return ending;
    int signal = child > 0 ? sigwaitinfo(&watched, nullptr)
                           : sigtimedwait(&watched, nullptr, &pause);
    if (signal > 0 && signal != SIGCHLD)
      passOn(signal, child);
    if (child == 0 && (signal < 0 || asked))
      return std::nullopt;
  }
}

double Supervisor::pauseAfter(const std::optional<uint64_t> &newest) {
  failuresInARow = newest == seen && restarts > 0 ? failuresInARow + 1 : 0;
  seen = newest;
  return failuresInARow == 0
             ? 0
             : std::min(longestPauseS,
                        std::ldexp(firstPauseS, static_cast<int>(std::min(
                                                    failuresInARow, 20u)) -
                                                    1));
}

std::optional<int> Supervisor::run() {
  for (;;) {
    std::optional<uint64_t> newest = newestStep();
    std::optional<pid_t> child = start(newest);
    if (!child)
      return std::nullopt;
    if (*child < 0) {
      say(absl::StrCat("error: cannot start a process: ",
                       std::strerror(errno)));
      return static_cast<int>(ExitCode::noResources);
    }
    Ending ending = *watch(*child, 0);
    if (ending.isFinal())
      return ending.code();
    if (asked) // it failed on the way to its end
      return ending.code();
    if (restarts == options.restarts) {
      say(absl::StrCat("error: the run ", ending.text(), "; all ", restarts,
                       " restarts are used up"));
      return ending.code();
    }
    newest = newestStep();
    watch(0, pauseAfter(newest));
    if (asked)
      return 128 + asked;
    ++restarts;
    say(absl::StrCat("the run ", ending.text(), "; restart ", restarts, " of ",
                     options.restarts, ", ",
                     newest ? absl::StrCat("from step ", *newest, " in ",
                                           quote(options.checkpoint))
                            : std::string("from the beginning: it has left no "
                                          "checkpoint")));
  }
}
} // namespace

/// The launch of ranks as processes; nothing of a run in one, or where its
/// variables are wrong, which the run tells.
static std::optional<runtime::Launch> launchOf(const RunOptions &options) {
  auto launch = runtime::detectLaunch(
      [](const char *name) -> const char * { return std::getenv(name); });
  if (options.transport == RunOptions::Transport::threads || !launch.ok())
    return std::nullopt;
  launch->hasManager |= options.transport == RunOptions::Transport::mpi;
  return launch->isParallel || launch->hasManager ? std::optional(*launch)
                                                  : std::nullopt;
}

std::optional<int> supervise(RunOptions &options) {
  std::optional<runtime::Launch> launch = launchOf(options);
  if (launch && launch->hasManager) {
    std::fputs("meshwork-run: error: --restarts is for a run in one process, "
               "or in processes that find each other without MPI; MPI ends all "
               "of them when one fails: leave --restarts out, and repeat the "
               "launcher's command with --resume auto when it ends with 75\n",
               stderr);
    return static_cast<int>(ExitCode::usage);
  }
  return Supervisor(options, launch).run();
}

bool StopRequests::isSecond() {
  constexpr int64_t nsOfASecond = 1000000000;
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  int64_t ns = now.tv_sec * nsOfASecond + now.tv_nsec, first = 0;
  return !firstNs.compare_exchange_strong(first, ns) &&
         ns - first > nsOfASecond;
}

} // namespace meshwork
