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
/// returned, and with `options` of a run that is not supervised. A child that
/// takes the place of one that failed resumes from the newest checkpoint. The
/// parent returns when a child has ended well or was asked to end. It also
/// returns when a failure would repeat itself or is for good. Its result is the
/// child's exit code, or 128 plus the signal that killed it.
///
/// Signals that ask a run to end or to save are passed on; the child has the
/// handlers that the caller has installed. When the parent is killed, the child
/// gets SIGTERM.
std::optional<int> supervise(runtime::RunOptions &options);

/// Requests to end a run. A terminal, a batch system, `timeout` and a
/// supervisor each send one request several times, to a process and to its
/// parents who pass it on: what comes within a second is one. For signal
/// handlers.
class StopRequests {
public:
  /// One more signal; whether it is a second request.
  bool isSecond();

private:
  std::atomic<int64_t> firstNs{0}; // 0: there was none
};

} // namespace meshwork
