#include "runtime/comm/SocketMessages.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/base/StartThread.h"
#include <algorithm>
#include <cstring>
#include <sys/eventfd.h>
#include <unistd.h>

namespace meshwork::runtime {
namespace {
/// Larger ones are offered first.
constexpr size_t mostEager = 16 << 10;
/// One part of a message: less than Zmq.cpp allows.
constexpr size_t mostAtOnce = size_t{1} << 30;
} // namespace

absl::StatusOr<Messages *> SocketMessages::start(const MeetingPlace &place,
                                                 double timeoutSeconds) {
  std::unique_ptr<Meeting> meeting;
  MESHWORK_ASSIGN_OR_RETURN(meeting, Meeting::start(place, timeoutSeconds));
  auto *messages = new SocketMessages(std::move(meeting));
  MESHWORK_RETURN_IF_ERROR(
      startThread(messages->thread, [messages] { messages->run(); }));
  return messages;
}

SocketMessages::SocketMessages(std::unique_ptr<Meeting> met)
    : meeting(std::move(met)), me(meeting->place.rank),
      count(meeting->place.size),
      wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), saidGoodbye(count) {}

WireHeader SocketMessages::header(WireKind kind, uint32_t lane, int tag,
                                  uint64_t number, size_t bytes) const {
  WireHeader made = meeting->header(kind);
  made.lane = lane, made.tag = tag, made.number = number, made.bytes = bytes;
  return made;
}

void SocketMessages::push(Out out) {
  outbox.push_back(std::move(out));
  ring();
}

void SocketMessages::ring() {
  uint64_t one = 1;
  (void)!::write(wake, &one, sizeof(one));
}

absl::Status SocketMessages::fail(std::string why) {
  if (broken.ok())
    broken = absl::InternalError(std::move(why));
  return broken;
}

absl::Status SocketMessages::send(uint32_t lane, uint32_t peer,
                                  const void *data, size_t bytes,
                                  std::vector<Pending> &pending, int tag) {
  auto *from = static_cast<std::byte *>(const_cast<void *>(data));
  for (size_t at = 0; at < bytes; at += mostAtOnce)
    MESHWORK_RETURN_IF_ERROR(sendPart({peer, lane, tag}, from + at,
                                      std::min(mostAtOnce, bytes - at),
                                      pending));
  return absl::OkStatus();
}

absl::Status SocketMessages::sendPart(const Key &key, std::byte *data,
                                      size_t bytes,
                                      std::vector<Pending> &pending) {
  auto [peer, lane, tag] = key;
  std::lock_guard<std::mutex> lock(mutex);
  if (bytes <= mostEager) {
    push({peer, header(WireKind::eager, lane, tag, 0, bytes),
          std::string(reinterpret_cast<const char *>(data), bytes)});
    return absl::OkStatus();
  }
  auto *request = new Request{peer, data, bytes, next++};
  offered[request->number] = request;
  pending.push_back({request, peer, false});
  push({peer, header(WireKind::offer, lane, tag, request->number, bytes), {}});
  return absl::OkStatus();
}

absl::Status SocketMessages::receive(uint32_t lane, uint32_t peer, void *data,
                                     size_t bytes,
                                     std::vector<Pending> &pending, int tag) {
  auto *to = static_cast<std::byte *>(data);
  for (size_t at = 0; at < bytes; at += mostAtOnce)
    MESHWORK_RETURN_IF_ERROR(receivePart(
        {peer, lane, tag}, to + at, std::min(mostAtOnce, bytes - at), pending));
  return absl::OkStatus();
}

absl::Status SocketMessages::receivePart(const Key &key, std::byte *data,
                                         size_t bytes,
                                         std::vector<Pending> &pending) {
  uint32_t peer = std::get<0>(key);
  std::lock_guard<std::mutex> lock(mutex);
  std::deque<Arrival> &waiting = arrived[key];
  if (waiting.empty()) {
    auto *request = new Request{peer, data, bytes, 0};
    asked[key].push_back(request);
    pending.push_back({request, peer, true});
    return absl::OkStatus();
  }
  Arrival first = std::move(waiting.front());
  waiting.pop_front();
  if (first.bytes != bytes)
    return fail(absl::StrCat("rank ", peer, " sends ", first.bytes,
                             " bytes, expected ", bytes));
  if (!first.isOffer) {
    std::memcpy(data, first.content.data(), bytes);
    return absl::OkStatus();
  }
  auto *request = new Request{peer, data, bytes, first.number};
  expected[{peer, first.number}] = request;
  pending.push_back({request, peer, true});
  push({peer, header(WireKind::take, 0, 0, first.number), {}});
  return absl::OkStatus();
}

absl::Status SocketMessages::poll(std::vector<Pending> &pending) {
  for (size_t i = pending.size(); i-- > 0;) {
    auto *request = static_cast<Request *>(pending[i].request);
    if (!request->isDone())
      continue;
    delete request;
    pending[i] = pending.back();
    pending.pop_back();
  }
  if (pending.empty())
    return absl::OkStatus();
  std::lock_guard<std::mutex> lock(mutex);
  return broken;
}

/// What is being written or read is awaited: of a peer that takes nothing more
/// the socket is closed, which lets its memory go.
void SocketMessages::giveUp(std::vector<Pending> &pending) {
  std::unique_lock<std::mutex> lock(mutex);
  for (Pending &one : pending) {
    auto *request = static_cast<Request *>(one.request);
    std::erase_if(offered, [&](auto &at) { return at.second == request; });
    std::erase_if(expected, [&](auto &at) { return at.second == request; });
    for (auto &[key, requests] : asked)
      std::erase(requests, request);
    if (request->isMoving && !request->isDone() && !one.receives)
      unreachable.push_back(one.peer), ring();
    // A thread of ZeroMQ tells nobody that it is done.
    while (request->isMoving && !request->isDone() && !hasEnded)
      moved.wait_for(lock, std::chrono::milliseconds(1));
    delete request;
  }
  pending.clear();
}

void SocketMessages::post(uint32_t peer, int tag, std::string text) {
  std::lock_guard<std::mutex> lock(mutex);
  push({peer, header(WireKind::notice, 0, tag), std::move(text)});
}

absl::StatusOr<std::optional<Messages::Notice>>
SocketMessages::nextNotice(std::chrono::microseconds patience) {
  std::unique_lock<std::mutex> lock(mutex);
  noticed.wait_for(lock, patience, [&] { return !notices.empty(); });
  if (notices.empty())
    return std::nullopt;
  Notice first = std::move(notices.front());
  notices.pop_front();
  return first;
}

void SocketMessages::finish() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (uint32_t peer = 0; peer < count; ++peer)
      if (peer != me)
        push({peer, header(WireKind::goodbye), {}});
    endsWell = true;
  }
  end();
}

/// What was posted still leaves. Without a goodbye: others find that this
/// process has ended.
void SocketMessages::abort(int code) {
  end();
  ::_exit(code);
}

void SocketMessages::end() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
    ring();
  }
  thread.join();
}

} // namespace meshwork::runtime
