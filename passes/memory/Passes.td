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
    stream. `offload` does the same here; -schedule-offload-activations moves what
    it keeps. `full` keeps only what crosses from one layer to a later one.
    Gathered weights are not kept, whatever the policy, unless `keep-gathered`.
    ```mlir
    // meshwork-opt -memory-recompute="policies=selective"
    !x = tensor<4x8xf32, #transformer.dims<batch, embed>>
    func.func @microbatch(%x: !x) {
      %w = transformer.parameter "w" layer 0 init <constant, 1.0> : !x
      %y = transformer.roll %x by 4 : !x
      transformer.accumulate gradient "w", %y {transformer.pass = #transformer.pass<backward>} : !x
      return
    }
    // becomes
    %y = transformer.roll %x by 4 : ...
    %again = transformer.roll %x by 4 {transformer.pass = #transformer.pass<recomputed>} : ...
    transformer.accumulate gradient "w", %again {transformer.pass = #transformer.pass<backward>} : ...
    ```
  }];
  let options = [
    ListOption<"policies", "policies", "::meshwork::spec::Recompute", "none, selective, offload or full: one for all layers, or one for each">,
    Option<"keepGathered", "keep-gathered", "bool", "false", "whether weights that are stored in parts stay whole until the backward pass">];
}

def PlanArenaPass : Pass<"memory-plan-arena", "::mlir::ModuleOp"> {
  let summary = "Gives every buffer its offset in its arena";
  let description = [{
    Before: a `schedule.program` with its `schedule.actions`, whose buffers have
    no offset. After: each has one, a multiple of 64, and a copy for each
    microbatch that is under way at once; buffers that share bytes
    are never alive together, by the lives of `lib/Plan/Lives.h`.
    Persistent buffers come first, by kind; the others largest first, each in
    the lowest gap that is free during its life.
    ```mlir
    // meshwork-opt -memory-plan-arena
    schedule.program @rank {
      %a = schedule.buffer "a" activations : memref<128xi8>
      %b = schedule.buffer "b" activations : memref<128xi8>
      %w = schedule.buffer "w" weights persistent : memref<40xi8>
      schedule.list forward {
        %va = schedule.view %a at 0 : memref<128xi8> to memref<32xf32, strided<[1]>>
        schedule.fill "1" flops 0 bytes 128 0.0 to %va : memref<32xf32, strided<[1]>>
        %vb = schedule.view %b at 0 : memref<128xi8> to memref<32xf32, strided<[1]>>
        schedule.fill "2" flops 0 bytes 128 0.0 to %vb : memref<32xf32, strided<[1]>>
      }
      schedule.actions [0F0]
    }
    // becomes
    schedule.program @rank arena 192 {
      %a = schedule.buffer "a" activations at 64 : memref<128xi8>
      %b = schedule.buffer "b" activations at 64 : memref<128xi8>
      %w = schedule.buffer "w" weights persistent at 0 : memref<40xi8>
    ```
  }];
}

#endif // MESHWORK_MEMORY_PASSES
