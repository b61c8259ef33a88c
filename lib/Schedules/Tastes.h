// What a search for schedules tries: numbers for the greedy rule.
#ifndef MESHWORK_LIB_SCHEDULES_TASTES_H
#define MESHWORK_LIB_SCHEDULES_TASTES_H

#include "lib/Schedules/Greedy.h"

#include <random>
#include <vector>

namespace meshwork::schedules {

class Tastes {
public:
  /// The same numbers each time for the same work.
  Tastes(const Work &work, double memory, double stash);

  /// Of each rank, along a line from the first rank to the last.
  std::vector<Taste> any();
  /// With one number of one or several neighbouring ranks changed.
  std::vector<Taste> changed(std::vector<Taste> tastes);
  /// 0 to `limit` - 1.
  int32_t below(int32_t limit);

private:
  Taste taste;
  int32_t ranks, chunks, most;
  double forward = 0, inputGrad = 0, weightGrad = 0, transfer = 0;
  std::mt19937 engine{1};

  int32_t aliveOf(int32_t rank, int32_t choice) const;
  double patience();
  void change(Taste &taste, int32_t what);
};

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_TASTES_H
