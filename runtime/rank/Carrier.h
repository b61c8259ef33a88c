// What carries messages between the processes of a launch.
#pragma once

#include "meshwork/Runtime/Run.h"
#include "runtime/comm/Launch.h"
#include "runtime/comm/Messages.h"

namespace meshwork::runtime {

/// MPI where its processes find each other by it, else sockets where they know
/// a place to meet. Under an old manager sockets come first: most builds of
/// Open MPI do not know it, and MPI_Init ends the process. `warning` becomes
/// what is to be told of them.
absl::StatusOr<Messages *> carrierOf(const Launch &launch,
                                     const RunOptions &options,
                                     std::string &warning);
/// An error where --interface is given: for a run without sockets.
absl::Status refuseInterface(const RunOptions &options);

} // namespace meshwork::runtime
