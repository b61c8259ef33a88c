// Facts about ops: set by whoever knows them (import, autodiff, recompute),
// asked by all others, on ops of any dialect. Nobody reads them out of names.
//
//   if (isBackward(op)) ...
//   inheritFacts(user, reshard); // what is made for `user` belongs where it
//   does
#pragma once

#include "dialects/transformer/Transformer.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace meshwork::transformer {

/// Names of the attributes, as the dialect's description tells and verifies.
namespace facts {
inline constexpr ::llvm::StringLiteral pass = "transformer.pass";
inline constexpr ::llvm::StringLiteral notBefore = "transformer.not_before";
inline constexpr ::llvm::StringLiteral kept = "transformer.kept";
inline constexpr ::llvm::StringLiteral ofStep = "transformer.of_step";
inline constexpr ::llvm::StringLiteral constant = "transformer.constant";
inline constexpr ::llvm::StringLiteral head = "transformer.head";
inline constexpr ::llvm::StringLiteral parameter = "transformer.parameter";
inline constexpr ::llvm::StringLiteral layer = "transformer.layer";
inline constexpr ::llvm::StringLiteral stage = "transformer.stage";
// Of an argument of a function:
inline constexpr ::llvm::StringLiteral input = "transformer.input";
// Of the module:
inline constexpr ::llvm::StringLiteral gradientType =
    "transformer.gradient_type";
inline constexpr ::llvm::StringLiteral maxPositions =
    "transformer.max_positions";
inline constexpr ::llvm::StringLiteral balanceCoefficient =
    "transformer.balance_coefficient";
inline constexpr ::llvm::StringLiteral config = "transformer.config";
inline constexpr ::llvm::StringLiteral modelFlops = "transformer.model_flops";
inline constexpr ::llvm::StringLiteral palmAttentionFlops =
    "transformer.palm_attention_flops";
} // namespace facts

/// `forward` where nothing is said.
PassKind passOf(::mlir::Operation *op);
/// Whether `op` is of the backward pass, recomputed or not.
bool isBackward(::mlir::Operation *op);
void setPass(::mlir::Operation *op, PassKind pass);

/// Keeps fusion from running `op` earlier than where it stands.
void setNotBefore(::mlir::Operation *op);
/// Has fusion store the results of `op`, not what they are made of.
void setKept(::mlir::Operation *op);
bool isKept(::mlir::Operation *op);
/// What depends on parameters alone and runs once a step, for all its
/// microbatches.
bool isOfStep(::mlir::Operation *op);
void setOfStep(::mlir::Operation *op);
/// Has autodiff take the results of `op` for constants.
void setConstant(::mlir::Operation *op, bool isConstant = true);
bool isConstant(::mlir::Operation *op);
/// What must not run earlier than where it stands: as `setNotBefore` says, or
/// because it is recomputed, which would then keep values longer, not shorter.
bool staysBehind(::mlir::Operation *op);

/// The layer of the model that `op` is of, or that a parameter declares.
std::optional<int64_t> layerOf(::mlir::Operation *op);
void setLayer(::mlir::Operation *op, std::optional<int64_t> layer);
/// Layers and stages are numbers below this.
inline constexpr int64_t mostLayers = 65536;

/// The stage of a pipeline that runs `op`: 0 where nothing is said.
int64_t stageOf(::mlir::Operation *op);
void setStage(::mlir::Operation *op, int64_t stage);

/// What is built while this lives gets the layer and the stage of `of`, if it
/// has operands: what reads nothing may serve several layers.
class OfSameBlock : public ::mlir::OpBuilder::Listener {
public:
  OfSameBlock(::mlir::OpBuilder &builder, ::mlir::Operation *of)
      : builder(builder), of(of), before(builder.getListener()) {
    builder.setListener(this);
  }
  ~OfSameBlock() override { builder.setListener(before); }
  void notifyOperationInserted(::mlir::Operation *made,
                               ::mlir::OpBuilder::InsertPoint from) override;

private:
  ::mlir::OpBuilder &builder;
  ::mlir::Operation *of;
  ::mlir::OpBuilder::Listener *before;
};

/// Whether `op` begins the head, which makes the loss together with its
/// gradient: in the order of a step the backward pass begins there.
bool isHead(::mlir::Operation *op);
void setHead(::mlir::Operation *op);

/// The parameter whose copy `op` reads; null for most.
::mlir::StringAttr parameterOfCopy(::mlir::Operation *op);

/// The element type of gradients between microbatches; f32 where nothing is
/// said.
::mlir::Type gradientTypeOf(::mlir::ModuleOp module);

/// For `made`, which some pass inserts because of `op`: it is of the same pass,
/// layer and stage, and of the step if that is.
void inheritFacts(::mlir::Operation *op, ::mlir::Operation *made);
/// The same of all that was made in front of `op` since `before` stood there;
/// null: nothing did.
void inheritFactsSince(::mlir::Operation *before, ::mlir::Operation *op);
/// Whether the attribute of this name says where an op belongs, not what it is.
bool isFact(::llvm::StringRef attribute);
/// The launcher's input in an argument of @loss or @microbatch, in the words of
/// Plan.fbs's InputKind: "tokens", "targets" or what `addInput` says. Empty
/// where the launcher knows nothing of it.
::llvm::StringRef inputOf(::mlir::BlockArgument argument);
void setInput(::mlir::BlockArgument argument, ::llvm::StringRef input);
/// The argument of `function` that is this input, added where there is none.
::mlir::Value addInput(::mlir::FunctionOpInterface function,
                       ::llvm::StringRef input, ::mlir::Type type);
/// For parts of a kernel: what stands around them tells.
void dropFacts(::mlir::Operation *op);

} // namespace meshwork::transformer
