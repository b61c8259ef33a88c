// What an instruction of a plan computes with: its views, in whatever memory.
// The first mistake is kept; what is read after it are zeros, and nothing more
// is written.
#pragma once

#include "meshwork/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/interpreter/Tensor.h"

#include <optional>

namespace meshwork::interpreter {

class Views {
public:
  virtual ~Views() = default;

  virtual Tensor read(uint32_t view) = 0;
  virtual void write(uint32_t view, const Tensor &values) = 0;
  /// All bytes, whatever they hold: both have no gaps.
  virtual void copy(uint32_t from, uint32_t to) = 0;
  /// In the view's shape.
  virtual Tensor zeros(uint32_t view) const = 0;
  virtual plan::DType typeOf(uint32_t view) const = 0;
  /// Whether this run adds to what is there.
  virtual bool adds(plan::Accumulate mode) const = 0;
  /// The function of a launched kernel, by the plan's number.
  virtual mlir::func::FuncOp kernel(uint32_t number) const = 0;
  virtual bool failed() const = 0;
  virtual void fail(const char *why) = 0;

  /// Of a view that may be absent.
  std::optional<Tensor> readIf(uint32_t view);
  /// Sets it, or adds to what is there.
  void add(uint32_t view, Tensor values, plan::Accumulate mode);
};

} // namespace meshwork::interpreter
