// What moves between ranks, on named axes.
#ifndef MESHWORK_MESH_OPS
#define MESHWORK_MESH_OPS

include "dialects/mesh/MeshAttrs.td"
include "dialects/transformer/TransformerInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// What all ops here answer. They come when types and paddings are settled.
defvar Mesh_Answers = Transformer_Apart # [DeclareOpInterfaceMethods<TensorOpInterface>, Transformer_StaysF32<"false">,
                                           Transformer_TakesPadding, Transformer_LeavesPadding<"any">, Transformer_CountsNothing,
                                           Transformer_StateUse<"none">, Transformer_AddsUp<"false">, Transformer_DrawsWords<"false">,
                                           Transformer_Source<"false">, Transformer_NoKernelSizes];

class Mesh_Op<string mnemonic, list<Trait> traits>
    : Op<Mesh_Dialect, mnemonic, [Pure] # Mesh_Answers # traits>;

def Mesh_ReshardOp : Mesh_Op<"reshard", [Transformer_Again<"dear">, Transformer_WeightGradient<"none">, SameOperandsAndResultType]> {
  let summary = "Moves a whole tensor from one sharding to another";
  let description = [{
    Values and global shape stay; only which rank holds which part changes.
    Gone after `-partition-localize`.
    (C1) both shardings have an entry for each dim, name axes of the mesh, and each axis once.
    ```mlir
    %y = mesh.reshard %x from <[{"dp"}, {"tp"} ]> to <[{"dp"}, {} ]> cause "w needs dim 1 whole" : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, Mesh_ShardingAttr:$source, Mesh_ShardingAttr:$target, Mesh_CauseAttr:$cause);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `from` $source `to` $target `cause` $cause attr-dict `:` type($result)";
  let hasVerifier = 1; // C1
}

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::meshwork::mesh";
  let description = [{
    Communication between the ranks that differ only along `axes`.
    (C1) names at least one axis of the mesh, each once.
  }];
  let methods = [
    InterfaceMethod<"The axes, major first.", "::mlir::ArrayAttr", "getAxes">,
    InterfaceMethod<"Why it is there.", "::meshwork::mesh::CauseAttr", "getCause">,
    InterfaceMethod<"What it does with the tensors of a group.", "::meshwork::mesh::Movement", "getMovement">,
    InterfaceMethod<[{
      Bytes each rank sends on a ring of `ranks` ranks. Source: Patarasuk and
      Yuan, J. Parallel Distrib. Comput. 69 (2009) 117-124.
      }], "uint64_t", "getBytesSent", (ins "int64_t":$ranks)>
  ];
}

/// A collective on local tensors.
class Mesh_Collective<string mnemonic, dag operands, string format, string again, list<Trait> traits = []>
    : Mesh_Op<mnemonic, [DeclareOpInterfaceMethods<CollectiveOpInterface>, Transformer_Again<again>,
                         Transformer_WeightGradient<"moves">] # traits> {
  let arguments = !con((ins AnyRankedTensor:$input), operands, (ins StrArrayAttr:$axes, Mesh_CauseAttr:$cause));
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input " # format # " `over` $axes `cause` $cause attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1; // (C1) and what the op adds
}

def Mesh_AllReduceOp : Mesh_Collective<"all_reduce", (ins Mesh_ReductionAttr:$reduction), "$reduction", "dear", [SameOperandsAndResultType]> {
  let summary = "Combines partial values; every rank gets the result";
  let description = [{
    Sums run in f32 in the order of ranks along the axes.
    ```mlir
    %y = mesh.all_reduce %x sum over ["dp"] cause "gradients are partial over dp" : tensor<8xf32> -> tensor<8xf32>
    ```
  }];
}

def Mesh_AllGatherOp : Mesh_Collective<"all_gather", (ins I64Attr:$dim), "`dim` $dim", "cheap"> {
  let summary = "Puts the ranks' blocks of a dim side by side, on every rank";
  let description = [{
    (C2) the input's dim is ceil(result's dim / ranks); the other dims are equal.
    ```mlir
    %y = mesh.all_gather %x dim 0 over ["tp"] cause "..." : tensor<4x8xf32> -> tensor<8x8xf32>
    ```
  }];
}

def Mesh_ReduceScatterOp : Mesh_Collective<"reduce_scatter", (ins Mesh_ReductionAttr:$reduction, I64Attr:$dim), "$reduction `dim` $dim", "dear"> {
  let summary = "Combines partial values; each rank gets its block of a dim";
  let description = [{
    Elements beyond the input's are zero.
    (C2) the result's dim is ceil(input's dim / ranks); the other dims are equal.
    ```mlir
    %y = mesh.reduce_scatter %x sum dim 0 over ["tp"] cause "..." : tensor<8x8xf32> -> tensor<4x8xf32>
    ```
  }];
}

def Mesh_AllToAllOp : Mesh_Collective<"all_to_all", (ins I64Attr:$gather_dim, I64Attr:$split_dim), "`gather` $gather_dim `split` $split_dim", "dear"> {
  let summary = "Moves axes from one dim to another";
  let description = [{
    (C2) `gather_dim` grows as in `all_gather`, `split_dim` shrinks as in `slice`; they differ.
    ```mlir
    %y = mesh.all_to_all %x gather 0 split 1 over ["tp"] cause "..." : tensor<4x8xf32> -> tensor<8x4xf32>
    ```
  }];
}

def Mesh_PermuteOp : Mesh_Collective<"permute", (ins DenseI64ArrayAttr:$sources), "`sources` $sources", "dear", [SameOperandsAndResultType]> {
  let summary = "Each rank receives the tensor of another rank of its group";
  let description = [{
    A rank whose source is -1 receives nothing: its result is zero.
    (C2) `sources` has an index of the group, or -1, for each of its ranks, no index twice.
    ```mlir
    %y = mesh.permute %x sources [0, 2, 1, 3] over ["a", "b"] cause "..." : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
}

def Mesh_SliceOp : Mesh_Collective<"slice", (ins I64Attr:$dim), "`dim` $dim", "cheap"> {
  let summary = "Keeps this rank's block of a dim; nothing is sent";
  let description = [{
    Elements beyond the input's are zero.
    (C2) the result's dim is ceil(input's dim / ranks); the other dims are equal.
    ```mlir
    %y = mesh.slice %x dim 1 over ["tp"] cause "..." : tensor<8x8xf32> -> tensor<8x4xf32>
    ```
  }];
}

def PartOpInterface : OpInterface<"PartOpInterface"> {
  let cppNamespace = "::meshwork::mesh";
  let description = "Numbers of a rank's part of a dim, which the launcher writes.";
  let methods = [InterfaceMethod<"Which numbers, and of which dim.", "::meshwork::mesh::PartNumbers", "getNumbers">];
}

/// What all of these answer.
defvar Mesh_PartAnswers = [DeclareOpInterfaceMethods<PartOpInterface>, Transformer_Again<"dear">, Transformer_WeightGradient<"none">];

/// A number that depends on where a rank's part of a dim of `size` elements lies.
class Mesh_PartOp<string mnemonic> : Mesh_Op<mnemonic, Mesh_PartAnswers> {
  let arguments = (ins StrArrayAttr:$axes, I64Attr:$size);
  let results = (outs 0DTensorOf<[I32]>:$result);
  let assemblyFormat = "`over` $axes `of` $size attr-dict `:` type($result)";
  let hasVerifier = 1; // C1
}

def Mesh_CoordinateOp : Mesh_PartOp<"coordinate"> {
  let summary = "Where this rank's part of a dim begins";
  let description = [{
    (C1) names at least one axis of the mesh, each once; the size is positive.
    ```mlir
    // 129 on the second rank of "tp"=2
    %c = mesh.coordinate over ["tp"] of 257 : tensor<i32>
    ```
  }];
}

def Mesh_ExtentOp : Mesh_PartOp<"extent"> {
  let summary = "How many elements of a dim this rank has; behind them its part is padding";
  let description = [{
    (C1) names at least one axis of the mesh, each once; the size is positive.
    ```mlir
    // 128 on the second rank of "tp"=2
    %n = mesh.extent over ["tp"] of 257 : tensor<i32>
    ```
  }];
}

def Mesh_PositionsOp : Mesh_Op<"positions", Mesh_PartAnswers> {
  let summary = "Which elements of a dim of `size` this rank has, in the order of its part; -1 behind them";
  let description = [{
    For parts that are no blocks, of which `coordinate` and `extent` say all.
    (C1) the split names at least one axis of the mesh, each once; the size is positive.
    With `hop`, those of the rank so many places before this one, cyclically.
    (C2) the result has one dim, as long as each rank's part.
    (C3) the hop is less than the number of ranks.
    ```mlir
    // [2, 3, 4, 5] on the second rank of "cp"=2, [0, 1, 6, -1] on the first
    %p = mesh.positions of 7 over {"cp" zigzag} : tensor<4xi32>
    ```
  }];
  let arguments = (ins Mesh_DimShardingAttr:$split, I64Attr:$size, DefaultValuedAttr<I64Attr, "0">:$hop);
  let results = (outs 1DTensorOf<[I32]>:$result);
  let assemblyFormat = "`of` $size `over` $split (`hop` $hop^)? attr-dict `:` type($result)";
  let hasVerifier = 1; // C1 C2 C3
}

/// Between neighbouring stages of a pipeline, over one axis of the mesh.
class Mesh_StageOp<string mnemonic, dag operands, dag outs>
    : Op<Mesh_Dialect, mnemonic, Mesh_Answers # [Transformer_Again<"never">, Transformer_WeightGradient<"none">]> {
  let arguments = !con(operands, (ins Mesh_DirectionAttr:$direction, StrAttr:$axis, I64Attr:$peer));
  let results = outs;
  let hasVerifier = 1; // C1
}

def Mesh_SendOp : Mesh_StageOp<"send", (ins Variadic<AnyRankedTensor>:$inputs), (outs)> {
  let summary = "Gives tensors to the rank that has the next stage, or the stage before";
  let description = [{
    Ends the list that it stands in. The peer's list begins with a `receive` of tensors of the same types.
    (C1) the mesh has the axis, and a coordinate `peer` along it.
    ```mlir
    mesh.send forward %x over "pp" to 1 : tensor<4x8xf32>
    ```
  }];
  let assemblyFormat = "$direction $inputs `over` $axis `to` $peer attr-dict `:` type($inputs)";
}

def Mesh_ReceiveOp : Mesh_StageOp<"receive", (ins), (outs Variadic<AnyRankedTensor>:$results)> {
  let summary = "Takes what a `send` of the stage before gives, or of the next stage";
  let description = [{
    (C1) the mesh has the axis, and a coordinate `peer` along it.
    ```mlir
    %x = mesh.receive forward over "pp" from 0 : tensor<4x8xf32>
    ```
  }];
  let assemblyFormat = "$direction `over` $axis `from` $peer attr-dict `:` type($results)";
}

#endif // MESHWORK_MESH_OPS
