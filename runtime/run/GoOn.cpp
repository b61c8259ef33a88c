#include "runtime/run/GoOn.h"
#include "absl/strings/str_cat.h"
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Text/Escape.h"
#include "runtime/base/StartThread.h"
#include "runtime/checkpoint/Checkpoint.h"
#include <chrono>
#include <cstdio>

namespace meshwork::runtime {
namespace {
constexpr std::chrono::milliseconds watchEvery(50);

std::string whereToGoOn(const RunOptions &options) {
  auto found = findCheckpoints(options.checkpoint);
  return !found.ok() || found->complete.empty()
             ? absl::StrCat("there is no checkpoint in ",
                            quote(options.checkpoint), " yet")
             : absl::StrCat("go on from step ", found->complete[0].step,
                            " with --resume ", quote(found->complete[0].path));
}
} // namespace

absl::Status withCheckpoint(absl::Status failure, const RunOptions &options) {
  if (options.checkpoint.empty() || isToldElsewhere(failure))
    return failure;
  return withExitCode(
      absl::Status(failure.code(),
                   absl::StrCat(failure.message(), "; ", whereToGoOn(options))),
      static_cast<ExitCode>(exitCodeOf(failure)));
}

TellAtStop::TellAtStop(const RunOptions &options, bool isOn)
    : options(options) {
  if (isOn && options.stop && !options.checkpoint.empty())
    (void)startThread(thread, [this] { watch(); }); // Without it less is told.
}

TellAtStop::~TellAtStop() {
  isOver = true;
  if (thread.joinable())
    thread.join();
}

void TellAtStop::watch() const {
  while (!isOver && options.stop->load() == 0)
    std::this_thread::sleep_for(watchEvery);
  if (isOver)
    return;
  std::fprintf(stderr,
               "meshwork-run: asked to end: saves after this step. If a rank "
               "has died it cannot: %s\n",
               printable(whereToGoOn(options)).c_str());
  std::fflush(stderr);
}

} // namespace meshwork::runtime
