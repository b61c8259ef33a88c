// The functions of libzmq that are used, found at run time: nothing links it,
// so that one build runs where there is none.
#pragma once

#include "absl/status/statusor.h"
#include <string>
#include <zmq.h>

namespace meshwork::runtime {

struct ZmqLibrary {
#define MESHWORK_ZMQ_FUNCTIONS(F)                                              \
  F(bind)                                                                      \
  F(close)                                                                     \
  F(connect)                                                                   \
  F(ctx_new)                                                                   \
  F(ctx_set)                                                                   \
  F(ctx_term)                                                                  \
  F(curve_public)                                                              \
  F(getsockopt)                                                                \
  F(has)                                                                       \
  F(msg_close)                                                                 \
  F(msg_data)                                                                  \
  F(msg_init)                                                                  \
  F(msg_init_data)                                                             \
  F(msg_init_size)                                                             \
  F(msg_recv)                                                                  \
  F(msg_send)                                                                  \
  F(msg_size)                                                                  \
  F(poll)                                                                      \
  F(setsockopt)                                                                \
  F(socket)                                                                    \
  F(socket_monitor)                                                            \
  F(strerror)                                                                  \
  F(z85_encode)
#define MESHWORK_ZMQ_MEMBER(name) decltype(&::zmq_##name) name;
  MESHWORK_ZMQ_FUNCTIONS(MESHWORK_ZMQ_MEMBER)
#undef MESHWORK_ZMQ_MEMBER
  decltype(&::zmq_errno) error; // `errno` is a macro

  /// Opened once for the life of the process. failedPrecondition tells what is
  /// missing.
  static absl::StatusOr<const ZmqLibrary *> open();
  /// unavailable, with the library's reason, for what was tried.
  absl::Status failed(const std::string &what) const;
};

} // namespace meshwork::runtime
