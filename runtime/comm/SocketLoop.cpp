// The thread that has the sockets of SocketMessages.
#include "absl/strings/str_cat.h"
#include "runtime/comm/SocketMessages.h"
#include <algorithm>
#include <cstring>
#include <unistd.h>

namespace meshwork::runtime {
namespace {
/// Of a large message: what is copied out of it while more comes.
constexpr size_t partBytes = 256 << 10;
constexpr uint32_t connectionsOfPeer = 2;
} // namespace

void SocketMessages::run() {
  std::vector<zmq_pollitem_t> items = {
      {nullptr, wake, ZMQ_POLLIN, 0},
      {meeting->inbox->socket.get(), 0, ZMQ_POLLIN, 0}};
  std::vector<uint32_t> watched;
  for (uint32_t peer = 0; peer < count; ++peer)
    if (meeting->peers[peer]) {
      items.push_back({meeting->peers[peer]->monitor.get(), 0, ZMQ_POLLIN, 0});
      watched.push_back(peer);
    }
  constexpr long periodMs = 1000;
  while (true) {
    meeting->zmq().poll(items.data(), static_cast<int>(items.size()), periodMs);
    uint64_t times = 0;
    (void)!::read(wake, &times, sizeof(times));
    bool ends = stopping; // before the last look at what is to go out
    takeAll();
    sendAll();
    closeUnreachable();
    for (size_t i = 0; i < watched.size(); ++i)
      if (items[2 + i].revents & ZMQ_POLLIN)
        watch(watched[i]);
    if (ends)
      break;
  }
  constexpr int wellMs = 100, failedMs = 2000; // a goodbye, or why
  meeting->close(endsWell ? wellMs : failedMs);
  std::lock_guard<std::mutex> lock(mutex);
  hasEnded = true; // and nothing of anybody's memory is in use
}

void SocketMessages::sendAll() {
  std::deque<Out> all;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (mayBegin || stopping)
      all.swap(outbox);
  }
  for (Out &out : all)
    sendOne(out);
}

void SocketMessages::sendOne(Out &out) {
  std::optional<Meeting::Peer> &peer = meeting->peers[out.peer];
  const ZmqLibrary &zmq = meeting->zmq();
  if (!peer)
    return;
  if (out.header.kind == WireKind::data)
    return sendData(out, *peer);
  // Offers and small messages of one lane must not overtake each other.
  void *socket = peer->control.get();
  ZmqFrame(zmq, &out.header, sizeof(out.header)).send(socket, false);
  ZmqFrame(zmq, out.content.data(), out.content.size()).send(socket, true);
}

/// Behind what was to be sent to them, which lets its memory go.
void SocketMessages::closeUnreachable() {
  std::vector<uint32_t> all;
  {
    std::lock_guard<std::mutex> lock(mutex);
    all.swap(unreachable);
  }
  for (uint32_t rank : all)
    if (std::optional<Meeting::Peer> &peer = meeting->peers[rank]; peer) {
      peer->data.set(ZMQ_LINGER, 0);
      peer->data.close();
    }
}

/// The request may be gone once its last part is on its way.
void SocketMessages::sendData(const Out &out, const Meeting::Peer &peer) {
  void *socket = peer.data.get();
  if (!socket) { // nobody takes it, and its memory may go
    std::lock_guard<std::mutex> lock(mutex);
    out.request->isMoving = false;
    return moved.notify_all();
  }
  WireHeader header = out.header;
  const std::byte *data = out.request->data;
  size_t bytes = out.request->bytes;
  for (; header.at < bytes; header.at += header.bytes) {
    header.bytes = std::min<size_t>(partBytes, bytes - header.at);
    ZmqFrame(meeting->zmq(), &header, sizeof(header)).send(socket, false);
    ZmqFrame(meeting->zmq(), data + header.at, header.bytes, sent, out.request)
        .send(socket, true);
  }
}

/// By a thread of ZeroMQ, which does not know whose it is.
void SocketMessages::sent(void *data, void *hint) {
  auto *request = static_cast<Request *>(hint);
  auto at = static_cast<size_t>(static_cast<std::byte *>(data) - request->data);
  request->take(std::min(partBytes, request->bytes - at));
}

void SocketMessages::takeAll() {
  while (true) {
    WireHeader from;
    ZmqFrame content(meeting->zmq());
    if (!meeting->receive(from, content))
      return;
    take(from, content);
  }
}

void SocketMessages::take(const WireHeader &from, const ZmqFrame &content) {
  if (from.kind == WireKind::data)
    return takeData(from, content);
  std::lock_guard<std::mutex> lock(mutex);
  switch (from.kind) {
  case WireKind::eager:
  case WireKind::offer:
    return arrive(from, content);
  case WireKind::take: {
    auto found = offered.find(from.number);
    if (found == offered.end() || found->second->peer != from.from)
      return; // given up
    Request *request = found->second;
    offered.erase(found);
    request->isMoving = true;
    return push({request->peer,
                 header(WireKind::data, 0, 0, request->number, request->bytes),
                 {},
                 request});
  }
  case WireKind::notice:
    notices.push_back({from.from, from.tag, {content.data(), content.size()}});
    return noticed.notify_all();
  case WireKind::goodbye:
    saidGoodbye[from.from] = true;
    return;
  case WireKind::ready:
    return addReady();
  case WireKind::go:
    return begin();
  case WireKind::here:
    if (++numHere == connectionsOfPeer * (count - 1))
      meeting->closeDoors();
    return;
  default:
    return;
  }
}

void SocketMessages::arrive(const WireHeader &from, const ZmqFrame &content) {
  bool isOffer = from.kind == WireKind::offer;
  if (!isOffer && content.size() != from.bytes) {
    (void)fail(absl::StrCat("rank ", from.from, " sends ", content.size(),
                            " bytes and says ", from.bytes));
    return;
  }
  Key key{from.from, from.lane, from.tag};
  std::deque<Request *> &requests = asked[key];
  if (requests.empty()) {
    arrived[key].push_back(
        {from.number, from.bytes,
         isOffer ? std::string() : std::string(content.data(), content.size()),
         isOffer});
    return;
  }
  Request *request = requests.front();
  if (from.bytes != request->bytes) {
    (void)fail(absl::StrCat("rank ", from.from, " sends ", from.bytes,
                            " bytes, expected ", request->bytes));
    return;
  }
  requests.pop_front();
  if (isOffer) {
    request->number = from.number;
    expected[{from.from, from.number}] = request;
    return push({from.from, header(WireKind::take, 0, 0, from.number), {}});
  }
  std::memcpy(request->data, content.data(), content.size());
  request->take(content.size());
}

/// Copied without the lock: `isMoving` keeps its memory.
void SocketMessages::takeData(const WireHeader &from, const ZmqFrame &content) {
  Request *request = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = expected.find({from.from, from.number});
    if (found == expected.end())
      return; // given up
    request = found->second;
    size_t left = request->left;
    if (from.at != request->bytes - left || content.size() > left) {
      (void)fail(absl::StrCat("rank ", from.from, " sends ", content.size(),
                              " bytes at ", from.at, " of ", request->bytes));
      return;
    }
    if (content.size() == left)
      expected.erase(found);
    request->isMoving = true;
  }
  std::memcpy(request->data + from.at, content.data(), content.size());
  std::lock_guard<std::mutex> lock(mutex);
  request->isMoving = false;
  request->take(content.size());
  moved.notify_all();
}

/// Stands in front of all that rank 0 sends.
void SocketMessages::addReady() {
  if (++numReady != count)
    return;
  begin();
  for (uint32_t peer = 1; peer < count; ++peer)
    outbox.push_front({peer, header(WireKind::go), {}});
}

/// All know the token of this start.
void SocketMessages::begin() {
  mayBegin = true;
  for (const std::optional<Meeting::Peer> &peer : meeting->peers)
    if (peer)
      for (const ZmqSocket *socket : {&peer->data, &peer->control})
        meeting->sendText(*socket, header(WireKind::here), "");
}

/// The end of a connection that nobody announced is that of a process.
void SocketMessages::watch(uint32_t peer) {
  void *socket = meeting->peers[peer]->monitor.get();
  ZmqFrame event(meeting->zmq()), address(meeting->zmq());
  while (event.receive(socket) && address.receive(socket)) {
    std::lock_guard<std::mutex> lock(mutex);
    if (saidGoodbye[peer] || stopping)
      continue;
    saidGoodbye[peer] = true;
    notices.push_back({peer, gone, ""});
    noticed.notify_all();
  }
}

} // namespace meshwork::runtime
