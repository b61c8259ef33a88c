#include "tools/meshwork/tune/Meter.h"

#include "lib/Explain/Estimate.h"
#include "llvm/Support/Process.h"

#include <csignal>
#include <cstdio>
#include <string>

namespace meshwork::tune {
namespace {

volatile std::sig_atomic_t wasInterrupted = 0;
void onInterrupt(int) { wasInterrupted = 1; }

/// Without SA_RESTART: what waits shall look.
void setHandler(void (*handler)(int)) {
  struct sigaction before = {}, action = {};
  sigaction(SIGINT, nullptr, &before);
  if (before.sa_handler == SIG_IGN)
    return;
  action.sa_handler = handler;
  sigaction(SIGINT, &action, nullptr);
}
} // namespace

Meter::Meter() : isTerminal(llvm::sys::Process::StandardErrIsDisplayed()) {
  wasInterrupted = 0;
  setHandler(onInterrupt);
}

Meter::~Meter() {
  clear();
  setHandler(SIG_DFL);
}

bool Meter::isInterrupted() const { return wasInterrupted != 0; }

void Meter::tell(size_t done, size_t all, double seconds) {
  auto now = std::chrono::steady_clock::now();
  if (!isTerminal || now - last < std::chrono::milliseconds(200))
    return;
  last = now;
  constexpr size_t width = 30;
  size_t filled = all == 0 ? 0 : width * done / all;
  std::string bar = std::string(filled, '#') + std::string(width - filled, '.');
  std::fprintf(
      stderr, "\r[%s] %zu of %zu specs%s   ", bar.c_str(), done, all,
      seconds > 0 ? (", best " + explain::timeText(seconds) + " a step").c_str()
                  : "");
  std::fflush(stderr);
  isShown = true;
}

void Meter::clear() {
  if (isShown)
    std::fprintf(stderr, "\r\033[K");
  isShown = false;
}

} // namespace meshwork::tune
