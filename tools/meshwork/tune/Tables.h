// Action tables of schedules, made once, and what they tell of any layout.
#pragma once

#include "lib/Schedules/Simulate.h"
#include "lib/Schedules/Table.h"
#include "tools/meshwork/tune/Choice.h"

#include <map>
#include <memory>
#include <optional>
#include <tuple>

namespace meshwork::tune {

/// What layers keep for a microbatch, as many times as a rank has it at its
/// peak: so often in any case, and so often for each of its layers. A stage has
/// a layer, and a copy for each microbatch that it ever has under way. All its
/// copies take memory while one of them is in use (lib/Plan).
struct Copies {
  double inAnyCase = 0, ofLayer = 0;
  double stages = 0; // of the rank
};

/// The table of a schedule with balanced stages.
struct BalancedTable {
  schedules::Table table;
  double microbatches = 1;
  bool splitsBackward = false; // has W
  /// The most microbatches that each virtual stage has under way.
  std::vector<int32_t> copiesOfStage;
  std::vector<Copies> copies;  // of each rank
  std::vector<int64_t> layers; // of each virtual stage
  int64_t fewestLayers = 0;    // of a rank
  /// Of actions that take one second, or two for a whole backward pass: of all
  /// of them, and of the busiest rank. 0: they cannot run.
  double makespan = 0, busiest = 0;
  std::optional<schedules::Makespan> run; // nothing: they cannot
};

/// Layers times their copies, of a rank at its peak, if stages have `layers`.
double mostCopies(const BalancedTable &table, size_t rank,
                  const std::vector<int64_t> &layers);

/// The one of a step: of all its microbatches or, where there are many, of so
/// many that more of them repeat what came before.
struct StepTable {
  const BalancedTable &of;
  double left = 0; // microbatches beyond the table
  /// Seconds of a step of equal stages, by those that each rank works.
  double waits = 1;
};

/// Seconds of all actions, at least; `costs` has `backward` or, where the
/// table splits it, its two parts. 0 where the table cannot run.
double leastSeconds(const StepTable &table, const schedules::Costs &costs);

/// Virtual stages of all ranks; 0: the schedule has no name.
uint64_t stagesOf(const Choice &choice);

class Tables {
public:
  /// Of a model with so many model flops in each layer.
  explicit Tables(const std::vector<double> &flopsOfLayers)
      : flops(flopsOfLayers) {}

  /// Null where the schedule has none for these numbers, or there are more
  /// stages than layers.
  const StepTable *of(const Choice &choice, uint32_t microbatches);

private:
  std::unique_ptr<BalancedTable> make(const Choice &choice,
                                      uint32_t microbatches) const;
  void shareLayers(BalancedTable &table) const;
  const BalancedTable *balanced(const Choice &choice, uint32_t microbatches);

  using Key = std::tuple<Word, uint32_t, uint32_t, uint32_t>;
  const std::vector<double> &flops;
  std::map<Key, std::unique_ptr<BalancedTable>> tables; // null: there is none
  std::map<Key, std::optional<StepTable>> known;
};

} // namespace meshwork::tune
