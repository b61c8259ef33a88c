#include "runtime/comm/Meeting.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/comm/Address.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <sys/random.h>
#include <sys/resource.h>

namespace meshwork::runtime {
namespace {
using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Each socket and each connection is a file.
void allowManyFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

} // namespace

absl::StatusOr<std::unique_ptr<Meeting>>
Meeting::start(const MeetingPlace &place, double timeoutSeconds) {
  const ZmqLibrary *zmq = nullptr;
  MESHWORK_ASSIGN_OR_RETURN(zmq, ZmqLibrary::open());
  std::optional<ZmqKeys> keys;
  if (place.secret)
    MESHWORK_ASSIGN_OR_RETURN(keys, keysOf(*zmq, *place.secret));
  auto meeting = std::make_unique<Meeting>();
  meeting->place = place;
  constexpr int ofPeer = 4, others = 16; // with what a monitor has itself
  allowManyFiles();
  meeting->context = std::make_unique<ZmqContext>(
      *zmq, std::move(keys), ofPeer * static_cast<int>(place.size) + others,
      timeoutSeconds);
  meeting->peers.resize(place.size);
  MESHWORK_RETURN_IF_ERROR(meeting->listen());
  MESHWORK_RETURN_IF_ERROR(place.rank == 0 ? meeting->lead(timeoutSeconds)
                                           : meeting->join(timeoutSeconds));
  return meeting;
}

absl::StatusOr<std::string> Meeting::ownAddress() const {
  return place.own.empty() ? addressTowards(place.host, place.port) : place.own;
}

/// Where rank 0 is on the loopback, nobody else is reached from elsewhere.
absl::StatusOr<std::set<std::string>> Meeting::doors() const {
  bool isFirst = place.rank == 0, isSix = absl::StartsWith(place.host, "[");
  std::string loopback = isSix ? "[::1]" : "127.0.0.1";
  if (isLoopback(place.host))
    return std::set<std::string>{isFirst ? place.host : loopback};
  if (place.own.empty())
    return std::set<std::string>{"*"};
  std::set<std::string> all{place.own};
  if (isFirst) { // where it is looked for
    std::string known = loopbackOf(place.host);
    if (known.empty())
      MESHWORK_ASSIGN_OR_RETURN(known, addressTowards(place.host, place.port));
    all.insert(known);
  }
  return all;
}

absl::Status Meeting::listen() {
  std::set<std::string> all;
  MESHWORK_ASSIGN_OR_RETURN(all, doors());
  absl::StatusOr<ZmqContext::Inbox> listening =
      context->listen(all, place.rank == 0 ? place.port : 0);
  if (!listening.ok())
    return place.rank == 0
               ? absl::FailedPreconditionError(absl::StrCat(
                     listening.status().message(),
                     "; choose another port by MASTER_PORT or MESHWORK_PORT"))
               : listening.status();
  inbox = *std::move(listening);
  return absl::OkStatus();
}

WireHeader Meeting::header(WireKind kind) const {
  return {
      WireHeader::magicNumber, kind, token, place.rank, 0, 0, place.size, 0, 0};
}

bool Meeting::sendText(const ZmqSocket &to, const WireHeader &header,
                       const std::string &text) const {
  return ZmqFrame(zmq(), &header, sizeof(header)).send(to.get(), false) &&
         ZmqFrame(zmq(), text.data(), text.size()).send(to.get(), true);
}

/// Or for a second: who calls it looks again.
bool Meeting::wait(double seconds) {
  zmq_pollitem_t item{inbox->socket.get(), 0, ZMQ_POLLIN, 0};
  long ms = static_cast<long>(std::clamp(seconds, 0.0, 1.0) * 1000);
  return zmq().poll(&item, 1, ms) > 0;
}

bool Meeting::receive(WireHeader &header, ZmqFrame &content) {
  void *socket = inbox->socket.get();
  while (true) {
    ZmqFrame sender(zmq()), first(zmq()), rest(zmq());
    if (!sender.receive(socket))
      return false;
    int frames = 0; // behind that of ZeroMQ
    for (bool more = sender.hasMore(socket); more; ++frames) {
      ZmqFrame &into = frames == 0 ? first : frames == 1 ? content : rest;
      into.receive(socket);
      more = into.hasMore(socket);
    }
    if (frames != 2 || first.size() != sizeof(header))
      continue; // a stranger's
    std::memcpy(&header, first.data(), sizeof(header));
    bool isOurs = header.magic == WireHeader::magicNumber &&
                  header.from < place.size && header.from != place.rank;
    bool isFirst = header.kind == WireKind::hello ||
                   header.kind == WireKind::table ||
                   header.kind == WireKind::stop;
    if (isOurs && (isFirst || header.token == token))
      return true;
  }
}

absl::Status Meeting::join(double timeoutSeconds) {
  std::string first = absl::StrCat(place.host, ":", place.port), own;
  MESHWORK_ASSIGN_OR_RETURN(own, ownAddress());
  absl::StatusOr<ZmqSocket> door = context->connect("tcp://" + first);
  MESHWORK_RETURN_IF_ERROR(door.status());
  if (!sendText(*door, header(WireKind::hello),
                absl::StrCat(own, ":", context->portOf(inbox->socket), "\n",
                             place.supervisor)))
    return zmq().failed("telling rank 0 where this rank listens");
  auto begin = Clock::now();
  for (double left = timeoutSeconds; left > 0;
       left = timeoutSeconds - secondsSince(begin)) {
    WireHeader header;
    ZmqFrame content(zmq());
    wait(left);
    if (!receive(header, content) || header.from != 0)
      continue;
    std::string text(content.data(), content.size());
    if (header.kind == WireKind::stop)
      return absl::Status(
          static_cast<absl::StatusCode>(std::clamp(header.tag, 1, 16)),
          "rank 0 tells: " + text);
    std::vector<std::string> endpoints = absl::StrSplit(text, '\n');
    if (header.kind != WireKind::table || endpoints.size() != place.size)
      continue;
    token = header.token;
    MESHWORK_RETURN_IF_ERROR(connectAll(endpoints));
    if (!sendText(peers[0]->control, this->header(WireKind::ready), ""))
      return zmq().failed("telling rank 0 that this rank is ready");
    return absl::OkStatus();
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "rank ", place.rank, " has waited ", timeoutSeconds, " s for rank 0 at ",
      first, ": is MASTER_ADDR its host, does this host reach that port, and ",
      "has every rank the same secret (MESHWORK_SECRET)?",
      loopbackAdvice(place.host)));
}

absl::Status Meeting::connectAll(const std::vector<std::string> &endpoints) {
  for (uint32_t rank = 0; rank < place.size; ++rank) {
    if (rank == place.rank)
      continue;
    std::string endpoint = "tcp://" + endpoints[rank];
    absl::StatusOr<ZmqSocket> data = context->connect(endpoint);
    MESHWORK_RETURN_IF_ERROR(data.status());
    absl::StatusOr<ZmqSocket> control = context->connect(endpoint);
    MESHWORK_RETURN_IF_ERROR(control.status());
    absl::StatusOr<ZmqSocket> monitor = context->monitor(
        *control, absl::StrCat("rank-", rank), ZMQ_EVENT_DISCONNECTED);
    MESHWORK_RETURN_IF_ERROR(monitor.status());
    peers[rank] =
        Peer{*std::move(data), *std::move(control), *std::move(monitor)};
  }
  return absl::OkStatus();
}

void Meeting::close(int lingerMs) {
  for (std::optional<Peer> &peer : peers)
    if (peer)
      peer->control.set(ZMQ_LINGER, lingerMs);
  peers.clear();
  inbox.reset();
  context.reset();
}

} // namespace meshwork::runtime
