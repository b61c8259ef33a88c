#include "lib/Schedules/Greedy.h"

#include <utility>

namespace meshwork::schedules {
namespace {

class GreedyRule : public Rule {
public:
  GreedyRule(const Work &work, std::vector<Taste> tastes)
      : work(work), tastes(std::move(tastes)) {}

  void wishes(int32_t rank, const Progress &done,
              std::vector<Wish> &to) override {
    const Taste &taste = tastes[static_cast<size_t>(rank)];
    const std::vector<int32_t> &stages =
        work.stagesOf[static_cast<size_t>(rank)];
    Counts counts(stages, done);
    if (counts.due() > taste.lag)
      addWeights(stages, done, to);
    for (size_t i = stages.size(); i-- > 0;)
      to.push_back({Kind::inputGrad, stages[i], taste.gradPatience});
    addForwards(stages, counts, taste, to);
    addWeights(stages, done, to);
  }

private:
  struct Counts {
    int32_t forward = 0, grad = 0, weight = 0;
    Counts(const std::vector<int32_t> &stages, const Progress &done) {
      for (int32_t stage : stages) {
        forward += done.forward[static_cast<size_t>(stage)];
        grad += done.inputGrad[static_cast<size_t>(stage)];
        weight += done.weightGrad[static_cast<size_t>(stage)];
      }
    }
    int32_t due() const { return grad - weight; }
  };

  const Work &work;
  std::vector<Taste> tastes;

  /// An F of an early stage leaves room for one of each later stage, so that
  /// what is begun can come to its end.
  void addForwards(const std::vector<int32_t> &stages, const Counts &counts,
                   const Taste &taste, std::vector<Wish> &to) const {
    int32_t alive = counts.forward - counts.grad;
    double kept = alive + taste.stash * counts.due();
    for (size_t n = 0; n < stages.size(); ++n) {
      size_t i = taste.earlyFirst ? n : stages.size() - 1 - n;
      auto later = static_cast<int32_t>(stages.size() - 1 - i);
      if (kept + 1 + later <= taste.memory + 1e-9 &&
          alive + later < taste.alive)
        to.push_back({Kind::forward, stages[i], taste.forwardPatience});
    }
  }

  void addWeights(const std::vector<int32_t> &stages, const Progress &done,
                  std::vector<Wish> &to) const {
    for (int32_t stage : stages)
      if (auto at = static_cast<size_t>(stage);
          done.weightGrad[at] < done.inputGrad[at])
        to.push_back({Kind::weightGrad, stage, 0});
  }
};

} // namespace

std::unique_ptr<Rule> greedyRule(const Work &work, std::vector<Taste> tastes) {
  return std::make_unique<GreedyRule>(work, std::move(tastes));
}

} // namespace meshwork::schedules
