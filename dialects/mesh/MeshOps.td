// The mesh dialect: what moves between ranks, on named axes.
#ifndef MESHWORK_MESH_OPS
#define MESHWORK_MESH_OPS

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Mesh_Dialect : Dialect {
  let name = "mesh";
  let summary = "Communication between ranks, along named mesh axes";
  let description = [{
    The axes themselves are a `mesh.axes` attribute of the module, outermost
    first: `mesh.axes = {dp = 2 : i64}`. Collectives name axes and say why they
    are there.
  }];
  let cppNamespace = "::meshwork::mesh";
}

def Mesh_AllReduceOp : Op<Mesh_Dialect, "all_reduce", [Pure, SameOperandsAndResultType]> {
  let summary = "Adds up partial values over mesh axes; every rank gets the sum";
  let description = [{
    Sums run in f32 in the order of ranks along the axes.
    (C1) names at least one axis, each once.
    ```mlir
    %y = mesh.all_reduce %x over ["dp"] cause "gradients are partial over dp" : tensor<8xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, StrArrayAttr:$axes, StrAttr:$cause);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `over` $axes `cause` $cause attr-dict `:` type($result)";
  let hasVerifier = 1; // C1
}

#endif // MESHWORK_MESH_OPS
