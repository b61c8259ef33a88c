#include "runtime/comm/Zmq.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include <algorithm>
#include <cstring>
#include <linux/filter.h>
#include <sys/socket.h>

namespace meshwork::runtime {
namespace {
/// Larger messages than any that is sent here are a stranger's.
constexpr int64_t mostBytes = int64_t{1} << 31;
constexpr int handshakeMs = 5000, lingerMs = 2000, mostPending = 64;
} // namespace

ZmqFrame::ZmqFrame(const ZmqLibrary &zmq, const void *data, size_t bytes)
    : zmq(zmq) {
  zmq.msg_init_size(&frame, bytes);
  if (bytes > 0)
    std::memcpy(zmq.msg_data(&frame), data, bytes);
}

ZmqFrame::ZmqFrame(const ZmqLibrary &zmq, const void *data, size_t bytes,
                   void (*done)(void *, void *), void *hint)
    : zmq(zmq) {
  zmq.msg_init_data(&frame, const_cast<void *>(data), bytes, done, hint);
}

bool ZmqFrame::receive(void *socket) {
  return zmq.msg_recv(&frame, socket, ZMQ_DONTWAIT) >= 0;
}

bool ZmqFrame::send(void *socket, bool isLast) {
  return zmq.msg_send(&frame, socket,
                      ZMQ_DONTWAIT | (isLast ? 0 : ZMQ_SNDMORE)) >= 0;
}

bool ZmqFrame::hasMore(void *socket) const {
  int more = 0;
  size_t size = sizeof(more);
  return zmq.getsockopt(socket, ZMQ_RCVMORE, &more, &size) == 0 && more != 0;
}

/// By the system's TCP, not by heartbeats of ZeroMQ: the host of a process that
/// is stopped, or has no core for a while, still answers. World tells of those.
void ZmqContext::noticeDeadHosts(ZmqSocket &socket) const {
  constexpr double leastSeconds = 2, mostSeconds = 86400, probesATimeout = 4;
  double seconds = std::clamp(timeout, leastSeconds, mostSeconds);
  int probeSeconds = std::max(1, static_cast<int>(seconds / probesATimeout));
  socket.set(ZMQ_TCP_KEEPALIVE, 1); // where nothing is sent
  socket.set(ZMQ_TCP_KEEPALIVE_IDLE, probeSeconds);
  socket.set(ZMQ_TCP_KEEPALIVE_INTVL, probeSeconds);
  socket.set(ZMQ_TCP_MAXRT, static_cast<int>(seconds * 1000));
}

absl::StatusOr<ZmqSocket> ZmqContext::make(int type) {
  ZmqSocket socket(zmq, zmq.socket(context, type));
  if (!socket.get())
    return zmq.failed("a socket of ZeroMQ");
  zmq.setsockopt(socket.get(), ZMQ_MAXMSGSIZE, &mostBytes, sizeof(mostBytes));
  socket.set(ZMQ_HANDSHAKE_IVL, handshakeMs);
  socket.set(ZMQ_LINGER, lingerMs);
  socket.set(ZMQ_IPV6, 1);
  noticeDeadHosts(socket);
  // Nothing is lost, and nobody waits: what may be under way is bounded above.
  socket.set(ZMQ_SNDHWM, 0);
  socket.set(ZMQ_RCVHWM, 0);
  if (keys) {
    socket.set(ZMQ_CURVE_SECRETKEY, keys->secret);
    if (type == ZMQ_ROUTER)
      socket.set(ZMQ_CURVE_SERVER, 1);
    socket.set(ZMQ_CURVE_PUBLICKEY, keys->open);
    if (type != ZMQ_ROUTER)
      socket.set(ZMQ_CURVE_SERVERKEY, keys->open);
  }
  return socket;
}

absl::StatusOr<ZmqContext::Inbox>
ZmqContext::listen(const std::set<std::string> &hosts, uint16_t port) {
  absl::StatusOr<ZmqSocket> socket = make(ZMQ_ROUTER);
  MESHWORK_RETURN_IF_ERROR(socket.status());
  socket->set(ZMQ_BACKLOG, mostPending);
  absl::StatusOr<ZmqSocket> doors =
      monitor(*socket, "doors", ZMQ_EVENT_LISTENING);
  MESHWORK_RETURN_IF_ERROR(doors.status());
  for (const std::string &host : hosts) {
    std::string endpoint = absl::StrCat(
        "tcp://", host, ":", port == 0 ? std::string("*") : absl::StrCat(port));
    if (zmq.bind(socket->get(), endpoint.c_str()) != 0)
      return zmq.failed(absl::StrCat("listening at ", endpoint));
  }
  return Inbox{*std::move(socket), *std::move(doors)};
}

/// By a filter that drops all that comes to the sockets that listen, since
/// zmq_unbind would end what they have accepted. Where the system refuses it,
/// the doors stay open.
void ZmqContext::Inbox::close(const ZmqLibrary &zmq) {
  sock_filter dropAll = BPF_STMT(BPF_RET | BPF_K, 0);
  sock_fprog filter{1, &dropAll};
  ZmqFrame event(zmq), address(zmq);
  while (event.receive(doors.get()) && address.receive(doors.get())) {
    int32_t file = -1; // behind the event's number
    std::memcpy(&file, event.data() + sizeof(uint16_t), sizeof(file));
    (void)::setsockopt(file, SOL_SOCKET, SO_ATTACH_FILTER, &filter,
                       sizeof(filter));
  }
}

absl::StatusOr<ZmqSocket> ZmqContext::connect(const std::string &endpoint) {
  absl::StatusOr<ZmqSocket> socket = make(ZMQ_DEALER);
  MESHWORK_RETURN_IF_ERROR(socket.status());
  if (zmq.connect(socket->get(), endpoint.c_str()) != 0)
    return zmq.failed(absl::StrCat("connecting to ", endpoint));
  return socket;
}

absl::StatusOr<ZmqSocket>
ZmqContext::monitor(const ZmqSocket &of, const std::string &name, int events) {
  std::string endpoint = "inproc://" + name;
  if (zmq.socket_monitor(of.get(), endpoint.c_str(), events) != 0)
    return zmq.failed("watching a connection");
  ZmqSocket socket(zmq, zmq.socket(context, ZMQ_PAIR));
  if (!socket.get() || zmq.connect(socket.get(), endpoint.c_str()) != 0)
    return zmq.failed("watching a connection");
  return socket;
}

uint16_t ZmqContext::portOf(const ZmqSocket &socket) const {
  char endpoint[256] = "";
  size_t size = sizeof(endpoint);
  zmq.getsockopt(socket.get(), ZMQ_LAST_ENDPOINT, endpoint, &size);
  const char *colon = std::strrchr(endpoint, ':');
  uint32_t port = 0;
  (void)absl::SimpleAtoi(colon ? colon + 1 : "", &port);
  return static_cast<uint16_t>(port);
}

} // namespace meshwork::runtime
