// Passes that plan memory.
#ifndef MESHWORK_MEMORY_PASSES
#define MESHWORK_MEMORY_PASSES
include "mlir/Pass/PassBase.td"

def PlanArenaPass : Pass<"memory-plan-arena", "::mlir::ModuleOp"> {
  let summary = "Gives every buffer its offset in one arena";
  let description = [{
    Before: a `schedule.program` whose buffers have no offset. After: each has
    one, a multiple of 64; buffers that share bytes are never alive together.
    Persistent buffers come first, by kind; the others largest first, each in
    the lowest gap that is free during its life.
  }];
}

#endif // MESHWORK_MEMORY_PASSES
