#include "tools/meshwork/tune/Bodies.h"

#include <algorithm>
#include <string_view>

namespace meshwork::tune {
namespace {

constexpr uint32_t mostMicrobatches = 2; // of a body
/// How much less a body may take than those on the same ranks that should take
/// hardly more.
constexpr double marginOfFaster = 0.05;

/// The smallest number from 2 on that divides it.
uint32_t primeOf(uint32_t number) {
  for (uint32_t one = 2; uint64_t{one} * one <= number; ++one)
    if (number % one == 0)
      return one;
  return number;
}
} // namespace

Bodies::Key Bodies::keyOf(const Choice &body, uint32_t microbatches) const {
  return {body.ep,
          body.cp,
          body.tp,
          body.micro,
          body.sequenceParallel,
          body.method,
          body.layout,
          body.exchange,
          body.recompute,
          body.zeroStage,
          microbatches};
}

Bodies::Key Bodies::keyOf(const Choice &choice) const {
  return keyOf(bodyOf(choice, gathersApart),
               microbatchesOfBody(choice, global));
}

size_t Bodies::of(const Choice &choice) const {
  return known.at(keyOf(choice));
}

size_t Bodies::add(const Choice &choice, size_t which) {
  auto [at, isNew] = known.try_emplace(keyOf(choice), all.size());
  if (isNew)
    all.push_back({bodyOf(choice, gathersApart),
                   microbatchesOfBody(choice, global),
                   {},
                   std::nullopt});
  all[at->second].members.push_back(which);
  return at->second;
}

std::vector<Choice> Bodies::onFewerRanks(const Choice &body) const {
  std::vector<Choice> fewer;
  if (body.tp > 1) {
    fewer.push_back(body);
    fewer.back().tp /= primeOf(body.tp);
    fewer.back().sequenceParallel &= fewer.back().tp > 1;
  }
  if (body.cp > 1) {
    fewer.push_back(body);
    fewer.back().cp /= primeOf(body.cp);
    if (fewer.back().cp == 1)
      fewer.back().method = fewer.back().layout = {};
  }
  return fewer;
}

std::vector<Choice> Bodies::withMoreOnARank(const Choice &body) const {
  std::vector<Choice> more = onFewerRanks(body);
  for (Choice one : onFewerRanks(body)) { // with as many tokens on a rank
    uint32_t part = body.tp * body.cp / (one.tp * one.cp);
    one.micro /= part;
    if (body.micro % part == 0)
      more.push_back(one);
  }
  more.push_back(body);
  more.back().micro *= 2;
  return more;
}

static const char *lessRecomputed(Word policy) {
  return policy == "full" || policy == "offload" ? "selective"
         : policy == "selective"                 ? "none"
                                                 : nullptr;
}

/// Bodies that should do no more for a token. Small tensors stay on the device,
/// so more of them may move to the host's memory with fewer ranks or a larger
/// microbatch.
std::vector<size_t> Bodies::simplerThan(size_t which) const {
  const Choice &body = all[which].body;
  bool isMoved = body.recompute == "offload";
  std::vector<Choice> simpler;
  if (!isMoved)
    simpler = withMoreOnARank(body);
  simpler.push_back(body); // one microbatch adds up nothing
  if (const char *less = lessRecomputed(body.recompute)) {
    simpler.push_back(body);
    simpler.back().recompute = less;
  }
  if (body.zeroStage > 0) {
    simpler.push_back(body);
    simpler.back().zeroStage = 0;
  }
  return find(which, simpler, all[which].microbatches);
}

/// Bodies on the same ranks that take hardly more. A sequence in blocks moves
/// no more than one in zigzag. A residual that is split over "tp" moves no more
/// than a whole one.
std::vector<size_t> Bodies::fasterThan(size_t which) const {
  const Choice &body = all[which].body;
  std::vector<Choice> faster;
  if (body.layout == "zigzag") {
    faster.push_back(body);
    faster.back().layout = "block";
  }
  if (body.tp > 1 && !body.sequenceParallel) {
    faster.push_back(body);
    faster.back().sequenceParallel = true;
  }
  return find(which, faster, all[which].microbatches);
}

/// Those of them that some choice has, with one microbatch or up to `most`.
std::vector<size_t> Bodies::find(size_t which,
                                 const std::vector<Choice> &bodies,
                                 uint32_t most) const {
  std::vector<size_t> found;
  for (const Choice &body : bodies)
    for (uint32_t microbatches = 1; microbatches <= most; ++microbatches)
      if (auto at = known.find(keyOf(body, microbatches));
          at != known.end() && at->second != which)
        found.push_back(at->second);
  return found;
}

static double ranksOf(const Choice &body) {
  return double{1} * body.tp * body.cp;
}

std::vector<Choice> Bodies::keepingLess(const Choice &body) const {
  std::vector<Choice> less = onFewerRanks(body);
  bool isMoved = body.recompute == "offload"; // large tensors alone
  if (body.micro > 1 && !isMoved) {
    less.push_back(body);
    less.back().micro /= primeOf(body.micro);
  }
  less.push_back(body);
  return less;
}

/// Kept bytes are in proportion to sequences, and ranks share them at best.
double Bodies::Kept::of(Bodies &bodies, size_t which) {
  known.resize(bodies.size(), -1);
  if (known[which] >= 0)
    return known[which];
  const OfBody &one = bodies[which];
  known[which] = 0;
  double most = measured(one);
  if (most > 0)
    return known[which] = most;
  for (size_t other :
       bodies.find(which, bodies.keepingLess(one.body), mostMicrobatches)) {
    const Choice &body = bodies[other].body;
    most = std::max(most, of(bodies, other) * one.body.micro / body.micro *
                              ranksOf(body) / ranksOf(one.body));
  }
  return known[which] = most;
}

void Bodies::findRoots() {
  using Size = std::tuple<double, int64_t, uint32_t>;
  auto sizeOf = [&](size_t which, int64_t sign) {
    const Choice &body = all[which].body;
    return Size(ranksOf(body), sign * body.micro, all[which].microbatches);
  };
  for (int64_t sign : {1, -1}) { // the smallest microbatch, and the largest
    std::map<std::tuple<uint32_t, Word, uint8_t>, size_t> first;
    for (size_t i = 0; i < all.size(); ++i) {
      auto [at, isNew] = first.try_emplace(
          {all[i].body.ep, all[i].body.recompute, all[i].body.zeroStage}, i);
      if (!isNew && sizeOf(i, sign) < sizeOf(at->second, sign))
        at->second = i;
    }
    for (const auto &[key, which] : first)
      if (std::find(rootBodies.begin(), rootBodies.end(), which) ==
          rootBodies.end())
        rootBodies.push_back(which);
  }
}

/// Whether all sizes of `body` are multiples of those of the other.
static bool isMultiple(const Choice &body, const Choice &other) {
  return body.ep % other.ep == 0 && body.cp % other.cp == 0 &&
         body.tp % other.tp == 0;
}

static bool isRefusedWith(const Choice &body, const Choice &refused,
                          std::string_view key) {
  // Axes share these in equal parts.
  if (key == "shard.experts" || key == "shard.heads")
    return isMultiple(body, refused);
  if (key == "context.method" && refused.method == "ulysses") // so are heads
    return body.method == refused.method && isMultiple(body, refused);
  if (!key.starts_with("shard.") && !key.starts_with("context."))
    return false;
  Choice same = body; // A mesh is refused whatever each rank then does.
  same.micro = refused.micro;
  same.recompute = refused.recompute;
  return same == refused;
}

std::vector<size_t> Bodies::refusedWith(size_t which,
                                        const std::string &why) const {
  std::string_view key = std::string_view(why).substr(0, why.find(':'));
  std::vector<size_t> found;
  for (size_t i = 0; i < all.size(); ++i)
    if (i != which && !all[i].measured &&
        isRefusedWith(all[i].body, all[which].body, key))
      found.push_back(i);
  return found;
}

void Bodies::Seconds::raise(const Seconds &other) {
  all = std::max(all, other.all);
  unexposed = std::max(unexposed, other.unexposed);
  waits = {std::max(waits.tp, other.waits.tp),
           std::max(waits.cp, other.waits.cp),
           std::max(waits.other, other.waits.other)};
}

/// What ranks wait for is a part of `seconds`, and grows.
Bodies::Seconds Bodies::grown(const Seconds &seconds, const Choice &from,
                              const Choice &body) {
  Waits waits = growth.of(seconds.waits, from, body);
  double more = waits.all() - seconds.waits.all();
  return {seconds.all + more, seconds.unexposed + more / 2, waits};
}

static bool isMeasured(const OfBody &one) {
  return one.measured && one.measured->status == Costed::done;
}

/// What ranks that wait for each other do is added up over them.
Bodies::Seconds Bodies::ofMeasured(size_t which) const {
  const OfBody &one = all[which];
  double share = ranksOf(one.body) / one.body.micro;
  Choice gathering = one.body;
  gathering.zeroStage = 3;
  return {one.measured->seconds() * share,
          one.measured->seconds(gathering) * share,
          one.measured->waits.times(share)};
}

/// By what was moved of others, that of which most is told.
Bodies::Seconds Bodies::withTraffic(Seconds seconds, const Choice &body) const {
  double share = ranksOf(body) / body.micro;
  Seconds most = seconds;
  for (size_t other : moving) {
    auto with = [&](double one) {
      return share * traffic.seconds(one / share, body,
                                     all[other].measured->toHost,
                                     all[other].body);
    };
    most.raise({with(seconds.all), with(seconds.unexposed), seconds.waits});
  }
  return most;
}

Bodies::Seconds Bodies::rankSeconds(size_t which) {
  least.resize(all.size());
  if (least[which])
    return *least[which];
  const OfBody &one = all[which];
  Seconds most;
  if (isMeasured(one))
    most = ofMeasured(which);
  else {
    for (size_t other : simplerThan(which))
      most.raise(grown(rankSeconds(other), all[other].body, one.body));
    if (one.body.recompute != "offload")
      for (size_t other : fasterThan(which))
        if (isMeasured(all[other]))
          most.raise(ofMeasured(other).times(1 - marginOfFaster));
  }
  bool isMoved = !one.measured && one.body.recompute == "offload";
  least[which] = isMoved ? withTraffic(most, one.body) : most;
  return *least[which];
}

} // namespace meshwork::tune
