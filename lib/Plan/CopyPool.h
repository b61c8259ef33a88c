// Who gets which copy of a buffer: the one rule that what runs (Copies.h) and
// what is checked before (lib/Schedules/Deadlock.h) go by. Knows no plan.
//
//   CopyPool pool(2);
//   uint32_t copy = pool.take();   // the lowest that is free
//   pool.giveBack(copy);
#ifndef MESHWORK_LIB_PLAN_COPYPOOL_H
#define MESHWORK_LIB_PLAN_COPYPOOL_H

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace meshwork::plan {

class CopyPool {
public:
  /// Of copies 0 to `copies` - 1, all free.
  explicit CopyPool(uint32_t copies) : copies(copies) {}

  bool isEmpty() const { return givenBack.empty() && next == copies; }

  /// The lowest free copy; the pool must not be empty.
  uint32_t take() {
    // Whatever was given back is lower than what nobody had yet.
    if (givenBack.empty())
      return next++;
    uint32_t copy = givenBack.top();
    givenBack.pop();
    return copy;
  }

  /// What take() gave, once.
  void giveBack(uint32_t copy) { givenBack.push(copy); }

private:
  uint32_t copies;
  uint32_t next = 0; // the lowest that nobody had
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>>
      givenBack;
};

} // namespace meshwork::plan

#endif // MESHWORK_LIB_PLAN_COPYPOOL_H
