#include "runtime/selftest/MoveChecks.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Text/Counted.h"
#include "runtime/selftest/OddOnesOut.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {
constexpr size_t mostRounds = 256; // of pairs: each takes some 0.1 s

uint32_t axesOf(const MovesToCheck &what) {
  return static_cast<uint32_t>(what.mesh.size());
}

/// "GPUs of two hosts", "two hosts"
std::string with(const std::string &of, const char *where) {
  return of.empty() ? where : absl::StrCat(of, "s of ", where);
}

std::string linkLine(const std::vector<PairLink> &links,
                     const std::string &where) {
  auto [low, high] = std::minmax_element(
      links.begin(), links.end(), [](const PairLink &a, const PairLink &b) {
        return a.bandwidth < b.bandwidth;
      });
  return absl::StrFormat("%s on %s: %.3g to %.3g GB/s",
                         counted(links.size(), "pair"), where,
                         low->bandwidth / 1e9, high->bandwidth / 1e9);
}
} // namespace

std::vector<CollectiveRequest> MovesToCheck::collectives(uint32_t rank) const {
  return collectivesToCheck(rank, Mesh(mesh), axesOf(*this));
}

std::vector<PairRequest> MovesToCheck::pairs(uint32_t rank) const {
  std::vector<PairRequest> all = linksToMeasure(rank, {leaders}, mostRounds);
  for (PairRequest &one : linksToMeasure(rank, hosts, mostRounds))
    all.push_back(std::move(one));
  return all;
}

absl::StatusOr<MovesFound> checkMoves(Transport &transport, uint32_t rank,
                                      const MovesToCheck &what) {
  MovesFound found;
  MESHWORK_ASSIGN_OR_RETURN(
      found.betweenHosts,
      measureLinks(transport, rank, {what.leaders}, mostRounds));
  MESHWORK_ASSIGN_OR_RETURN(
      found.withinHosts, measureLinks(transport, rank, what.hosts, mostRounds));
  MESHWORK_ASSIGN_OR_RETURN(
      found.collectives,
      checkCollectives(transport, rank, Mesh(what.mesh), axesOf(what)));
  return found;
}

std::vector<std::string> MovesFound::lines(const MovesToCheck &tried,
                                           const std::string &of) const {
  std::vector<std::string> all;
  if (!withinHosts.empty())
    all.push_back(linkLine(withinHosts, with(of, "one host")));
  if (!betweenHosts.empty())
    all.push_back(linkLine(betweenHosts, with(of, "two hosts")));
  auto numWrong = std::count_if(
      collectives.begin(), collectives.end(),
      [](const CollectiveCheck &one) { return !one.wrong.empty(); });
  all.push_back(absl::StrCat(
      counted(collectives.size(), "collective"),
      of.empty() ? "" : absl::StrCat(" between ", of, "s"),
      " over the groups of a mesh of ", absl::StrJoin(tried.mesh, " x "), ": ",
      numWrong == 0 ? "all right" : absl::StrCat(numWrong, " wrong")));
  return all;
}

std::vector<std::string> MovesFound::wrong(const MovesToCheck &tried,
                                           const std::string &of) const {
  std::vector<std::string> all;
  for (const CollectiveCheck &one : collectives)
    if (!one.wrong.empty())
      all.push_back(absl::StrCat(
          plan::EnumNameCollectiveKind(one.kind), " of ",
          plan::EnumNameDType(one.dtype), " over ", one.ranks, " ",
          of.empty() ? "rank" : of, "s (axes ", absl::StrJoin(one.axes, ", "),
          " of ", absl::StrJoin(tried.mesh, " x "), "): ", one.wrong));
  return all;
}

std::vector<std::string> MovesFound::slow(const std::string &of) const {
  std::vector<std::string> all = slowLinks(betweenHosts, with(of, "two hosts"));
  for (std::string &one : slowLinks(withinHosts, with(of, "one host")))
    all.push_back(std::move(one));
  return all;
}

} // namespace meshwork::runtime
