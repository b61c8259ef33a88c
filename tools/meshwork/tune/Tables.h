// Action tables of schedules, made once, and what they tell of any layout.
#pragma once

#include "lib/Schedules/Table.h"
#include "tools/meshwork/tune/Choice.h"

#include <map>
#include <memory>
#include <tuple>

namespace meshwork::tune {

/// The table of a schedule with balanced stages, for all microbatches or, where
/// there are many, for so many that more of them repeat what came before.
struct StepTable {
  schedules::Table table;
  bool splitsBackward = false; // has W
  /// The most microbatches that each rank keeps, counted in virtual stages.
  std::vector<int32_t> kept;
  double microbatches = 1, left = 0; // in the table; of the step beyond it
  std::vector<int64_t> layers;       // of each virtual stage
  int64_t fewestLayers = 0;          // of a rank
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
  std::unique_ptr<StepTable> make(const Choice &choice,
                                  uint32_t microbatches) const;
  void shareLayers(StepTable &table) const;

  using Key = std::tuple<std::string_view, uint32_t, uint32_t, uint32_t>;
  const std::vector<double> &flops;
  std::map<Key, std::unique_ptr<StepTable>> known;
};

} // namespace meshwork::tune
