// The transformer dialect: include this one.
//
//   auto type = namedType({4, 8}, {"sequence", "embed"}, f32);
//   DimsAttr names = dimsOf(value);   // empty for scalars
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <limits>

#include "dialects/transformer/TransformerDialect.h.inc"
#include "dialects/transformer/TransformerEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/transformer/TransformerAttrs.h.inc"

namespace meshwork::transformer {

/// One loop of an op. `operandDims[i]` and `resultDims[i]` are the dim of
/// operand or result i that runs along it, `absent`, or `complete`. A dim along
/// which several factors run is their product, the earlier factor major.
struct Factor {
  enum Kind {
    parallel,  // independent iterations
    reduction, // combined into all results
    whole,     // needs all of it in one place: scans, softmax, rolls
    exchanged  // its axes may be those of other factors too: their ranks send
               // each other what they need, and results are whole over these
  };
  /// What the op takes the dims along it for, where others must know. The op
  /// says so whatever the dims are called.
  enum Role {
    none,
    samples,  // whole ones, equally many on each rank
    tokens,   // of a sequence; of attention, its queries
    heads,    // of queries; whole ones, equally many on each rank
    keyHeads, // the same, each of them shared by a group of heads
    width,    // of the residual stream
    experts   // whole ones, equally many on each rank
  };
  static constexpr int64_t absent = -1; // a result: combined into it
  static constexpr int64_t complete =
      -2; // a result: combined by the op itself, over ranks too
  ::llvm::StringRef name;
  int64_t size;
  Kind kind;
  ::llvm::SmallVector<int64_t> operandDims;
  ::llvm::SmallVector<int64_t> resultDims;
  Reduction combine = Reduction::add;
  /// Results from this one on are maxima, whatever the others are.
  unsigned firstMaximum = std::numeric_limits<unsigned>::max();
  Role role = none;
  /// Attributes of the op go by its size: a model made small keeps it.
  bool isCounted = false;
};

/// Factors of an op whose dims of one name are one loop; names that only
/// operands have are reductions.
::llvm::SmallVector<Factor> factorsFromNames(::mlir::Operation *op);
/// Bytes of all tensor operands and results, each once.
uint64_t bytesOfValues(::mlir::Operation *op);
/// Bytes of one tensor type.
uint64_t bytesOfType(::mlir::Type type);

/// Whether a step starts it at zero.
inline bool startsAtZero(StateKind kind) {
  return kind == StateKind::gradient || kind == StateKind::loss ||
         kind == StateKind::magnitude || kind == StateKind::metric;
}
/// Whether it is kept for a parameter, whose name it has, and not for the step.
inline bool isOfParameter(StateKind kind) {
  return kind != StateKind::loss && kind != StateKind::grad_norm &&
         kind != StateKind::saturated && kind != StateKind::metric;
}

/// Which state an op reads or writes.
struct StateKey {
  StateKind kind;
  ::llvm::StringRef name;      // of the parameter or metric; else ""
  ::llvm::StringRef slot = {}; // of `optimizer` and `magnitude` only
  /// "weight", "first_moment": what it is to the parameter.
  ::llvm::StringRef role() const {
    return slot.empty() ? stringifyStateKind(kind) : slot;
  }
  /// Whether `name` may name a slot.
  static bool isSlot(::llvm::StringRef name);
  auto tie() const { return std::tie(kind, name, slot); }
  bool operator==(const StateKey &other) const { return tie() == other.tie(); }
  bool operator<(const StateKey &other) const { return tie() < other.tie(); }
};

/// How results over parts of the keys make those over all keys.
enum class OverKeys {
  merged, // a result and its log-sum-exp, which weighs it
  summed  // gradients, of queries, keys and values: the last two of those keys
};

/// f8E4M3FN or f8E5M2: what products read.
bool isF8(::mlir::Type element);
/// Of 8 bits, also i8: made and read by maps, moved, and not computed with.
bool isNarrow(::mlir::Type element);
/// f32 or bf16.
bool isWideFloat(::mlir::Type element);
/// Whether `type` is a tensor of this dialect: each dim has a name, elements
/// are f32, bf16, f8, i8 or i32.
bool isNamedTensor(::mlir::Type type);
/// The names of a tensor's dims; empty for a scalar or a tensor without them.
DimsAttr dimsOf(::mlir::Type type);
inline DimsAttr dimsOf(::mlir::Value value) { return dimsOf(value.getType()); }
/// A tensor type; without an encoding when it has no dims.
::mlir::RankedTensorType namedType(::llvm::ArrayRef<int64_t> shape,
                                   DimsAttr dims, ::mlir::Type element);
inline ::mlir::RankedTensorType tensorType(::mlir::Value value) {
  return ::llvm::cast<::mlir::RankedTensorType>(value.getType());
}
/// The same dims and sizes with another element type.
::mlir::RankedTensorType withElement(::mlir::Type type, ::mlir::Type element);
/// The type of `full` without the dims named in `without`.
::mlir::RankedTensorType dropDims(::mlir::RankedTensorType full,
                                  DimsAttr without, ::mlir::Type element);
/// Whether every dim of `part` is a dim of `space`, with equal size.
bool isSubspace(::mlir::RankedTensorType part, ::mlir::RankedTensorType space);
/// The stream number of counter-based randomness for an op of this name.
uint32_t randomStream(::llvm::StringRef name);

/// What attention and its gradient are told beside their tensors, as ops of
/// this dialect and of `schedule` hold it. Values are null where absent.
struct AttentionPart {
  AttentionAttr terms;
  ::mlir::Value documents;                   // where each query's begins
  ::mlir::Value positions;                   // which query each row of q is
  ::mlir::Value keys;                        // which key each row of k and v is
  ::llvm::SmallVector<::mlir::Value> random; // what dropout draws by

  template <typename Op>
  explicit AttentionPart(Op op)
      : terms(op.getTerms()), documents(op.getDocuments()),
        positions(op.getPositions()), keys(op.getKeys()),
        random(::llvm::to_vector_of<::mlir::Value>(op.getRandom())) {}
};

} // namespace meshwork::transformer

#include "dialects/transformer/Answers.h"
#include "dialects/transformer/TransformerInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/transformer/TransformerOps.h.inc"

namespace meshwork::transformer {

/// Of any op; one that is asked for nothing (TensorOpInterface) is neither.
bool isLinear(::mlir::Operation *op);
bool isFusible(::mlir::Operation *op);
StateUse stateUseOf(::mlir::Operation *op);
::std::optional<StateKey> usedStateOf(::mlir::Operation *op);

/// The letters of an einsum equation, term by term.
struct Equation {
  ::llvm::StringRef lhs, rhs, result;
  static ::mlir::FailureOr<Equation> parse(::llvm::StringRef text);
};

/// Sums `value` over the dims that `wanted` lacks and puts the others in its
/// order; casts nothing.
::mlir::Value reduceTo(::mlir::OpBuilder &builder, ::mlir::Location loc,
                       ::mlir::Value value, ::mlir::RankedTensorType wanted);
/// a + b, elementwise.
::mlir::Value buildSum(::mlir::OpBuilder &builder, ::mlir::Location loc,
                       ::mlir::Value a, ::mlir::Value b);
/// A map with one result.
::mlir::Value
buildMap(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Type result,
         ::mlir::ValueRange inputs,
         ::llvm::function_ref<::mlir::Value(::mlir::ImplicitLocOpBuilder &,
                                            ::mlir::ValueRange)>
             body);

/// An activation of an f32, in the body of a map.
::mlir::Value activated(::mlir::ImplicitLocOpBuilder &builder,
                        Activation function, ::mlir::Value x);

/// The sum of numbers, tensors of f32 without dims, in their order.
::mlir::Value buildSum(::mlir::ImplicitLocOpBuilder &builder,
                       ::llvm::ArrayRef<::mlir::Value> numbers);

} // namespace meshwork::transformer

template <> struct llvm::DenseMapInfo<meshwork::transformer::StateKey> {
  using Key = meshwork::transformer::StateKey;
  using Kind = meshwork::transformer::StateKind;
  using Names = DenseMapInfo<StringRef>;
  static Key getEmptyKey() { return {Kind::weight, Names::getEmptyKey()}; }
  static Key getTombstoneKey() {
    return {Kind::weight, Names::getTombstoneKey()};
  }
  static unsigned getHashValue(const Key &key) {
    return hash_combine(key.kind, key.name, key.slot);
  }
  static bool isEqual(const Key &a, const Key &b) {
    return a.kind == b.kind && Names::isEqual(a.name, b.name) &&
           a.slot == b.slot;
  }
};
