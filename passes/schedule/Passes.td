// Passes that order the work and give it memory.
#ifndef MESHWORK_SCHEDULE_PASSES
#define MESHWORK_SCHEDULE_PASSES
include "mlir/Pass/PassBase.td"

def LowerToSchedulePass : Pass<"schedule-lower", "::mlir::ModuleOp"> {
  let summary = "Turns @microbatch and @update into one schedule.program on buffers";
  let description = [{
    Before: `@microbatch` and `@update` of `fused`, products, attention,
    embedding, state and step inputs, all of static shape. After: a
    `schedule.program` and one function for each distinct kernel, which holds
    its `fused` and, as `schedule.strides`, how its operands and results lie.
    Slices and unslices become views; sums into state happen in place. With
    `row-bytes` what products read or write outside of state has rows that begin
    at multiples of it, unless they do at multiples of 16 anyway: a GPU's
    libraries have fast kernels for such alone, and a vocabulary may be odd.
    ```mlir
    // row-bytes=128: 7 logits of 2 bytes in each row take 64 elements.
    schedule.view %b at 0 : memref<4x7xbf16, strided<[64, 1]>>
    ```
  }];
  let options = [
    Option<"bucketBytes", "bucket-bytes", "int64_t", "26214400", "largest bucket of gradients in one collective">,
    Option<"rowBytes", "row-bytes", "int64_t", "0", "where rows of a product begin; 0: side by side">];
  let dependentDialects = ["::meshwork::schedule::ScheduleDialect", "::mlir::func::FuncDialect"];
}

def OverlapPass : Pass<"schedule-overlap", "::mlir::ModuleOp"> {
  let summary = "Runs collectives on channels beside the computation";
  let description = [{
    Before: each collective runs where it stands. After: those that gain time
    stand where they can start and have a channel, and a `schedule.wait` stands
    in front of the first instruction that touches the same bytes. Sums of
    gradients that `update` began with run in `microbatch`, in the last one of a
    step. Other instructions keep their order.
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"auto\"", "auto: what should gain time; always: all that can; never">,
    Option<"device", "device", "std::string", "\"cpu\"", "whose speeds decide what gains time: cpu or cuda">];
}

#endif // MESHWORK_SCHEDULE_PASSES
