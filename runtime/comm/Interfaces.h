// The interface of this host by which others reach it.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include <string>
#include <vector>

namespace meshwork::runtime {

/// One address of an interface; of IPv6 in brackets.
struct Interface {
  std::string name, address;
  bool isLoopback;
};

/// Those that are up, by IPv4 first. Addresses of a link alone are left out.
std::vector<Interface> interfacesHere();

/// The first that `wanted` names, as NCCL_SOCKET_IFNAME does:
///   "eth,ib"   names that begin so
///   "=eth0"    names in full
///   "^docker"  any but these and the loopback; also "^=docker0"
/// Null where none is.
const Interface *chooseInterface(absl::Span<const Interface> all,
                                 const std::string &wanted);

/// The address of the interface that `option` names. Else one of two variables
/// names it:
///   NCCL_SOCKET_IFNAME  in the same form
///   GLOO_SOCKET_IFNAME  names in full
/// Returns "" where nothing is named. An invalidArgument lists the
/// interfaces that there are.
absl::StatusOr<std::string>
interfaceAddress(const std::string &option,
                 absl::FunctionRef<const char *(const char *name)> environment);

} // namespace meshwork::runtime
