// One function per op: operand values in, result values out. Private to this
// folder.
#pragma once

#include "dialects/transformer/Transformer.h"
#include "passes/interpreter/Tensor.h"

namespace meshwork::interpreter {

using Tensors = mlir::SmallVector<Tensor>;
using Results = mlir::FailureOr<Tensors>;

Results evaluate(transformer::MapOp op, mlir::ArrayRef<Tensor> operands);
Results evaluate(transformer::ReduceOp op, mlir::ArrayRef<Tensor> operands);
Results evaluate(transformer::RollOp op, mlir::ArrayRef<Tensor> operands);
Results evaluate(transformer::FusedOp op, mlir::ArrayRef<Tensor> operands);
Results evaluate(transformer::SliceOp op, mlir::ArrayRef<Tensor> operands);
Results evaluate(transformer::UnsliceOp op, mlir::ArrayRef<Tensor> operands);
Results evaluate(transformer::ContractOp op, mlir::ArrayRef<Tensor> operands);
Results evaluate(transformer::ProductOp op, mlir::ArrayRef<Tensor> operands);
Results evaluate(transformer::EmbeddingOp op, mlir::ArrayRef<Tensor> operands);
Results evaluate(transformer::EmbeddingGradOp op,
                 mlir::ArrayRef<Tensor> operands);
Results evaluate(transformer::HeadLossOp op, mlir::ArrayRef<Tensor> operands);
Results evaluate(transformer::HeadLossGradOp op,
                 mlir::ArrayRef<Tensor> operands);
Results evaluate(transformer::RotaryTableOp op,
                 mlir::ArrayRef<Tensor> operands);

/// Seed, step and first sample, as dropout reads them; for attention on a rank
/// with some of the heads, also the first one's number.
struct RandomInputs {
  double seed = 0, step = 0, firstSample = 0;
  int64_t firstHead = 0;
};
Results evaluate(transformer::AttentionOp op, mlir::ArrayRef<Tensor> operands,
                 RandomInputs random);
Results evaluate(transformer::AttentionGradOp op,
                 mlir::ArrayRef<Tensor> operands, RandomInputs random);

/// What both are told beside their tensors; see Attention in Plan.fbs.
struct AttentionTerms {
  bool causal = false;
  int64_t window = 0; // 0: unlimited
  double scale = 1;
  double rate = 0, keepScale = 1; // of dropout
  uint32_t stream = 0;
  int64_t totalHeads = 0, totalKeys = 0; // 0: as many as there are
  const Tensor *documents = nullptr, *positions = nullptr, *keys = nullptr;
  RandomInputs random;
};
/// out and lse.
Tensors attend(const AttentionTerms &terms, const Tensor &q, const Tensor &k,
               const Tensor &v);
/// dq, dk and dv, of q, k, v, out, lse and the gradient of out.
Tensors attendBackward(const AttentionTerms &terms,
                       mlir::ArrayRef<Tensor> operands);

/// What a slice of this type along dim `position` from `offset` on finds.
Tensor sliceOf(const Tensor &whole, mlir::RankedTensorType type,
               int64_t position, int64_t offset);
/// Writes `part` where a slice along dim `position` from `offset` on would find
/// it; the dim is gone from `part` when that has one less.
void writeSlice(Tensor &whole, const Tensor &part, int64_t position,
                int64_t offset);

/// The elements of `input` combined into `result`, whose type is the input's
/// less some dims. Only those elements count for which `counts` holds.
Tensor reduceElements(transformer::Reduction kind, mlir::RankedTensorType type,
                      const Tensor &input, mlir::RankedTensorType result,
                      mlir::function_ref<bool(mlir::ArrayRef<int64_t>)> counts);

/// `value`, an f32, rounded at random to a neighbour in bf16. See
/// `transformer.stochastic_round`.
double stochasticallyRounded(double value, RandomInputs random, uint32_t stream,
                             uint64_t index);

/// To nearest even in an f8 type; what is beyond its largest number becomes
/// that number, NaN stays NaN.
double roundedToF8(double value, mlir::Type format);

/// 0, or 1 / (1 - rate): the factor of the element at `index` of the step's
/// global tensor. See `transformer.dropout_mask`.
double dropoutFactor(RandomInputs random, uint32_t stream, double rate,
                     uint64_t index);

} // namespace meshwork::interpreter
