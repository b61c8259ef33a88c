#include "runtime/comm/Blame.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/comm/Transport.h"
#include <cmath>
#include <deque>

namespace meshwork::runtime {
namespace {
using Clock = std::chrono::steady_clock;
/// A wait shorter than this is not worth telling anybody about.
constexpr auto worthTelling = std::chrono::milliseconds(100);

std::string doing(const Waiting &its) {
  return absl::StrCat("waits for nobody: ",
                      its.what.empty() ? "it computes, or is caught in a loop"
                                       : its.what);
}
} // namespace

absl::Status
blame(uint32_t me, uint32_t count, const Waiting &mine, double seconds,
      absl::FunctionRef<std::optional<Waiting>(uint32_t rank)> ask) {
  // Who is waited for, and at what.
  std::deque<std::pair<uint32_t, std::string>> suspects;
  std::string time = absl::StrCat(std::round(seconds * 10) / 10, " s");
  std::vector<bool> known(count, false);
  known[me] = true;
  std::vector<std::string> guilty, waiting;
  bool forFiles = false;
  auto follow = [&](uint32_t rank, const Waiting &its) {
    waiting.push_back(absl::StrCat("rank ", rank, " at ", its.what));
    for (uint32_t peer : its.peers)
      if (peer < count && !known[peer]) {
        suspects.push_back({peer, its.what});
        known[peer] = true;
      }
  };
  if (!mine.active)
    guilty.push_back(
        absl::StrCat("rank ", me, ", for ", time, ", ", doing(mine)));
  else
    follow(me, mine);
  for (; !suspects.empty(); suspects.pop_front()) {
    auto [peer, at] = suspects.front();
    std::optional<Waiting> answer = ask(peer);
    if (answer && answer->active)
      follow(peer, *answer);
    else if (answer && answer->usesFiles)
      forFiles = true;
    else
      guilty.push_back(absl::StrCat(
          "rank ", peer, " did not arrive at ", at, " within ", time, " and ",
          answer ? doing(*answer)
                 : "does not answer: it is stopped, or cut off"));
  }
  if (guilty.empty() && forFiles)
    return absl::OkStatus();
  if (guilty.empty())
    guilty.push_back(absl::StrCat("ranks wait for each other longer than ",
                                  time, ": ", absl::StrJoin(waiting, ", ")));
  return absl::DeadlineExceededError(absl::StrJoin(guilty, "; "));
}

PeerWait::PeerWait(Transport &host, uint32_t rank, const Waiting &waiting)
    : host(host), rank(rank), waiting(waiting), begin(Clock::now()) {
  this->waiting.active = !waiting.peers.empty();
}

PeerWait::~PeerWait() {
  if (told)
    host.setWaiting(rank, {});
}

absl::Status PeerWait::check(double seconds) {
  auto waited = Clock::now() - begin;
  if (!told && waited > worthTelling) {
    host.setWaiting(rank, waiting);
    told = true;
  }
  if (std::chrono::duration<double>(waited).count() <= seconds)
    return absl::OkStatus();
  // Peers whose time is up as well ask until they hear of the failure.
  host.setWaiting(rank, waiting);
  absl::Status status = host.blame(rank, waiting, seconds);
  told = status.ok();
  begin = Clock::now();
  return status;
}

} // namespace meshwork::runtime
