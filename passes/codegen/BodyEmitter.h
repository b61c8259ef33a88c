// Emits the values of a cluster where a walk needs them. Loops are scopes, from
// the function (0) inwards. Each value is emitted in the outermost scope that
// knows its position. So what a loop does not change stays outside of it, and
// is emitted once per scope.
#pragma once

#include <map>
#include <optional>

#include "passes/codegen/ValueEmitter.h"

namespace meshwork::codegen {

/// Which columns an innermost body computes.
struct VectorPlace {
  int64_t width = 1; // elements of a vector
  int64_t active =
      1; // of these, the first ones exist; fewer than width in a tail
  int64_t segment = 0; // first column of the range between two wraps of rolls
};

class BodyEmitter : public ValueEmitter {
public:
  BodyEmitter(const Walk &walk, const CpuTarget &target)
      : ValueEmitter(walk), target(target) {}

  using Values = llvm::SmallVector<mlir::Value>;
  using LoopBody = llvm::function_ref<Values(mlir::Value, mlir::ValueRange)>;

  /// Begins in a function's entry block: scope 0. `kept` are values that the
  /// first pass that computes them stores for the others, in rows laid out as
  /// `scratch`.
  void begin(mlir::OpBuilder builder, mlir::Value args,
             const llvm::DenseMap<mlir::Value, unsigned> &kept,
             const Access &scratch);
  /// What follows belongs to this pass over the row.
  void beginPass(unsigned number) { pass = number; }
  /// The innermost scope's builder.
  mlir::OpBuilder &builder() { return scopes.back().builder; }
  /// A loop over [lower, upper) in the innermost scope; `body` gets the
  /// position and the values carried, and returns these for the next iteration.
  Values loop(mlir::Value lower, mlir::Value upper, int64_t step,
              mlir::ValueRange carried, LoopBody body);
  /// Opens a scope in the innermost one's block.
  void open();
  void close();
  /// In the innermost scope, `key` is at `position` (i64).
  void bind(mlir::StringAttr key, mlir::Value position) {
    scopes.back().positions.push_back({key, position});
  }
  void setPlace(VectorPlace newPlace) { place = newPlace; }

  Emitted eval(mlir::Value value, int64_t rotation = 0) override;
  /// Gives a reduction its value in the innermost scope.
  void define(mlir::Value reduction, mlir::Value value);
  /// The operand's elements here, as f32 or i32.
  Emitted load(const Access &access, int64_t rotation);
  /// The result's elements as they are now.
  mlir::Value loadWritten(const Access &access);
  void store(const Access &access, mlir::Value value);
  /// `value` as a vector of the current width, unless it is one.
  mlir::Value splat(mlir::OpBuilder &b, mlir::Value value);
  mlir::Value splat(mlir::Value value) { return splat(builder(), value); }
  /// Which elements of a tail exist; null when all do.
  mlir::Value activeMask(mlir::OpBuilder &b);
  mlir::Value number(int64_t value);
  /// What a reduction starts from, and one step of it.
  mlir::Value identity(mlir::OpBuilder &b, bool isMax, bool isVector);
  mlir::Value combine(mlir::OpBuilder &b, bool isMax, mlir::Value soFar,
                      mlir::Value next);

private:
  struct Scope {
    mlir::OpBuilder builder;
    llvm::SmallVector<std::pair<mlir::StringAttr, mlir::Value>> positions;
  };
  struct AddressKey {
    const Access *access;
    int64_t rotation;
    unsigned scope;
    bool operator==(const AddressKey &other) const = default;
  };

  struct Kept {
    Access access;
    std::optional<unsigned> pass; // that stored it
  };

  Emitted computeInBody(mlir::Operation *op, int64_t rotation) override;
  Emitted loadInput(unsigned input, int64_t rotation) override {
    return load(walk.inputs[input], rotation);
  }
  Emitted defined(transformer::ReduceOp reduce) override {
    return values.lookup({reduce, 0});
  }
  Emitted evalVertical(transformer::ReduceOp reduce) override;
  mlir::OpBuilder &builderOf(unsigned scope) override {
    return scopes[scope].builder;
  }
  unsigned join(unsigned a, unsigned b) const override {
    return std::max(a, b);
  }
  unsigned ofElement() const override { return scopes.size() - 1; }
  Emitted positionOf(mlir::StringAttr dim, int64_t rotation,
                     bool forElement) override;
  bool isAlongVector(mlir::StringAttr dim) const override {
    return dim == walk.vectorKey();
  }
  mlir::Type vectorOf(mlir::Type element) const override {
    return mlir::VectorType::get({place.width}, element);
  }
  mlir::Value spread(mlir::OpBuilder &b, mlir::Value value) override {
    return splat(b, value);
  }
  mlir::Value lanes(mlir::OpBuilder &b, mlir::Type element,
                    int64_t step) override;
  mlir::Value wordOf(int32_t value) override;
  mlir::Value wideOf(mlir::OpBuilder & /*b*/, int64_t value) override {
    return number(value);
  }
  void relax(mlir::Operation *made, mlir::Operation *op) override;
  mlir::Value inverseOf(mlir::OpBuilder &b, mlir::Value divisor) override;
  mlir::Value drawWord(mlir::OpBuilder &b, mlir::Value positions,
                       mlir::Value seed, mlir::Value step,
                       mlir::Value stream) override;
  unsigned scopeOf(mlir::Value value);
  unsigned scopeOf(mlir::StringAttr key);
  /// Address of the access's element here (its first one, along vectors).
  Emitted address(const Access &access, int64_t rotation);
  mlir::Value rotated(mlir::OpBuilder &b, mlir::StringAttr key,
                      mlir::Value position, int64_t rotation);
  mlir::Value pointers(mlir::OpBuilder &b, mlir::Value address,
                       mlir::Type storage, int64_t step);
  mlir::Value loadStorage(mlir::OpBuilder &b, const Access &access,
                          Emitted from, mlir::Type storage);

  const CpuTarget &target;
  mlir::Value args;
  llvm::SmallVector<Scope, 0> scopes;
  VectorPlace place;
  unsigned pass = 0;
  std::map<unsigned, Kept> rows; // of scratch; elements stay in place
  llvm::DenseMap<mlir::Value, Kept *> keptValues;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, Emitted> values;
  llvm::SmallVector<std::pair<AddressKey, mlir::Value>, 0> addresses;
  llvm::DenseMap<int64_t, mlir::Value> numbers;
  llvm::DenseMap<const Access *, mlir::Value> bases;
};

/// Storage of a tensor's elements: bf16 is kept as i16, f8 as i8.
mlir::Type storageOf(mlir::RankedTensorType type);
/// From what is stored to what bodies compute with, and back, rounding to
/// nearest even. Scalars or vectors.
mlir::Value fromStorage(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value stored, mlir::RankedTensorType type);
mlir::Value toStorage(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                      mlir::RankedTensorType type, const CpuTarget &target);
/// `element`, or a vector of `width` of them when `like` is a vector.
mlir::Type typeLike(mlir::Type like, mlir::Type element);
/// A constant of a scalar or vector type.
mlir::Value constantOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type,
                       int64_t value);
/// First word of Philox4x32-10; see runtime/device/cpu/Philox.h.
mlir::Value philoxWord(mlir::OpBuilder &b, mlir::Location loc,
                       std::array<mlir::Value, 4> counter,
                       std::array<mlir::Value, 2> key);
/// What a `draw` makes of its word, i32: its `value` rounded, both scalars or
/// vectors of one length; or a mask, with the first sample, a scalar, for the
/// value.
mlir::Value fromWord(mlir::OpBuilder &b, mlir::Location loc,
                     transformer::DrawOpInterface draw, mlir::Value word,
                     mlir::Value value);

} // namespace meshwork::codegen
