// The plans of a run, one after the other (--then): each goes on from the
// checkpoint that the one before it has left.
//
//   absl::StatusOr<std::vector<Phase>> phases = phasesOf(options);
//   MESHWORK_RETURN_IF_ERROR(openPhases(*phases, options, processes));
//   size_t first = firstPhase(*phases, options);
//   for (size_t i = first; i < phases->size(); ++i)
//     status = runIn(processes, optionsOf(*phases, i, first, options),
//                    (*phases)[i].file);
#pragma once

#include "lib/Plan/PlanFile.h"
#include "runtime/rank/Processes.h"
#include <memory>
#include <vector>

namespace meshwork::runtime {

/// Steps up to `end`, by a plan.
struct Phase {
  std::string plan;
  uint64_t begin, end;
  /// From openPhases on: what was checked is what runs, whatever becomes of the
  /// file.
  std::shared_ptr<const plan::PlanFile> file = nullptr;
};

/// invalidArgument when what --then says is no plan and step, or steps do not
/// rise up to --steps.
absl::StatusOr<std::vector<Phase>> phasesOf(const RunOptions &options);

/// Before the first step: opens every plan, once. All processes have the same
/// plans and options, and every later plan has the parameters and the states of
/// the one before, and as many ranks as there are processes. By all processes.
absl::Status openPhases(std::vector<Phase> &phases, const RunOptions &options,
                        const Processes &processes);

/// The one that what --resume names stands in; 0 where there is nothing yet.
size_t firstPhase(const std::vector<Phase> &phases, const RunOptions &options);

/// What is asked of one of them: the first that runs begins as the run does,
/// the last leaves its outputs.
RunOptions optionsOf(const std::vector<Phase> &phases, size_t number,
                     size_t first, const RunOptions &options);

} // namespace meshwork::runtime
