// Passes that order the work and give it memory.
#ifndef MESHWORK_SCHEDULE_PASSES
#define MESHWORK_SCHEDULE_PASSES
include "mlir/Pass/PassBase.td"

def LowerToSchedulePass : Pass<"schedule-lower", "::mlir::ModuleOp"> {
  let summary = "Turns @microbatch and @update into a schedule.program on buffers";
  let description = [{
    Before: `@microbatch` and `@update` of `fused`, products, attention,
    embedding, state and step inputs, all of static shape. After: a
    `schedule.program` and one function for each distinct kernel, which holds
    its `fused` and, as `schedule.strides`, how its operands and results lie.
    Slices and unslices become views; sums into state happen in place. With
    `row-bytes` what products read or write outside of state has rows that begin
    at multiples of it, unless they do at multiples of 16 anyway: a GPU's
    libraries have fast kernels for such alone, and a vocabulary may be odd. Then
    products also run over a little more than there is: 50257 words are 50304, of
    which weights have zeros (WidenProducts.cpp).
    What @microbatch does up to the head is the list `forward`, the rest
    `backward`, where no `transformer.stage_list` says otherwise. Actions run the
    lists in the order of `schedule.action_table`, which -pipeline-cut-stages
    wrote; without it there is one microbatch. Modules in the module, of
    -pipeline-cut-stages, become a program each, with transfers as lists of their
    own.
    ```mlir
    // row-bytes=128: 7 logits of 2 bytes in each row take 64 elements.
    schedule.view %b at 0 : memref<4x7xbf16, strided<[64, 1]>>
    ```
  }];
  let options = [
    Option<"bucketBytes", "bucket-bytes", "int64_t", "26214400", "largest bucket of gradients in one collective">,
    Option<"axis", "axis", "std::string", "", "of the mesh, along which modules are programs">,
    Option<"rowBytes", "row-bytes", "int64_t", "0", "where rows of a product begin; 0: side by side">,
    Option<"float8Unit", "float8-unit", "int64_t", "0", "what sizes of products of f8 must be multiples of; 0: any">,
    Option<"reductionOrder", "reduction-order", "::meshwork::spec::ReductionOrder", "::meshwork::spec::ReductionOrder::fixed", "of sums of bf16 between ranks: fixed or any">];
  let dependentDialects = ["::meshwork::schedule::ScheduleDialect", "::meshwork::mesh::MeshDialect", "::mlir::func::FuncDialect"];
}

def OverlapPass : Pass<"schedule-overlap", "::mlir::ModuleOp"> {
  let summary = "Runs collectives on channels beside the computation";
  let description = [{
    Before: each collective runs where it stands. After: those that gain time
    stand where they can start and have a channel, and a `schedule.wait` stands
    in front of the first instruction that touches the same bytes. Sums of
    gradients that `update` began with run in a step's last action of the list
    that completes them, `backward` or `weight_grad` of a stage. Other
    instructions keep their order.
  }];
  let options = [
    Option<"mode", "mode", "::meshwork::spec::When", "::meshwork::spec::When::useful", "auto: what should gain time; always: all that can; never">,
    Option<"machine", "machine", "::meshwork::cost::Machine", "::meshwork::cost::defaultMachine(::meshwork::spec::Device::cpu)", "whose speeds decide what gains time: cpu, cuda, h100x8, ... or all keys of a machine file">];
}

def MergeLaunchesPass : Pass<"schedule-merge-launches", "::mlir::ModuleOp"> {
  let summary = "Runs small kernels that need nothing of each other in one launch";
  let description = [{
    Before: a launch for each cluster, a fill for each buffer. After: launches
    and fills that stand side by side, with nothing else between them, and that
    touch no bytes that another one writes, are one launch of a function that
    calls their kernels. It stands where the first of them stood; a fill in it
    is a kernel like others. Nothing moves across another kind of instruction,
    so what runs beside collectives still does; but sums over chunks, whose
    results are persistent, wait for the others of their layer, as long as
    nothing touches their bytes. The chunks of those that wait have
    `max-held-bytes` together, at most.
    ```mlir
    func.func private @merged_0(%x: !t, %y: !t) -> (!t, !t) {
      %0 = call @kernel_0(%x) : (!t) -> !t
      %1 = call @kernel_0(%y) : (!t) -> !t
      return %0, %1 : !t, !t
    }
    ```
    Buffers that come and go and that the launches of one group write have
    `max-new-bytes` together, at most, since all of them are alive at once.
  }];
  let options = [
    Option<"operands", "operands", "int64_t", "512", "views and random streams that a launch takes, at most">,
    Option<"maxNewBytes", "max-new-bytes", "int64_t", "1048576", "bytes of a group's results that are not persistent">,
    Option<"maxHeldBytes", "max-held-bytes", "int64_t", "33554432", "bytes of chunks whose sums wait for others of their layer">];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::arith::ArithDialect", "::meshwork::transformer::TransformerDialect"];
}

#endif // MESHWORK_SCHEDULE_PASSES
