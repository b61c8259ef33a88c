// Which windows an evaluation reads, and what their losses come to.
//
//   EvaluationSteps steps(10, 4);        // ten windows, four a step
//   steps.count();                       // 4
//   steps.firstWindow(2);                // 8: windows 8, 9, and 9 twice again
//   steps.mean(losses, targets);
//
// A step has as many windows as one of training. Where the last ones are fewer,
// the last window of all fills the step up. One step more evaluates that window
// alone, and its loss is taken off again. So each window counts once, and
// nothing has to be compiled for it.
#pragma once

#include <cstdint>
#include <vector>

namespace meshwork::runtime {

class EvaluationSteps {
public:
  /// Neither is 0.
  EvaluationSteps(uint64_t windows, uint64_t global)
      : windows(windows), global(global) {}

  uint64_t count() const {
    return windows / global + (windows % global ? 2 : 0);
  }
  /// Those behind the last window are that one.
  uint64_t firstWindow(uint64_t step) const { return step * global; }
  uint64_t lastWindow() const { return windows - 1; }

  /// Targets that count, of so many in each step.
  double targets(const std::vector<uint64_t> &ofSteps) const;
  /// The mean loss of these, of the mean of each step; of none 0.
  double mean(const std::vector<float> &losses,
              const std::vector<uint64_t> &targets) const;

private:
  /// How often the samples of a step count.
  double weight(uint64_t step) const;

  uint64_t windows, global;
};

} // namespace meshwork::runtime
