#include "tools/meshwork-run/Signals.h"

#include "tools/meshwork-run/Supervise.h"

#include <csignal>
#include <unistd.h>

namespace meshwork {
namespace {

std::atomic<int> stopSignal{0};
meshwork::StopRequests stopRequests;

/// First request: end after this step. Second: end now.
void onSignal(int signal) {
  int none = 0;
  stopSignal.compare_exchange_strong(none, signal);
  if (stopRequests.isSecond())
    _exit(128 + signal);
}

std::atomic<int> saveRequests{0};

} // namespace

void handleSignals() {
  struct sigaction save = {};
  save.sa_handler = [](int) { ++saveRequests; };
  save.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &save, nullptr);
  struct sigaction action = {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction before = {};
  sigaction(SIGHUP, &action, &before);
  if (before.sa_handler == SIG_IGN) // by nohup
    signal(SIGHUP, SIG_IGN);
  // Writing to a closed pipe, or past the largest size of a file, is an error
  // of that call. It must not kill a run that has weights to save.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

void listenTo(runtime::RunOptions &options) {
  options.stop = &stopSignal;
  options.saveNow = &saveRequests;
}

} // namespace meshwork
