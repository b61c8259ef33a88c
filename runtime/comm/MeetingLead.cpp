// Rank 0's part of a meeting.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/comm/Address.h"
#include "runtime/comm/Meeting.h"
#include <chrono>
#include <sys/random.h>

namespace meshwork::runtime {
namespace {
using Clock = std::chrono::steady_clock;

std::string named(const std::vector<uint32_t> &ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(ranks, ", "));
}

/// Ranks, other than 0, whose endpoint is as `isSo` says.
std::vector<uint32_t>
ranksWhere(const std::vector<std::string> &endpoints,
           absl::FunctionRef<bool(const std::string &)> isSo) {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 1; rank < endpoints.size(); ++rank)
    if (isSo(endpoints[rank]))
      ranks.push_back(rank);
  return ranks;
}

bool isOnLoopback(const std::string &endpoint) {
  return isLoopback(endpoint.substr(0, endpoint.rfind(':')));
}
} // namespace

/// Who is reached from its own host alone, where others are elsewhere.
absl::Status
Meeting::checkReach(const std::vector<std::string> &endpoints) const {
  std::vector<uint32_t> hidden = ranksWhere(endpoints, isOnLoopback);
  if (isLoopback(place.host) || hidden.empty() ||
      hidden.size() + 1 == endpoints.size())
    return absl::OkStatus();
  auto isElsewhere = [](const std::string &one) { return !isOnLoopback(one); };
  return absl::InvalidArgumentError(absl::StrCat(
      named(hidden),
      " can be reached from the host of rank 0 alone, where "
      "MASTER_ADDR \"",
      place.host,
      "\" means a loopback address (see "
      "/etc/hosts), but ",
      named(ranksWhere(endpoints, isElsewhere)),
      " came from other hosts: set MASTER_ADDR to an address of rank 0's host "
      "that all reach, or name an interface by --interface"));
}

/// Those that came hear why nobody begins.
void Meeting::tellAll(const std::vector<std::string> &endpoints,
                      const absl::Status &why) {
  WireHeader stop = header(WireKind::stop);
  stop.tag = why.raw_code();
  for (size_t i = 1; i < endpoints.size(); ++i)
    if (auto peer = context->connect("tcp://" + endpoints[i]); peer.ok())
      sendText(*peer, stop, std::string(why.message()));
}

/// A rank that is started again takes the place of the process before it.
absl::Status Meeting::admit(const WireHeader &header, const std::string &said,
                            Arrivals &all) const {
  std::pair<std::string, std::string> told =
      absl::StrSplit(said, absl::MaxSplits('\n', 1));
  auto &[endpoint, supervisor] = told;
  std::string &known = all.endpoints[header.from],
              &before = all.supervisors[header.from];
  bool isAgain = !supervisor.empty() && supervisor == before;
  absl::Status wrong;
  if (header.size != place.size)
    wrong = absl::InvalidArgumentError(absl::StrCat(
        "rank ", header.from, " was started as one of ", header.size,
        ", rank 0 as one of ", place.size, ": start all ranks the same way"));
  else if (!known.empty() && !isAgain)
    wrong = absl::InvalidArgumentError(
        absl::StrCat("two processes say that they are rank ", header.from,
                     ": start all ranks once"));
  if (!wrong.ok()) {
    all.endpoints.push_back(endpoint); // is told too
    return wrong;
  }
  known = endpoint;
  before = supervisor;
  return absl::OkStatus();
}

absl::Status Meeting::gather(double timeoutSeconds, Arrivals &all) {
  auto begin = Clock::now();
  auto isMissing = [](const std::string &one) { return one.empty(); };
  while (true) {
    double left = timeoutSeconds -
                  std::chrono::duration<double>(Clock::now() - begin).count();
    std::vector<uint32_t> missing = ranksWhere(all.endpoints, isMissing);
    if (missing.empty())
      return checkReach(all.endpoints);
    if (left <= 0)
      return absl::DeadlineExceededError(absl::StrCat(
          "after ", timeoutSeconds, " s ", named(missing),
          " did not come to rank 0 at ", all.endpoints[0],
          ": did the launcher start them, and do they reach that port?",
          loopbackAdvice(place.host)));
    WireHeader header;
    ZmqFrame content(zmq());
    wait(left);
    if (receive(header, content) && header.kind == WireKind::hello)
      MESHWORK_RETURN_IF_ERROR(
          admit(header, {content.data(), content.size()}, all));
  }
}

absl::Status Meeting::lead(double timeoutSeconds) {
  Arrivals all{std::vector<std::string>(place.size),
               std::vector<std::string>(place.size)};
  std::vector<std::string> &endpoints = all.endpoints;
  endpoints[0] =
      absl::StrCat(place.own.empty() ? place.host : place.own, ":", place.port);
  if (absl::Status came = gather(timeoutSeconds, all); !came.ok()) {
    tellAll(endpoints, came);
    return came;
  }
  if (::getrandom(token.data(), sizeof(token), 0) != sizeof(token))
    return absl::UnavailableError("the system gives no random numbers");
  MESHWORK_RETURN_IF_ERROR(connectAll(endpoints));
  std::string table = absl::StrJoin(endpoints, "\n");
  for (std::optional<Peer> &peer : peers)
    if (peer && !sendText(peer->control, header(WireKind::table), table))
      return zmq().failed("telling ranks where all listen");
  return absl::OkStatus();
}

} // namespace meshwork::runtime
