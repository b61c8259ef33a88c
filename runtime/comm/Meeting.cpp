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

bool sendText(const ZmqLibrary &zmq, const ZmqSocket &to,
              const WireHeader &header, const std::string &text) {
  return ZmqFrame(zmq, &header, sizeof(header)).send(to.get(), false) &&
         ZmqFrame(zmq, text.data(), text.size()).send(to.get(), true);
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
    std::string known;
    MESHWORK_ASSIGN_OR_RETURN(known, addressTowards(place.host, place.port));
    all.insert(known);
  }
  return all;
}

absl::Status Meeting::listen() {
  std::set<std::string> all;
  MESHWORK_ASSIGN_OR_RETURN(all, doors());
  absl::StatusOr<ZmqSocket> socket =
      context->listen(all, place.rank == 0 ? place.port : 0);
  if (!socket.ok())
    return place.rank == 0
               ? absl::FailedPreconditionError(absl::StrCat(
                     socket.status().message(),
                     "; choose another port by MASTER_PORT or MESHWORK_PORT"))
               : socket.status();
  inbox = *std::move(socket);
  return absl::OkStatus();
}

WireHeader Meeting::header(WireKind kind) const {
  return {
      WireHeader::magicNumber, kind, token, place.rank, 0, 0, place.size, 0, 0};
}

/// Or for a second: who calls it looks again.
bool Meeting::wait(double seconds) {
  zmq_pollitem_t item{inbox->get(), 0, ZMQ_POLLIN, 0};
  long ms = static_cast<long>(std::clamp(seconds, 0.0, 1.0) * 1000);
  return zmq().poll(&item, 1, ms) > 0;
}

bool Meeting::receive(WireHeader &header, ZmqFrame &content) {
  void *socket = inbox->get();
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

std::string Meeting::missing(const std::vector<std::string> &endpoints) const {
  std::vector<std::string> ranks;
  for (uint32_t rank = 1; rank < place.size; ++rank)
    if (endpoints[rank].empty())
      ranks.push_back(absl::StrCat(rank));
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(ranks, ", "));
}

/// Those that came hear why nobody begins.
void Meeting::tellAll(const std::vector<std::string> &endpoints,
                      const absl::Status &why) {
  WireHeader stop = header(WireKind::stop);
  stop.tag = why.raw_code();
  for (size_t i = 1; i < endpoints.size(); ++i)
    if (auto peer = context->connect("tcp://" + endpoints[i]); peer.ok())
      sendText(zmq(), *peer, stop, std::string(why.message()));
}

absl::Status Meeting::gather(double timeoutSeconds,
                             std::vector<std::string> &endpoints) {
  auto begin = Clock::now();
  for (uint32_t here = 1; here < place.size;) {
    double left = timeoutSeconds - secondsSince(begin);
    if (left <= 0)
      return absl::DeadlineExceededError(absl::StrCat(
          "after ", timeoutSeconds, " s ", missing(endpoints),
          " did not come to rank 0 at ", endpoints[0],
          ": did the launcher start them, and do they reach that port?"));
    WireHeader header;
    ZmqFrame content(zmq());
    wait(left);
    if (!receive(header, content) || header.kind != WireKind::hello)
      continue;
    std::string endpoint(content.data(), content.size());
    bool isNew = endpoints[header.from].empty();
    if (!isNew || header.size != place.size)
      endpoints.push_back(endpoint); // is told too
    if (header.size != place.size)
      return absl::InvalidArgumentError(absl::StrCat(
          "rank ", header.from, " was started as one of ", header.size,
          ", rank 0 as one of ", place.size, ": start all ranks the same way"));
    if (!isNew)
      return absl::InvalidArgumentError(
          absl::StrCat("two processes say that they are rank ", header.from,
                       ": start all ranks once"));
    endpoints[header.from] = std::move(endpoint);
    ++here;
  }
  return absl::OkStatus();
}

absl::Status Meeting::lead(double timeoutSeconds) {
  std::vector<std::string> endpoints(place.size);
  endpoints[0] =
      absl::StrCat(place.own.empty() ? place.host : place.own, ":", place.port);
  if (absl::Status came = gather(timeoutSeconds, endpoints); !came.ok()) {
    tellAll(endpoints, came);
    return came;
  }
  if (::getrandom(token.data(), sizeof(token), 0) != sizeof(token))
    return absl::UnavailableError("the system gives no random numbers");
  MESHWORK_RETURN_IF_ERROR(connectAll(endpoints));
  std::string table = absl::StrJoin(endpoints, "\n");
  for (std::optional<Peer> &peer : peers)
    if (peer && !sendText(zmq(), peer->control, header(WireKind::table), table))
      return zmq().failed("telling ranks where all listen");
  return absl::OkStatus();
}

absl::Status Meeting::join(double timeoutSeconds) {
  std::string first = absl::StrCat(place.host, ":", place.port), own;
  MESHWORK_ASSIGN_OR_RETURN(own, ownAddress());
  absl::StatusOr<ZmqSocket> door = context->connect("tcp://" + first);
  MESHWORK_RETURN_IF_ERROR(door.status());
  if (!sendText(zmq(), *door, header(WireKind::hello),
                absl::StrCat(own, ":", context->portOf(*inbox))))
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
    if (!sendText(zmq(), peers[0]->control, this->header(WireKind::ready), ""))
      return zmq().failed("telling rank 0 that this rank is ready");
    return absl::OkStatus();
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "rank ", place.rank, " has waited ", timeoutSeconds, " s for rank 0 at ",
      first, ": is MASTER_ADDR its host, does this host reach that port, and ",
      "has every rank the same secret (MESHWORK_SECRET)?"));
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
    absl::StatusOr<ZmqSocket> monitor =
        context->monitor(*control, absl::StrCat("rank-", rank));
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
