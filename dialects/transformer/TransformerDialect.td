// The transformer dialect: a model, and one training step of it, on whole tensors.
#ifndef MESHWORK_TRANSFORMER_DIALECT
#define MESHWORK_TRANSFORMER_DIALECT

include "mlir/IR/OpBase.td"

def Transformer_Dialect : Dialect {
  let name = "transformer";
  let summary = "A transformer and its training step, on whole tensors";
  let description = [{
    Ops act on whole tensors: nothing here knows about ranks. Every dim of a
    tensor has a logical name, kept in the tensor's encoding, so that a
    sharding spec, a cost model and an error can speak of `heads` or `vocab`.

    Two layers live here. *Model* ops (`rms_norm`, `rope`, `gelu`, ...) are what
    people write and `meshwork import` emits. *Primitive* ops (`map`, `reduce`,
    `roll`, `slice`, `contract`, ...) are what `-transformer-decompose` leaves,
    and what autodiff, fusion and code generation understand.
  }];
  let cppNamespace = "::meshwork::transformer";
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let hasConstantMaterializer = 0;
  let extraClassDeclaration = "void registerAttributes();";
}

class Transformer_Op<string mnemonic, list<Trait> traits = []>
    : Op<Transformer_Dialect, mnemonic, traits>;

#endif // MESHWORK_TRANSFORMER_DIALECT
