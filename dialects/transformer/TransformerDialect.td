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

    *Facts* about an op of a step stand on it, whatever dialect it is of, as
    attributes that this dialect declares (Facts.h):
    (F1) no other attribute begins with `transformer.`, and each stands where it
         means something: those of the module on the module only.
    (F2) `transformer.pass` is `#transformer.pass<backward>` or `<recomputed>`;
         what has none is of the forward pass.
    (F3) `transformer.not_before` has no value: fusion runs the op's kernel no
         earlier than where the op stands.
    (F4) `transformer.parameter` names the parameter whose copy the op reads.
    (F5) `transformer.layer`, from 0 to 65535, is the layer of the model that
         the op is of.
    (F6) of the module: `transformer.gradient_type` is f32 or bf16,
         `transformer.max_positions` a positive i64, `transformer.model_flops`,
         `transformer.palm_attention_flops` and
         `transformer.balance_coefficient`, the model's own, are f64.
    (F7) `transformer.head` has no value: the op begins the head, which makes the
         loss with its gradient, so a step's backward list begins there.
    (F8) of the module: `transformer.config` is the text of the config.json that
         the model was imported from. Nothing here reads it; an export of the
         weights writes it beside them.
    (F9) `transformer.stage`, from 1 to 65535, is the stage of a pipeline that
         runs the op; what has none is of the first, 0. No phase takes a model
         with another one yet.
    (F10) of an argument of a function: `transformer.input` says what the
         launcher gives in it, `documents`, `document_positions`,
         `inner_targets` or `target_counts`; without it the first is tokens,
         the second targets, the third documents.
    (F11) `transformer.kept` has no value: fusion stores the op's results, which
         stand for larger values that then need not wait in memory.
    (F12) `transformer.of_step` has no value: the op depends on parameters
         alone and runs once a step, for all its microbatches.
    (F13) `transformer.constant` has no value: autodiff takes the op's results
         for constants, and the attribute away.
    ```mlir
    %y = mesh.all_gather %x dim 0 over ["dp"] cause "w" {transformer.pass = #transformer.pass<backward>} : tensor<2xf32, #transformer.dims<embed>> -> tensor<4xf32, #transformer.dims<embed>>
    ```
  }];
  let cppNamespace = "::meshwork::transformer";
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let hasConstantMaterializer = 0;
  let hasOperationAttrVerify = 1; // F1 to F9, F11 to F13
  let hasRegionArgAttrVerify = 1; // F1 F10
  let hasRegionResultAttrVerify = 1; // F1
  let extraClassDeclaration = "void registerAttributes();";
}

class Transformer_Op<string mnemonic, list<Trait> traits = []>
    : Op<Transformer_Dialect, mnemonic, traits>;

#endif // MESHWORK_TRANSFORMER_DIALECT
