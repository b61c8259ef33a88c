// Passes that order the work and give it memory.
#ifndef MESHWORK_SCHEDULE_PASSES
#define MESHWORK_SCHEDULE_PASSES
include "mlir/Pass/PassBase.td"

def LowerToSchedulePass : Pass<"schedule-lower", "::mlir::ModuleOp"> {
  let summary = "Turns @microbatch and @update into a schedule.program on buffers";
  let description = [{
    Before: `@update`, and `@microbatch` of tokens, targets and what else the
    launcher gives, such as documents; both of `fused`, products, attention,
    embedding, state and step inputs, all of static shape. After: a
    `schedule.program` and one function for each distinct kernel, which holds
    its `fused` and, as `schedule.strides`, how its operands and results lie.
    Slices and unslices become views; sums into state happen in place. Three things
    are copied, since no view can express them: a part that could not be made where
    its whole lies, a rank's slice that ends behind the tensor, and a product's
    operand whose order of dims no strides express. What no part of an unslice
    covers is zeroed. With `row-bytes`, rows that products read or write outside of
    state begin at multiples of it, unless they begin at multiples of 16 anyway: a
    vocabulary may be odd, and a GPU's libraries have fast kernels for aligned rows
    alone. Then products also run over a little more than there is: 50257 words are
    50304, of which weights have zeros (WidenProducts.cpp). What @microbatch does up
    to the head is the list `forward`, the rest `backward`, where no
    `transformer.stage_list` says otherwise. Actions run the lists in the order of
    `schedule.action_table`, which -pipeline-cut-stages wrote; without it there is
    one microbatch. Modules in the module, of
    -pipeline-cut-stages, become a program each, with transfers as lists of their
    own.
    ```mlir
    // meshwork-opt -schedule-lower="row-bytes=128"
    !t = tensor<1x4xi32, #transformer.dims<batch, sequence>>
    !x = tensor<4x8xbf16, #transformer.dims<s, e>>
    !w = tensor<8x7xbf16, #transformer.dims<e, v>>
    !y = tensor<4x7xbf16, #transformer.dims<s, v>>
    func.func @microbatch(%tokens: !t, %targets: !t) {
      %x = transformer.parameter "x" init <constant, 1.0> : !x
      %w = transformer.parameter "w" init <constant, 1.0> : !w
      %y = transformer.contract "se,ev->sv" %x, %w : !x, !w -> !y
      %z = transformer.fused rows <s> cols <v> ins(%y : !y) -> !y {
      ^bb0(%a: !y):
        %r = transformer.roll %a by 3 : !y
        transformer.yield %r : !y
      }
      return
    }
    func.func @update() { return }
    // becomes
    schedule.matmul "x" ... to memref<1x4x7xbf16, strided<[256, 64, 1]>>
    ...
    schedule.launch "fused" ... @kernel_0 ... : memref<4x7xbf16, strided<[64, 1]>>, memref<4x7xbf16, ...>
    ...
    func.func private @kernel_0(...) -> ... {schedule.strides = [array<i64: 64, 1>, array<i64: 7, 1>]} {
    %z = transformer.fused ...
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

def OffloadStatesPass : Pass<"schedule-offload-states", "::mlir::ModuleOp"> {
  let summary = "Keeps states of the optimizer in the host's memory";
  let description = [{
    Before: masters and what the optimizer keeps lie on the device. After: they
    lie in the host's memory. The list `update` copies them to a window on the
    device in front of the instructions that use them, and back behind these.
    States that follow each other share a window until it has `window-bytes`.
    There are two windows, in turns, so that one can be brought while the other
    is in use (-schedule-overlap). What other lists use too, such as an f32
    weight that is its own master, stays on the device.
    ```mlir
    // meshwork-opt -schedule-offload-states
    !b = memref<64xi8>
    !m = memref<16xf32, strided<[1]>>
    schedule.program @rank {
      %w = schedule.buffer "w" weights persistent : !b
      %m = schedule.buffer "w (momentum)" optimizer persistent : !b
      schedule.list update {
        %vw = schedule.view %w at 0 : !b to !m
        %vm = schedule.view %m at 0 : !b to !m
        schedule.launch "w" flops 32 bytes 256 @step items 1 outputs 2 (%vw, %vm, %vw, %vm) : !m, !m, !m, !m
      }
    }
    // becomes
    %window = schedule.buffer "window of states" communication : ...
    %host = schedule.buffer "states of w (momentum)" optimizer persistent on_host : ...
    schedule.list update {
      ...
      schedule.copy "states of w (momentum)" flops 0 bytes 128...
      ...
      schedule.launch "w" ...
      ...
      schedule.copy "states of w (momentum)" flops 0 bytes 128...
    ```
  }];
  let options = [
    Option<"windowBytes", "window-bytes", "int64_t", "16777216", "of states that travel together, at least">];
}

def OffloadActivationsPass : Pass<"schedule-offload-activations", "::mlir::ModuleOp"> {
  let summary = "Keeps activations in the host's memory from forward to backward";
  let description = [{
    Before: what a layer's forward pass makes and its backward pass reads lies on
    the device in between. After: of layers with the policy `offload` it lies in
    the host's memory. The list `forward` copies it there behind its last write;
    the backward pass reads a buffer of its own, to which it is copied in front of
    the first use. Buffers of fewer than `least-bytes` stay.
    ```mlir
    // meshwork-opt -schedule-offload-activations="policies=offload least-bytes=64"
    !b = memref<64xi8>
    !m = memref<16xf32, strided<[1]>>
    schedule.program @rank {
      %x = schedule.buffer "x" activations : !b
      %y = schedule.buffer "y" activations : !b
      schedule.list forward {
        %vx = schedule.view %x at 0 : !b to !m
        schedule.fill "x" flops 0 bytes 64 1.0 to %vx {transformer.layer = 0 : i64} : !m
      }
      schedule.list backward {
        %vx = schedule.view %x at 0 : !b to !m
        %vy = schedule.view %y at 0 : !b to !m
        schedule.launch "y" flops 16 bytes 128 @k items 1 outputs 1 (%vx, %vy) : !m, !m
      }
    }
    // becomes
    %host = schedule.buffer "x on the host" activations on_host : ...
    %back = schedule.buffer "x for backward" activations : ...
    ...
    schedule.list forward {
      ...
      schedule.fill "x" ...
      ...
      schedule.copy "x" flops 0 bytes 128...
    }
    schedule.list backward {
      ...
      schedule.copy "x" flops 0 bytes 128...
      schedule.launch "y" ...
    ```
  }];
  let options = [
    ListOption<"policies", "policies", "::meshwork::spec::Recompute", "of all layers, or one for each">,
    Option<"leastBytes", "least-bytes", "int64_t", "1048576", "of a buffer that moves">];
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
    ```mlir
    // meshwork-opt -schedule-overlap="mode=always"
    !b = memref<256xi8>
    !m = memref<8x8xf32, strided<[8, 1]>>
    module attributes {mesh.mesh = #mesh.mesh<"dp"=2>} {
      schedule.program @rank {
        %x = schedule.buffer "x" activations persistent : !b
        %g = schedule.buffer "g" gradients persistent : !b
        schedule.list backward {
          %vx = schedule.view %x at 0 : !b to !m
          %vg = schedule.view %g at 0 : !b to !m
          schedule.collective "g" flops 0 bytes 256 all_reduce sum over ["dp"] in backward cause "g"
              dims [0] to [0] sources [] (%vg) to (%vg) : !m to !m
          schedule.launch "x" flops 0 bytes 512 @k items 1 outputs 1 (%vx, %vx) : !m, !m
          schedule.launch "g" flops 0 bytes 512 @k items 1 outputs 1 (%vg, %vg) : !m, !m
        }
      }
    }
    // becomes
    schedule.collective "g" ... channel 1 over ["dp"] ...
    ...
    schedule.launch "x" ...
    ...
    schedule.wait "g" flops 0 bytes 0 1 count 1...
    schedule.launch "g" ...
    ```
  }];
  let options = [
    Option<"mode", "mode", "::meshwork::spec::When", "::meshwork::spec::When::useful", "auto: what should gain time; always: all that can; never">,
    Option<"machine", "machine", "::meshwork::cost::Machine", "::meshwork::cost::defaultMachine(::meshwork::spec::Device::cpu)", "whose speeds decide what gains time: cpu, cuda, h100x8, ... or all keys of a machine file">];
}

def MergeLaunchesPass : Pass<"schedule-merge-launches", "::mlir::ModuleOp"> {
  let summary = "Runs small kernels that need nothing of each other in one launch";
  let description = [{
    Before: a launch for each cluster, a fill for each buffer. After: a row of
    launches and fills, none of which touches bytes that another one writes, is one
    launch of a function that calls their kernels. It stands where the first of them
    stood; a fill in it is a kernel like others. No launch moves across another kind
    of instruction, so launches that run beside a collective still do. Sums over
    chunks are the exception, since their results are persistent: they wait for the
    others of their layer, as long as nothing touches their bytes. The chunks of
    those that wait have `max-held-bytes` together, at most. Buffers that come and
    go and that the launches of one group write have `max-new-bytes` together, at
    most, since all of them are alive at once.
    ```mlir
    // meshwork-opt -schedule-merge-launches
    !m = memref<8xf32, strided<[1]>>
    !t = tensor<8xf32, #transformer.dims<e>>
    schedule.program @rank {
      %a = schedule.buffer "a" gradients persistent : memref<32xi8>
      %b = schedule.buffer "b" gradients persistent : memref<32xi8>
      schedule.list update {
        %x = schedule.view %a at 0 : memref<32xi8> to !m
        schedule.launch "a" flops 8 bytes 64 @twice items 1 outputs 1 (%x, %x) : !m, !m
        %y = schedule.view %b at 0 : memref<32xi8> to !m
        schedule.launch "b" flops 8 bytes 64 @twice items 1 outputs 1 (%y, %y) : !m, !m
      }
    }
    func.func private @twice(!t) -> !t attributes {schedule.strides = [array<i64: 1>, array<i64: 1>]}
    // becomes
    schedule.launch "a, and 1 more like it" flops 16 bytes 128 @merged_0 items 2 outputs 2(...) : ...
    ...
    func.func private @merged_0(%x: ..., %y: ...) -> ... {
      %a = call @twice(%x) : ...
      %b = call @twice(%y) : ...
      return %a, %b : ...
    }
    ```
  }];
  let options = [
    Option<"operands", "operands", "int64_t", "512", "views and random streams that a launch takes, at most">,
    Option<"maxNewBytes", "max-new-bytes", "int64_t", "1048576", "bytes of a group's results that are not persistent">,
    Option<"maxHeldBytes", "max-held-bytes", "int64_t", "33554432", "bytes of chunks whose sums wait for others of their layer">];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::arith::ArithDialect", "::meshwork::transformer::TransformerDialect"];
}

#endif // MESHWORK_SCHEDULE_PASSES
