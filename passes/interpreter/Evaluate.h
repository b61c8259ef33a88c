// Functions from operand values to result values, one for each op, and what an
// instruction of a plan does. Private to this folder, and to passes/verify.
#pragma once

#include "dialects/transformer/Transformer.h"
#include "meshwork/Plan/Plan.h"
#include "passes/interpreter/Views.h"

#include <cmath>
#include <functional>
#include <map>
#include <optional>

namespace meshwork::interpreter {

using Tensors = mlir::SmallVector<Tensor>;
using Results = mlir::FailureOr<Tensors>;

/// Seed, step and first sample, as dropout reads them; for attention on a rank
/// with some of the heads, also the first one's number.
struct RandomInputs {
  double seed = 0, step = 0, firstSample = 0;
  int64_t firstHead = 0;
};
class Frame;

/// Which function evaluates which op, and which runs which instruction. Either
/// is added in the file that has its formula, and nowhere else.
class Evaluators {
public:
  using Function = std::function<Results(mlir::Operation *,
                                         mlir::ArrayRef<Tensor>, Frame &)>;
  using Run = std::function<void(const void *, Views &)>;
  /// All there are.
  static const Evaluators &all();
  /// Null where there is none.
  const Function *find(mlir::Operation *op) const {
    auto found = functions.find(op->getName().getTypeID());
    return found == functions.end() ? nullptr : &found->second;
  }
  /// False where there is none, as of what needs other ranks.
  bool run(const plan::Instruction &instruction, Views &views) const {
    auto found = runs.find(instruction.op_type());
    if (found != runs.end())
      found->second(instruction.op(), views);
    return found != runs.end();
  }

  template <typename Op>
  void add(Results (*evaluate)(Op, mlir::ArrayRef<Tensor>)) {
    functions[mlir::TypeID::get<Op>()] =
        [evaluate](mlir::Operation *op, mlir::ArrayRef<Tensor> operands,
                   Frame &) { return evaluate(llvm::cast<Op>(op), operands); };
  }
  /// Of an op that asks more of its rank than its operands.
  template <typename Op>
  void add(Results (*evaluate)(Op, mlir::ArrayRef<Tensor>, Frame &)) {
    functions[mlir::TypeID::get<Op>()] =
        [evaluate](mlir::Operation *op, mlir::ArrayRef<Tensor> operands,
                   Frame &frame) {
          return evaluate(llvm::cast<Op>(op), operands, frame);
        };
  }
  /// Of an instruction, by its definition in Plan.fbs.
  template <typename Op> void add(void (*run)(const Op &, Views &)) {
    constexpr plan::Operation kind = plan::OperationTraits<Op>::enum_value;
    runs[kind] = [run](const void *op, Views &views) {
      run(*static_cast<const Op *>(op), views);
    };
  }

private:
  llvm::DenseMap<mlir::TypeID, Function> functions;
  std::map<plan::Operation, Run> runs;
};
// By file.
void addAttention(Evaluators &to);
void addElementwise(Evaluators &to);
void addExpertRows(Evaluators &to);
void addExperts(Evaluators &to);
void addFused(Evaluators &to);
void addHeadLoss(Evaluators &to);
void addMovement(Evaluators &to);
void addProducts(Evaluators &to);
void addRouting(Evaluators &to);
void addSlots(Evaluators &to);
void addTables(Evaluators &to);

/// What both are told beside their tensors; see AttentionPart in Plan.fbs.
struct AttentionTerms {
  bool causal = false;
  int64_t window = 0;             // 0: unlimited
  double scale = 1, cap = 0;      // 0: none
  double rate = 0, keepScale = 1; // of dropout
  uint32_t stream = 0;
  int64_t totalHeads = 0, totalKeys = 0; // 0: as many as there are
  std::optional<Tensor> documents, positions, keys;
  RandomInputs random;
};
/// out and lse.
Tensors attend(const AttentionTerms &terms, const Tensor &q, const Tensor &k,
               const Tensor &v);
/// dq, dk and dv, of q, k, v, out, lse and the gradient of out.
Tensors attendBackward(const AttentionTerms &terms,
                       mlir::ArrayRef<Tensor> operands);

/// gelu(x), of tanh, and its derivative. Both constants are f32, in kernels and
/// in products that do it along the way; what is made of them is not rounded.
struct Gelu {
  explicit Gelu(double x)
      : x(x), t(std::tanh(root * (x + cubic * x * x * x))) {}
  double value() const { return x / 2 * (1 + t); }
  double slope() const {
    return (1 + t) / 2 + x / 2 * (1 - t * t) * root * (1 + 3 * cubic * x * x);
  }
  static constexpr double root = 0.79788456080286535588f, cubic = 0.044715f;
  double x, t;
};

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
