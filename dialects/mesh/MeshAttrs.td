// Attributes of the mesh dialect: the mesh itself, and who holds what of a tensor.
#ifndef MESHWORK_MESH_ATTRS
#define MESHWORK_MESH_ATTRS

include "dialects/mesh/MeshDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "meshwork/Plan/Enums.td"

class Mesh_Attr<string name, string attrMnemonic> : AttrDef<Mesh_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Mesh_Reduction : I32Enum<"Reduction", "how partial values combine", PlanReduction> {
  let cppNamespace = "::meshwork::mesh";
}
def Mesh_ReductionAttr : EnumAttr<Mesh_Dialect, Mesh_Reduction, "reduction"> {
  let assemblyFormat = "$value";
}

def Mesh_CollectiveKind : I32Enum<"CollectiveKind", "what moves, as plans call it", PlanCollectiveKind> {
  let cppNamespace = "::meshwork::mesh";
}

def Mesh_Direction : I32Enum<"Direction", "which way something moves through the stages of a pipeline", [
    I32EnumCase<"forward", 0>, I32EnumCase<"backward", 1>]> {
  let cppNamespace = "::meshwork::mesh";
}
def Mesh_DirectionAttr : EnumAttr<Mesh_Dialect, Mesh_Direction, "direction"> {
  let assemblyFormat = "$value";
}

def Mesh_MeshAttr : Mesh_Attr<"Mesh", "mesh"> {
  let summary = "Named axes with their sizes, outermost first";
  let description = [{
    The product of the sizes is the number of ranks; ranks are numbered
    row-major. An axis whose parts shard dims of their own is listed as its
    parts, in Shardy's notation: `"tp:(1)2"` is the part of size 2 that comes
    after a product of 1 of the axis `tp`.
    ```mlir
    module attributes {mesh.mesh = #mesh.mesh<"dp"=2, "tp:(1)2"=2, "tp:(2)2"=2>} {}
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names, ArrayRefParameter<"int64_t">:$sizes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Position of an axis, or -1.
    int64_t find(::mlir::StringAttr name) const;
    /// Its size; 0 for one that is not here.
    int64_t sizeOf(::mlir::StringAttr name) const;
    /// Ranks that differ only along `axes`.
    int64_t product(::llvm::ArrayRef<::mlir::StringAttr> axes) const;
  }];
}

def Mesh_DimShardingAttr : Mesh_Attr<"DimSharding", "dim"> {
  let summary = "The axes that split one dim, major first";
  let description = [{
    `{"dp", "tp"}`; with `?` propagation may add axes; `p1` is a priority, 0,
    the strongest, when it is not written. Parts are blocks, but of an axis with
    another layout behind it: `{"cp" zigzag, "tp"}`. Over N ranks of `cp` rank i
    has the chunks i and 2N-1-i of ceil(n / 2N), one behind the other, and `tp`
    cuts these in blocks. Neighbours in zigzag split the dim together.
    (C1) what is in zigzag is one of the axes.
    ```mlir
    #mesh.dim<{"dp", "cp" zigzag, ?}p1>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes, ArrayRefParameter<"::mlir::StringAttr">:$zigzag,
                        "bool":$isOpen, "int64_t":$priority);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1; // C1
  let extraClassDeclaration = [{
    /// A closed split; `layouts` are of the axes, none: all are blocks.
    static DimShardingAttr of(::mlir::MLIRContext *context, ::llvm::ArrayRef<::mlir::StringAttr> axes,
                              ::llvm::ArrayRef<::meshwork::layout::DimLayout> layouts = {});
    ::meshwork::layout::DimLayout layoutOf(::mlir::StringAttr axis) const;
    bool isOfBlocks() const { return getZigzag().empty(); }
  }];
}

def Mesh_ShardingAttr : Mesh_Attr<"Sharding", "sharding"> {
  let summary = "Which part of a tensor each rank holds";
  let description = [{
    One entry for each dim. A dim of size n split over N ranks has blocks of
    ceil(n/N), the last ones short or empty; a second axis splits each block
    again. Over an axis that is not named the tensor is replicated. Over
    `partial` axes each rank holds a part of the sum (or of the maximum).
    ```mlir
    #mesh.sharding<[{"dp"}, {"cp", "tp"}, {?} ]>
    #mesh.sharding<[{}, {"tp"} ], partial = sum {"dp"}>
    #mesh.sharding<[{?}p1 ], replicated = {"tp"}>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::meshwork::mesh::DimShardingAttr">:$dims,
                        ArrayRefParameter<"::mlir::StringAttr">:$replicated,
                        ArrayRefParameter<"::mlir::StringAttr">:$partial, "Reduction":$reduction);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Mesh_CauseAttr : Mesh_Attr<"Cause", "cause"> {
  let summary = "Why a value moves";
  let description = [{
    Its parts: the value that moves; the value that needs it (none when it goes to
    where it is kept); the rest of the sentence for people; the spec's keys
    behind it. Names have `*` for the number of their layer, which
    stands beside them.
    ```mlir
    %y = mesh.all_reduce %x sum over ["dp"] cause "w (gradient)" : tensor<8xf32> -> tensor<8xf32>
    %z = mesh.all_gather %x dim 0 over ["tp"] cause "h.*.ln_1" layer 3 for "h.*.attn.c_attn" layer 3
           why "takes heads, which tp splits (shard.heads)" by ["shard.heads"] : tensor<4xf32> -> tensor<8xf32>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$value, "int64_t":$layer,
                        "::mlir::StringAttr":$user, "int64_t":$userLayer,
                        "::mlir::StringAttr":$reason, ArrayRefParameter<"::mlir::StringAttr">:$annotations);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// In place of the number of a layer where there is none.
    static constexpr int64_t noLayer = -1;
  }];
}

#endif // MESHWORK_MESH_ATTRS
