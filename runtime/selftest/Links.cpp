#include "runtime/selftest/Links.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/machine/Clock.h"
#include <algorithm>
#include <sstream>

namespace meshwork::runtime {
namespace {
constexpr size_t smallFloats = 1, largeFloats = 4 << 20; // of 4 bytes
constexpr int smallRepeats = 50, largeRepeats = 3;

void inLine(int64_t items, absl::FunctionRef<void(int64_t, int64_t)> body) {
  body(0, items);
}

PairRequest requestOf(bool sends, uint32_t other, absl::Span<float> data) {
  Strided view;
  view.data = reinterpret_cast<std::byte *>(data.data());
  view.dtype = plan::DType::f32;
  view.shape = {static_cast<int64_t>(data.size())};
  view.strides = {1};
  return {sends, other, 0, {view}, "a measurement"};
}

/// Whom a rank meets, one after the other.
std::vector<uint32_t>
partnersOf(uint32_t rank, const std::vector<std::vector<uint32_t>> &groups,
           size_t mostRounds) {
  std::vector<uint32_t> partners;
  for (const std::vector<uint32_t> &group : groups) {
    auto me = std::find(group.begin(), group.end(), rank);
    if (me == group.end())
      continue;
    auto size = static_cast<uint32_t>(group.size()),
         number = static_cast<uint32_t>(me - group.begin());
    for (uint32_t round = 0;
         round < std::min<size_t>(numRounds(size), mostRounds); ++round)
      if (std::optional<uint32_t> other = partnerIn(round, number, size))
        partners.push_back(group[*other]);
  }
  return partners;
}

/// There and back, with one partner.
class Pair {
public:
  Pair(Transport &transport, uint32_t rank, uint32_t other,
       absl::Span<float> data)
      : isFirst(rank < other),
        send(transport.prepareTransfer(rank, requestOf(true, other, data))),
        receive(
            transport.prepareTransfer(rank, requestOf(false, other, data))) {}

  /// Seconds of one way in the fastest of some rounds; the first one only
  /// opens the connection.
  absl::StatusOr<double> fastest(int repeats) {
    MESHWORK_RETURN_IF_ERROR(send.status());
    MESHWORK_RETURN_IF_ERROR(receive.status());
    int64_t best = INT64_MAX;
    for (int i = 0; i <= repeats; ++i) {
      int64_t begin = steadyNs();
      MESHWORK_RETURN_IF_ERROR(move(isFirst ? *send : *receive));
      MESHWORK_RETURN_IF_ERROR(move(isFirst ? *receive : *send));
      if (i > 0)
        best = std::min(best, steadyNs() - begin);
    }
    return static_cast<double>(best) / 2e9;
  }

private:
  static absl::Status move(std::unique_ptr<PreparedTransfer> &one) {
    CommTimes ignored;
    MESHWORK_RETURN_IF_ERROR(one->start(inLine));
    return one->finish(inLine, ignored);
  }

  bool isFirst;
  absl::StatusOr<std::unique_ptr<PreparedTransfer>> send, receive;
};

/// One rank's measurements. What it has prepared stays until it ends: partners
/// may still look at it.
class Meter {
public:
  Meter(Transport &transport, uint32_t rank)
      : transport(transport), rank(rank), data(largeFloats) {}

  absl::StatusOr<PairLink> measure(uint32_t other) {
    double small = 0, large = 0;
    MESHWORK_ASSIGN_OR_RETURN(small, time(other, smallFloats, smallRepeats));
    MESHWORK_ASSIGN_OR_RETURN(large, time(other, largeFloats, largeRepeats));
    double moving = std::max(large - small, 1e-3 * large);
    return PairLink{std::min(rank, other), std::max(rank, other), small,
                    largeFloats * sizeof(float) / moving};
  }

private:
  absl::StatusOr<double> time(uint32_t other, size_t floats, int repeats) {
    pairs.push_back(std::make_unique<Pair>(
        transport, rank, other, absl::MakeSpan(data.data(), floats)));
    return pairs.back()->fastest(repeats);
  }

  Transport &transport;
  uint32_t rank;
  std::vector<float> data;
  std::vector<std::unique_ptr<Pair>> pairs;
};

std::string textOf(const std::vector<PairLink> &links) {
  std::string text;
  for (const PairLink &one : links)
    absl::StrAppendFormat(&text, "%d %d %.17g %.17g\n", one.from, one.to,
                          one.latency, one.bandwidth);
  return text;
}
} // namespace

uint32_t numRounds(uint32_t members) {
  return members < 2 ? 0 : members + members % 2 - 1;
}

/// The circle method: member 0 has place 0, the others move on by one place a
/// round, and who is at place p meets who is at the p-th from the end.
std::optional<uint32_t> partnerIn(uint32_t round, uint32_t member,
                                  uint32_t members) {
  uint32_t moving = numRounds(members); // places but for 0
  uint32_t place =
      member == 0 ? 0 : 1 + (member - 1 + moving - round % moving) % moving;
  uint32_t opposite = moving - place;
  uint32_t partner =
      opposite == 0 ? 0 : 1 + (opposite - 1 + round % moving) % moving;
  return partner < members ? std::optional(partner) : std::nullopt;
}

std::vector<PairRequest>
linksToMeasure(uint32_t rank, const std::vector<std::vector<uint32_t>> &groups,
               size_t mostRounds) {
  std::vector<PairRequest> all;
  for (uint32_t other : partnersOf(rank, groups, mostRounds))
    for (bool sends : {true, false})
      all.push_back(requestOf(sends, other, {nullptr, largeFloats}));
  return all;
}

absl::StatusOr<std::vector<PairLink>>
measureLinks(Transport &transport, uint32_t rank,
             const std::vector<std::vector<uint32_t>> &groups,
             size_t mostRounds) {
  Meter meter(transport, rank);
  std::vector<PairLink> mine;
  for (uint32_t other : partnersOf(rank, groups, mostRounds)) {
    absl::StatusOr<PairLink> link = meter.measure(other);
    MESHWORK_RETURN_IF_ERROR(link.status());
    if (rank < other)
      mine.push_back(*link);
  }
  std::vector<std::string> texts;
  MESHWORK_ASSIGN_OR_RETURN(
      texts, transport.exchange(rank, textOf(mine), "links of all ranks"));
  std::istringstream in(absl::StrJoin(texts, ""));
  std::vector<PairLink> all;
  for (PairLink one; in >> one.from >> one.to >> one.latency >> one.bandwidth;)
    all.push_back(one);
  return all;
}

} // namespace meshwork::runtime
