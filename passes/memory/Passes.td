// Passes that plan memory.
#ifndef MESHWORK_MEMORY_PASSES
#define MESHWORK_MEMORY_PASSES
include "mlir/Pass/PassBase.td"

def RecomputePass : Pass<"memory-recompute", "::mlir::ModuleOp"> {
  let summary = "Computes values again in the backward pass instead of keeping them";
  let description = [{
    Before: the backward pass of @microbatch reads values of the forward pass,
    which live until then. After: it reads copies, of the
    pass `recomputed`, of the ops that the policy runs again. `none`
    keeps all that the backward pass reads. `selective` runs again what is
    cheap (maps, reductions, rolls, gathers of activations), where all that it
    reads is there anyway: norms, activations, dropout, but not the residual
    stream. `full` keeps only what crosses from one layer to a later one.
    Gathered weights are not kept, whatever the policy, unless `keep-gathered`.
  }];
  let options = [
    ListOption<"policies", "policies", "::meshwork::spec::Recompute", "none, selective or full: one for all layers, or one for each">,
    Option<"keepGathered", "keep-gathered", "bool", "false", "whether weights that are stored in parts stay whole until the backward pass">];
}

def PlanArenaPass : Pass<"memory-plan-arena", "::mlir::ModuleOp"> {
  let summary = "Gives every buffer its offset in one arena";
  let description = [{
    Before: a `schedule.program` with its `schedule.actions`, whose buffers have
    no offset. After: each has one, a multiple of 64, and a copy for each
    microbatch that is under way at once; buffers that share bytes
    are never alive together, by the lives of `lib/Plan/Lives.h`.
    Persistent buffers come first, by kind; the others largest first, each in
    the lowest gap that is free during its life.
  }];
}

#endif // MESHWORK_MEMORY_PASSES
