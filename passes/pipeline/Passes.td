// Passes that cut a step into the stages of a pipeline.
#ifndef MESHWORK_PIPELINE_PASSES
#define MESHWORK_PIPELINE_PASSES
include "mlir/Pass/PassBase.td"

def CutStagesPass : Pass<"pipeline-cut-stages", "::mlir::ModuleOp"> {
  let summary = "Makes of one step on a rank's tensors one step for each coordinate along the pipeline's axis";
  let description = [{
    Before: @microbatch and @update of the whole model, on local shapes with all
    collectives (-partition-localize). After: a module for each coordinate along
    `axis`, in their order, with a @microbatch of the virtual stages that it
    holds and an @update of their parameters. Lists begin with
    `transformer.stage_list`; values go from stage to stage by `mesh.send` and
    `mesh.receive`. The loss and the sum of squares behind the gradient norm are
    added up over the axis, and gradients of parameters that two stages use.
    With one stage the step stays as it is. Each module carries the order of its
    actions, `schedule.action_table`; with one stage `gpipe` is all forwards
    first, any other schedule one microbatch after the other.

    Layers go to stages as `layers` says, one number for each virtual stage, or
    so that the most expensive stage is as cheap as can be. There are as many
    layers as the highest `layer` of a parameter tells, and each must have ops.
    What has no layer
    goes where its operands are; what depends on parameters and inputs alone is
    made wherever it is used.

    Ranks along axes of `scatter` may all have a value that goes to the next
    stage. Each then sends a part, and the parts are gathered there, if that
    takes less time on `machine`.
    ```mlir
    // meshwork-opt -pipeline-cut-stages="axis=pp scatter=tp machine=h100x8"
    !x = tensor<4096x4096xf32, #transformer.dims<batch, embed>>
    module attributes {mesh.mesh = #mesh.mesh<"pp"=2, "tp"=8>} {
      func.func @microbatch() {
        %v = transformer.parameter "v" layer 0 init <constant, 1.0> : !x
        %w = transformer.parameter "w" layer 1 init <constant, 1.0> : !x
        %y = transformer.roll %v by 1 {transformer.layer = 0 : i64} : !x
        %z = transformer.contract "be,be->be" %y, %w {transformer.layer = 1 : i64} : !x, !x -> !x
        return
      }
      func.func @update() { return }
    }
    // becomes
    transformer.stage_list forward stage 0
    ...
    %y = transformer.roll %v by 1 ...
    %part = mesh.slice %y dim 0 over ["tp"] ... -> tensor<512x4096xf32, ...>
    mesh.send forward %part over "pp" to 1 : ...
    ...
    transformer.stage_list forward stage 1
    %p = mesh.receive forward over "pp" from 0 ...
    %r = mesh.all_gather %p dim 0 over ["tp"] ...
    ...
    %z = transformer.contract "be,be->be" %r, ...
    ```
  }];
  let options = [
    Option<"axis", "axis", "std::string", "", "the axis of the mesh">,
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "the schedule, which places the virtual stages: a name, or lines of CSV with / between them">,
    Option<"virtualStages", "virtual-stages", "int64_t", "0", "on each rank; 0: the schedule's own">,
    Option<"microbatches", "microbatches", "int64_t", "1", "of a step">,
    ListOption<"times", "times", "int64_t", "of each virtual stage, what \"auto\" goes by: what F, I, W and the transfer to the next stage take, in one unit; none: F, I and W take 1">,
    Option<"kept", "kept", "int64_t", "0", "the most microbatches that a rank keeps under \"auto\", counted in virtual stages; 0: any">,
    ListOption<"layers", "layers", "int64_t", "layers of each virtual stage; none: balanced">,
    ListOption<"scatter", "scatter", "std::string", "axes over which a value may go in parts; none of them splits the batch">,
    Option<"machine", "machine", "::meshwork::cost::Machine", "::meshwork::cost::defaultMachine(::meshwork::spec::Device::cpu)", "whose links decide what gains time">
  ];
  let dependentDialects = ["::meshwork::mesh::MeshDialect", "::meshwork::schedule::ScheduleDialect"];
}

def FoldRanksPass : Pass<"pipeline-fold-ranks", "::mlir::ModuleOp"> {
  let summary = "Leaves one rank's module of those that are equal but for names and numbers";
  let description = [{
    Before: a module for each coordinate along the pipeline's axis
    (-pipeline-cut-stages). After: of several that are equal, the first one.
    Equal ones may differ in names of parameters and in numbers of layers, stages
    and peers; `schedule.equal_ranks` says what becomes what. -schedule-lower hands that on to
    the rank's program, and -pipeline-unfold-ranks makes the other programs.
    Passes in between may not go by names, and by numbers of layers and stages
    only by their order, which is the same. Layers that `policies` has recomputed
    in different ways are different.
    ```mlir
    // meshwork-opt -pipeline-fold-ranks
    !x = tensor<4xf32, #transformer.dims<embed>>
    module {
      module {
        func.func @microbatch() {
          %w = transformer.parameter "h.0.w" layer 0 init <constant, 1.0> : !x
          return
        }
      }
      module {
        func.func @microbatch() {
          %w = transformer.parameter "h.1.w" layer 1 init <constant, 1.0> : !x
          return
        }
      }
    }
    // becomes
    module attributes {schedule.equal_ranks = [#schedule.equal_rank<1, [], ["h.0", "h.1"], layers = [0, 1], ...>]} {
    ...
    %w = transformer.parameter "h.0.w" ...
    ```
  }];
  let options = [
    ListOption<"policies", "policies", "::meshwork::spec::Recompute", "of -memory-recompute: one for all layers, or one for each">
  ];
  let dependentDialects = ["::meshwork::schedule::ScheduleDialect"];
}

def UnfoldRanksPass : Pass<"pipeline-unfold-ranks", "::mlir::ModuleOp"> {
  let summary = "Makes the programs of ranks that another one stands for";
  let description = [{
    Before: some `schedule.program` carries `schedule.equal_ranks`
    (-pipeline-fold-ranks). After: a program for each coordinate, in their order,
    each with names, numbers and actions of its own. Nothing else changes.
    ```mlir
    // meshwork-opt -pipeline-unfold-ranks
    module {
      schedule.program @rank0 along "pp" attributes {schedule.equal_ranks = [#schedule.equal_rank<1, [1F0], ["h.0", "h.1"],
          layers = [0, 1], stages = [0, 1], peers = []>]} {
        %w = schedule.buffer "h.0.w" weights persistent : memref<64xi8>
        schedule.list forward {
        }
        schedule.actions [0F0]
      }
    }
    // becomes
    schedule.program @rank0 ...
    ...
    schedule.program @rank1 along "pp" {
    ...
    %w = schedule.buffer "h.1.w" ...
    ...
    schedule.list forward stage 1 {
    ...
    schedule.actions [1F0]
    ```
  }];
  let dependentDialects = ["::meshwork::schedule::ScheduleDialect"];
}

def FoldLayersPass : Pass<"pipeline-fold-layers", "::mlir::ModuleOp"> {
  let summary = "Leaves out layers of a model that are equal to others";
  let description = [{
    Before: a model, @loss. After: of layers that are equal but for names of
    parameters and numbers, every period of one to eight layers, two periods
    are left at both ends. `schedule.folded_layers` says which are left out:
    the first, the length of a period, and how many periods. -pipeline-unfold-layers makes
    them again.
    Passes in between may not go by names, and by numbers of layers only by their
    order. What is told of values beside the IR (mesh/Provenance.h) is told of
    those that are there.
    ```mlir
    // meshwork-opt -pipeline-fold-layers
    !x = tensor<4xf32, #transformer.dims<embed>>
    func.func @loss(%x: !x) -> !x {
      %w0 = transformer.parameter "h.0.w" layer 0 init <constant, 1.0> : !x
      %x0 = transformer.add %x, %w0 : !x, !x -> !x
      %w1 = transformer.parameter "h.1.w" layer 1 init <constant, 1.0> : !x
      %x1 = transformer.add %x0, %w1 : !x, !x -> !x
      %w2 = transformer.parameter "h.2.w" layer 2 init <constant, 1.0> : !x
      %x2 = transformer.add %x1, %w2 : !x, !x -> !x
      %w3 = transformer.parameter "h.3.w" layer 3 init <constant, 1.0> : !x
      %x3 = transformer.add %x2, %w3 : !x, !x -> !x
      %w4 = transformer.parameter "h.4.w" layer 4 init <constant, 1.0> : !x
      %x4 = transformer.add %x3, %w4 : !x, !x -> !x
      %w5 = transformer.parameter "h.5.w" layer 5 init <constant, 1.0> : !x
      %x5 = transformer.add %x4, %w5 : !x, !x -> !x
      return %x5 : !x
    }
    // becomes
    module attributes {schedule.folded_layers = array<i64: 3, 1, 1>} {
    ...
    %5 = transformer.add %3, %4 ...
    %6 = transformer.parameter "h.4.w" layer 4 ...
    %7 = transformer.add %5, %6 ...
    ```
  }];
  let dependentDialects = ["::meshwork::schedule::ScheduleDialect"];
}

def UnfoldLayersPass : Pass<"pipeline-unfold-layers", "::mlir::ModuleOp"> {
  let summary = "Makes the layers that others stand for";
  let description = [{
    Before: `schedule.folded_layers` (-pipeline-fold-layers) says which layers
    are left out. After: @microbatch and @update have them, made from those
    before them, with names, numbers and operands of their own. Sums of numbers
    get their terms.
    It is an error if those before and those behind are not equal, or if
    anything but a sum reads a value of all of them. With `of=update` only
    @update gets its layers, and `of=microbatch` may follow.
    ```mlir
    // meshwork-opt -pipeline-unfold-layers
    !x = tensor<4xf32, #transformer.dims<embed>>
    module attributes {schedule.folded_layers = array<i64: 2, 1, 2>} {
      func.func @microbatch(%x: !x) -> !x {
        %w0 = transformer.parameter "h.0.w" layer 0 init <constant, 1.0> : !x
        %x0 = transformer.add %x, %w0 : !x, !x -> !x
        %w1 = transformer.parameter "h.1.w" layer 1 init <constant, 1.0> : !x
        %x1 = transformer.add %x0, %w1 : !x, !x -> !x
        %w4 = transformer.parameter "h.4.w" layer 4 init <constant, 1.0> : !x
        %x4 = transformer.add %x1, %w4 : !x, !x -> !x
        %w5 = transformer.parameter "h.5.w" layer 5 init <constant, 1.0> : !x
        %x5 = transformer.add %x4, %w5 : !x, !x -> !x
        return %x5 : !x
      }
    }
    // becomes
    %4 = transformer.parameter "h.2.w" layer 2 ...
    %5 = transformer.add %3, %4 ...
    %6 = transformer.parameter "h.3.w" layer 3 ...
    %7 = transformer.add %5, %6 ...
    %8 = transformer.parameter "h.4.w" layer 4 ...
    %9 = transformer.add %7, %8 ...
    ```
  }];
  let options = [
    Option<"of", "of", "std::string", "", "the function that is meant; all, where it is not said">
  ];
}

#endif // MESHWORK_PIPELINE_PASSES
