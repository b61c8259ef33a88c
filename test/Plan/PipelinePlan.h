// The tiny plan cut into the stages of a pipeline: the first has the embedding
// and its gradient, the last the loss; those between hand on what they receive.
// Same numbers as tinyPlan on one rank, to the bit.
#pragma once

#include "TestPlan.h"

namespace meshwork::plan::test {

/// "0F3", as kind and microbatch: the stage is the program's own.
using StageAction = std::pair<ListKind, uint32_t>;

struct PipelineOptions {
  uint32_t stages = 2;
  uint32_t microbatches = 4;
  uint32_t dataParallel = 1;
  bool forwardFirst = false; // GPipe; else 1F1B
  bool isForGpus = false;    // whose kernels nobody can run
};

/// Mesh dp x pp, a program for each coordinate of pp.
PlanT pipelinePlan(const PipelineOptions &options = {});

/// The list of a program, whose only stage it is.
uint32_t listNumber(const ProgramT &program, ListKind kind);
/// step, these, update.
void setStageActions(ProgramT &program, const std::vector<StageAction> &middle);
/// What a stage of `stages` does; each transfer right beside what it is for.
std::vector<StageAction> stageActions(const PipelineOptions &options,
                                      uint32_t stage);

} // namespace meshwork::plan::test
