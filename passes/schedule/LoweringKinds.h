// Kinds of models of LowerOpInterface. Each file Lower*.cpp attaches those of
// the ops that it has an `emit` for; no other file names them.
//
//   static LogicalResult emit(transformer::EmbeddingOp op, Lowering &to);
//   void attachTables(MLIRContext *context) {
//     attach<Computing, transformer::EmbeddingOp>(context);
//   }
#pragma once

#include "passes/schedule/Lowering.h"
#include "passes/schedule/LoweringModels.h"

namespace meshwork::schedule {

/// What a kind of ops has in common besides how it is written.
template <typename Kind, typename Op, bool instruction, bool view, bool bucket>
struct Model : LowerOpInterface::ExternalModel<Kind, Op> {
  bool hasInstruction(::mlir::Operation *) const { return instruction; }
  bool isViewOfOperand(::mlir::Operation *) const { return view; }
  bool needsBucket(::mlir::Operation *) const { return bucket; }
};

/// By the overload of `emit` for it, in the file that attaches it.
template <typename Op, bool instruction, bool view, bool bucket>
struct Emitted : Model<Emitted<Op, instruction, view, bucket>, Op, instruction,
                       view, bucket> {
  ::mlir::LogicalResult lower(::mlir::Operation *op, Lowering &to) const {
    return emit(::llvm::cast<Op>(op), to);
  }
};
/// May need what collectives bring.
template <typename Op> using Computing = Emitted<Op, true, false, true>;
/// Of state, where buckets find what they bring themselves.
template <typename Op> using Moving = Emitted<Op, true, false, false>;
/// The same, and cuts a part out.
template <typename Op> using Cutting = Emitted<Op, true, true, false>;
/// Puts bytes of others side by side.
template <typename Op> using Joining = Emitted<Op, false, false, false>;

template <template <typename> class Kind, typename... Ops>
void attach(::mlir::MLIRContext *context) {
  (Ops::template attachInterface<Kind<Ops>>(*context), ...);
}

// By file.
void attachAttention(::mlir::MLIRContext *context);
void attachElementwise(::mlir::MLIRContext *context);
void attachExperts(::mlir::MLIRContext *context);
void attachParts(::mlir::MLIRContext *context);
void attachRepeat(::mlir::MLIRContext *context);
void attachTables(::mlir::MLIRContext *context);
void attachTransfers(::mlir::MLIRContext *context);

} // namespace meshwork::schedule
