// What all kernels compute with: the values of a cluster, from what lies in
// memory to what is stored. A machine says where the ops of a value go, how its
// elements are found, and what it may round away.
#pragma once

#include "passes/codegen/Walk.h"

namespace meshwork::codegen {

/// A value of f32, i32 or i1, scalar or vector. Its scope is what it changes
/// with; 0: nothing changes it.
struct Emitted {
  mlir::Value value;
  unsigned scope = 0;
};

class ValueEmitter {
public:
  explicit ValueEmitter(const Walk &walk) : walk(walk) {}
  virtual ~ValueEmitter() = default;

  /// The stream that an op draws from, i32.
  void setStream(mlir::Operation *draw, mlir::Value stream) {
    streams[draw] = stream;
  }
  /// A tensor of the cluster, or a value in one of its maps, at the current
  /// position. Along the vector loop that is a vector, or a scalar where it
  /// does not depend on that loop.
  virtual Emitted eval(mlir::Value value, int64_t rotation = 0) = 0;
  mlir::Location loc() const { return walk.op->getLoc(); }

protected:
  /// What `eval` remembers.
  Emitted compute(mlir::Value value, int64_t rotation);
  Emitted asStored(mlir::Value value, Emitted computed);
  /// An op of a map's body, over its operands.
  Emitted computeOver(mlir::Operation *op, int64_t rotation);

  virtual Emitted computeInBody(mlir::Operation *op, int64_t rotation) {
    return computeOver(op, rotation);
  }
  virtual Emitted loadInput(unsigned input, int64_t rotation) = 0;
  /// What a reduction of the walk was given; of one within it, the loops.
  virtual Emitted defined(transformer::ReduceOp reduce) = 0;
  virtual Emitted evalVertical(transformer::ReduceOp reduce) = 0;

  // Scopes.
  virtual mlir::OpBuilder &builderOf(unsigned scope) = 0;
  /// That of what changes with either.
  virtual unsigned join(unsigned a, unsigned b) const = 0;
  /// That of what differs from element to element.
  virtual unsigned ofElement() const = 0;
  /// Where the current element is along `dim`, i32 or i64; along vectors the
  /// first one. No value where nothing is bound to it: a dim of size one. It is
  /// computed for its own scope, or for that of elements.
  virtual Emitted positionOf(mlir::StringAttr dim, int64_t rotation,
                             bool forElement) = 0;

  // Vectors and constants.
  virtual bool isAlongVector(mlir::StringAttr dim) const = 0;
  virtual mlir::Type vectorOf(mlir::Type element) const = 0;
  virtual mlir::Value spread(mlir::OpBuilder &b, mlir::Value value) = 0;
  /// 0, step, 2 step ... along a vector.
  virtual mlir::Value lanes(mlir::OpBuilder &b, mlir::Type element,
                            int64_t step) = 0;
  virtual mlir::Value wordOf(int32_t value) = 0;
  virtual mlir::Value wideOf(mlir::OpBuilder &b, int64_t value) = 0; // i64

  // Numbers.
  /// Allows `made`, which stands for `op` if that is not null, what this
  /// machine may round otherwise.
  virtual void relax(mlir::Operation *made, mlir::Operation *op) = 0;
  virtual mlir::Value inverseOf(mlir::OpBuilder &b, mlir::Value divisor) = 0;
  /// The word at each of `positions`; the others are i32.
  virtual mlir::Value drawWord(mlir::OpBuilder &b, mlir::Value positions,
                               mlir::Value seed, mlir::Value step,
                               mlir::Value stream) = 0;

  const Walk &walk;

private:
  Emitted cloneOver(mlir::Operation *op, llvm::ArrayRef<Emitted> operands);
  Emitted multiplyByInverse(Emitted value, Emitted divisor);
  Emitted evalIndex(mlir::StringAttr dim, int64_t rotation);
  Emitted evalDraw(transformer::DrawOpInterface op,
                   llvm::ArrayRef<Emitted> operands, int64_t rotation);
  mlir::Value countPosition(mlir::OpBuilder &b, transformer::DrawOpInterface op,
                            llvm::ArrayRef<Emitted> operands, int64_t rotation);

  llvm::DenseMap<mlir::Operation *, mlir::Value> streams;
};

} // namespace meshwork::codegen
