// The mesh dialect: who holds what, and what moves between ranks.
#ifndef MESHWORK_MESH_DIALECT
#define MESHWORK_MESH_DIALECT

include "mlir/IR/OpBase.td"

def Mesh_Dialect : Dialect {
  let name = "mesh";
  let summary = "Shardings over named mesh axes, and the communication they need";
  let description = [{
    The mesh is the module's attribute `mesh.mesh`. Values of whole tensors have
    shardings: an op's `mesh.shardings`, one for each result, and a function
    argument's `mesh.sharding`. `mesh.reshard` changes them; partitioning turns
    it into collectives on local tensors, which name axes and say why they are
    there. `mesh.stored` of an op on state says how the state lies between
    instructions. `mesh.chunk` says of a collective that it moves a chunk, beside
    the products of other chunks, and travels by itself. Of a product it says
    that its rows may lie apart in the whole.
    (A1) `mesh.mesh` is a mesh, on a module.
    (A2) `mesh.shardings` has an entry for each result, a sharding or `unit`.
    (A3) a sharding has an entry for each dim, and names axes of the mesh.
    (A4) `mesh.chunk` is `unit`.
  }];
  let cppNamespace = "::meshwork::mesh";
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    static constexpr ::llvm::StringLiteral meshName = "mesh.mesh";
    static constexpr ::llvm::StringLiteral shardingName = "mesh.sharding";
    static constexpr ::llvm::StringLiteral shardingsName = "mesh.shardings";
    static constexpr ::llvm::StringLiteral storedName = "mesh.stored";
    /// Why values lie as they do (Provenance.h), beside the IR.
    ::std::shared_ptr<Provenance> notes;
  }];
}

#endif // MESHWORK_MESH_DIALECT
