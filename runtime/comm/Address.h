// Addresses of this host, and keys for who knows the job's secret.
#pragma once

#include "runtime/comm/Zmq.h"

namespace meshwork::runtime {

/// Whether a name means this host alone.
bool isLoopback(const std::string &host);
/// The address of the loopback that the name of another host seems to be: in
/// /etc/hosts many hosts have such a line for themselves. "" where it is none.
std::string loopbackOf(const std::string &host);
/// For a message: that `host` means the loopback here, and what to do; else "".
std::string loopbackAdvice(const std::string &host);
/// The address by which others that know `host` reach this process: that of the
/// interface that leads there.
absl::StatusOr<std::string> addressTowards(const std::string &host,
                                           uint16_t port);
/// The pair that a secret stands for.
absl::StatusOr<ZmqKeys> keysOf(const ZmqLibrary &zmq,
                               const std::string &secret);

} // namespace meshwork::runtime
