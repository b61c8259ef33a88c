// Addresses of this host, and keys for who knows the job's secret.
#pragma once

#include "runtime/comm/Zmq.h"

namespace meshwork::runtime {

/// Whether a name means this host alone.
bool isLoopback(const std::string &host);
/// The address by which others that know `host` reach this process: that of the
/// interface that leads there.
absl::StatusOr<std::string> addressTowards(const std::string &host,
                                           uint16_t port);
/// The pair that a secret stands for.
absl::StatusOr<ZmqKeys> keysOf(const ZmqLibrary &zmq,
                               const std::string &secret);

} // namespace meshwork::runtime
