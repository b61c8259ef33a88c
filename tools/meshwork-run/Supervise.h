// --restarts: a run that is started again when it fails.
//
//   if (options.restarts > 0)
//     if (std::optional<int> code = supervise(options))
//       return *code; // in the process that watches
//   ... run(options), in its child ...
#pragma once

#include "meshwork/Runtime/Run.h"

namespace meshwork {

/// Forks; to be called before there are threads. The child goes on with nothing
/// returned, and with `options` of a run that is not supervised; a child that
/// takes the place of one that failed resumes from the newest checkpoint. The
/// parent returns when a child has ended well, was asked to end, failed in a
/// way that would repeat itself, or failed for good: with its exit code, or 128
/// + the signal that killed it.
///
/// Signals that ask a run to end or to save are passed on; the child has the
/// handlers that the caller has installed. When the parent is killed, the child
/// gets SIGTERM.
std::optional<int> supervise(runtime::RunOptions &options);

/// How often a run was asked to end, by signals to it and by those that its
/// supervisor passed on. A signal to both, as of a terminal or a batch system,
/// is one request. For signal handlers.
class StopRequests {
public:
  /// One more, from process `sender`; how many that makes.
  int add(int sender);

private:
  std::atomic<int> direct{0}, passedOn{0};
};

} // namespace meshwork
