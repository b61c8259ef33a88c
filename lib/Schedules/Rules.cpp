#include "lib/Schedules/Rules.h"

#include <numeric>
#include <utility>

namespace meshwork::schedules {
namespace {

int32_t sum(const std::vector<int32_t> &counts,
            const std::vector<int32_t> &stages) {
  return std::accumulate(stages.begin(), stages.end(), 0,
                         [&](int32_t total, int32_t stage) {
                           return total + counts[static_cast<size_t>(stage)];
                         });
}

class LimitsRule : public Rule {
public:
  LimitsRule(const Work &work, std::vector<Limits> limits,
             std::vector<Turns> turns)
      : work(work), limits(std::move(limits)), turns(std::move(turns)) {}

  void wishes(int32_t rank, const Progress &done,
              std::vector<Wish> &to) override {
    auto at = static_cast<size_t>(rank);
    const std::vector<int32_t> &stages = work.stagesOf[at];
    auto all = static_cast<int32_t>(stages.size()) * work.microbatches;
    int32_t forward = sum(done.forward, stages),
            grad = sum(done.inputGrad, stages),
            due = grad - sum(done.weightGrad, stages);
    if (due > limits[at].lag || (grad == all && due > 0))
      to.push_back({Kind::weightGrad, oldestWeight(done, stages), forEver});
    else if (forward < all && forward - grad < limits[at].alive)
      to.push_back({Kind::forward,
                    turns[at].forward[static_cast<size_t>(forward)], forEver});
    else if (grad < all)
      to.push_back({limits[at].split ? Kind::inputGrad : Kind::backward,
                    turns[at].backward[static_cast<size_t>(grad)], forEver});
  }

private:
  const Work &work;
  std::vector<Limits> limits;
  std::vector<Turns> turns;

  static int32_t oldestWeight(const Progress &done,
                              const std::vector<int32_t> &stages) {
    for (int32_t stage : stages)
      if (auto at = static_cast<size_t>(stage);
          done.weightGrad[at] < done.inputGrad[at])
        return stage;
    return stages.front();
  }
};

/// How many actions like `wish` have begun.
template <typename Counts> auto &count(Counts &counts, const Wish &wish) {
  auto stage = static_cast<size_t>(wish.stage);
  return wish.kind == Kind::forward      ? counts.forward[stage]
         : wish.kind == Kind::weightGrad ? counts.weightGrad[stage]
                                         : counts.inputGrad[stage];
}

class GivenOrder : public Rule {
public:
  GivenOrder(const Work &work, const std::vector<std::vector<Wish>> &order)
      : steps(order.size()), next(order.size()) {
    for (size_t rank = 0; rank < order.size(); ++rank)
      number(order[rank], work, steps[rank]);
  }

  void wishes(int32_t rank, const Progress &done,
              std::vector<Wish> &to) override {
    const std::vector<Step> &own = steps[static_cast<size_t>(rank)];
    size_t &at = next[static_cast<size_t>(rank)];
    while (at < own.size() && count(done, own[at].wish) > own[at].microbatch)
      ++at;
    if (at < own.size())
      to.push_back(own[at].wish);
  }

private:
  struct Step {
    Wish wish;
    int32_t microbatch = 0;
  };
  std::vector<std::vector<Step>> steps;
  std::vector<size_t> next;

  /// Finds each action's microbatch and drops those that the work has not.
  static void number(const std::vector<Wish> &order, const Work &work,
                     std::vector<Step> &to) {
    std::vector<int32_t> none(work.rankOf.size());
    Progress before{none, none, none};
    for (const Wish &wish : order) {
      int32_t microbatch = count(before, wish)++;
      before.weightGrad[static_cast<size_t>(wish.stage)] +=
          wish.kind == Kind::backward;
      if (microbatch < work.microbatches)
        to.push_back({wish, microbatch});
      else if (!to.empty())
        to.back().wish.withNext = false; // its partner is dropped
    }
  }
};

} // namespace

std::unique_ptr<Rule> limitsRule(const Work &work, std::vector<Limits> limits,
                                 std::vector<Turns> turns) {
  return std::make_unique<LimitsRule>(work, std::move(limits),
                                      std::move(turns));
}

std::unique_ptr<Rule> givenOrder(const Work &work,
                                 const std::vector<std::vector<Wish>> &order) {
  return std::make_unique<GivenOrder>(work, order);
}

} // namespace meshwork::schedules
