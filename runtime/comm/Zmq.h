// Sockets and messages of ZeroMQ that close themselves.
#pragma once

#include "runtime/comm/ZmqLibrary.h"
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace meshwork::runtime {

/// Keys of CURVE, as text of 40 characters. All ranks of a job have the same
/// pair, made of the job's secret: who does not know it can neither be reached
/// nor read.
struct ZmqKeys {
  std::string open, secret;
};

class ZmqSocket {
public:
  ZmqSocket(const ZmqLibrary &zmq, void *socket) : zmq(&zmq), socket(socket) {}
  ZmqSocket(ZmqSocket &&other) noexcept
      : zmq(other.zmq), socket(std::exchange(other.socket, nullptr)) {}
  ZmqSocket &operator=(ZmqSocket &&other) noexcept {
    std::swap(zmq, other.zmq);
    std::swap(socket, other.socket);
    return *this;
  }
  ~ZmqSocket() { close(); }
  void close() {
    if (socket)
      zmq->close(std::exchange(socket, nullptr));
  }
  void *get() const { return socket; }
  void set(int option, int value) {
    zmq->setsockopt(socket, option, &value, sizeof(value));
  }
  void set(int option, const std::string &text) {
    zmq->setsockopt(socket, option, text.data(), text.size());
  }

private:
  const ZmqLibrary *zmq;
  void *socket;
};

/// A received frame, or one to send.
class ZmqFrame {
public:
  explicit ZmqFrame(const ZmqLibrary &zmq) : zmq(zmq) { zmq.msg_init(&frame); }
  ZmqFrame(const ZmqLibrary &zmq, const void *data, size_t bytes);
  /// Without a copy: `done` is called with `hint` by a thread of ZeroMQ.
  ZmqFrame(const ZmqLibrary &zmq, const void *data, size_t bytes,
           void (*done)(void *data, void *hint), void *hint);
  ZmqFrame(const ZmqFrame &) = delete;
  ~ZmqFrame() { zmq.msg_close(&frame); }

  /// False when there is none.
  bool receive(void *socket);
  /// Never waits. It is empty then.
  bool send(void *socket, bool isLast);
  const char *data() const {
    return static_cast<const char *>(zmq.msg_data(&frame));
  }
  size_t size() const { return zmq.msg_size(&frame); }
  /// Whether the message goes on.
  bool hasMore(void *socket) const;

private:
  const ZmqLibrary &zmq;
  mutable zmq_msg_t frame;
};

class ZmqContext {
public:
  /// For as many sockets as `most`. A connection ends when its other host has
  /// not answered for `timeoutSeconds`.
  ZmqContext(const ZmqLibrary &zmq, std::optional<ZmqKeys> keys, int most,
             double timeoutSeconds)
      : zmq(zmq), keys(std::move(keys)), timeout(timeoutSeconds),
        context(zmq.ctx_new()) {
    zmq.ctx_set(context, ZMQ_MAX_SOCKETS, most);
  }
  ZmqContext(const ZmqContext &) = delete;
  /// All sockets are closed; waits for what they still send.
  ~ZmqContext() { zmq.ctx_term(context); }

  /// Receives from all.
  struct Inbox {
    ZmqSocket socket, doors;
    /// Nobody else can connect; who has stays.
    void close(const ZmqLibrary &zmq);
  };
  /// At a port of these addresses; 0: any that is free, of one address.
  absl::StatusOr<Inbox> listen(const std::set<std::string> &hosts,
                               uint16_t port);
  /// Sends to one, which may come later.
  absl::StatusOr<ZmqSocket> connect(const std::string &endpoint);
  /// Tells of these events of `of`.
  absl::StatusOr<ZmqSocket> monitor(const ZmqSocket &of,
                                    const std::string &name, int events);
  /// Where a socket listens.
  uint16_t portOf(const ZmqSocket &socket) const;

  const ZmqLibrary &zmq;

private:
  absl::StatusOr<ZmqSocket> make(int type);
  void noticeDeadHosts(ZmqSocket &socket) const;
  std::optional<ZmqKeys> keys;
  double timeout;
  void *context;
};

} // namespace meshwork::runtime
