// Exit codes of the tools (sysexits), and how a Status carries one.
//
//   absl::Status status = meshwork::runtime::run(options);
//   return meshwork::runtime::exitCodeOf(status);
#pragma once

#include "absl/status/status.h"

namespace meshwork::runtime {

enum class ExitCode : int {
  ok = 0,
  usage = 64,
  badData = 65,     // a plan, weights or tokens that cannot be used
  noInput = 66,     // a file that is missing or cannot be read
  unavailable = 69, // this machine lacks what the plan needs
  internal = 70,
  noResources = 71,  // memory, threads
  cannotCreate = 73, // an output that cannot be opened
  inputOutput = 74,  // a write that failed later
  retry = 75,        // a peer failed or did not arrive
  config = 78,       // ranks were not started as the plan needs
  // A signal ended the run, 128 + its number: after the step in progress and
  // with everything written, or at once when it was the second.
  hungUp = 129,
  interrupted = 130,
  terminated = 143
};

/// The code a process should exit with for `status`: the one attached by
/// `withExitCode`. Without one, the kind of the error decides (invalidArgument:
/// 64; dataLoss, outOfRange: 65; notFound, permissionDenied: 66;
/// failedPrecondition: 69; resourceExhausted: 71; aborted, unavailable,
/// deadlineExceeded: 75; everything else: 70).
int exitCodeOf(const absl::Status &status);

/// `status` with `code` attached; an ok status stays as it is.
absl::Status withExitCode(absl::Status status, ExitCode code);

/// `status` of a rank that stops because another one failed, which tells the
/// user; this one exits with the other's `code` and says nothing.
absl::Status toldElsewhere(absl::Status status, int code);
bool isToldElsewhere(const absl::Status &status);

} // namespace meshwork::runtime
