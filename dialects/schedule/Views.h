// Views of instructions, as verifiers look at them.
#pragma once

#include "dialects/schedule/Schedule.h"
#include "meshwork/Plan/Plan.h"

namespace meshwork::schedule {

/// Whether it is a view of a buffer, with static sizes: what verifiers of its
/// users rely on, which may run before its own.
bool isView(::mlir::Value value);

/// What a plan calls an element type; nothing for those it has no word for.
std::optional<plan::DType> elementTypeOf(::mlir::Type element);

/// A view's type, taken apart. `schedule.view` has verified it.
struct Strided {
  ::mlir::MemRefType type;
  ::llvm::ArrayRef<int64_t> shape;
  ::llvm::SmallVector<int64_t> strides;

  explicit Strided(::mlir::Value view);
  int64_t rank() const { return type.getRank(); }
  ::mlir::Type element() const { return type.getElementType(); }
  bool isWideFloat() const; // f32 or bf16
  bool isFloat8() const;
  bool isNumber(::mlir::Type element) const; // one element of that type
  bool isContiguous() const;                 // row-major without gaps
  bool has(::mlir::Type element, ::llvm::ArrayRef<int64_t> shape) const {
    return type.getElementType() == element && this->shape == shape;
  }
};

} // namespace meshwork::schedule
