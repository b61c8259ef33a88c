// Dense tensors of doubles, and walking their elements.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Support/LLVM.h"

#include <cstdint>
#include <vector>

namespace meshwork::interpreter {

/// A row-major tensor; integers are held exactly (all are 32 bits or fewer).
/// A scalar has no dims and one element.
class Tensor {
public:
  Tensor() : Tensor(std::vector<int64_t>{}) {}
  /// All elements `value`.
  explicit Tensor(std::vector<int64_t> shape, double value = 0);
  /// `elements.size()` must be the product of `shape`.
  Tensor(std::vector<int64_t> shape, std::vector<double> elements);
  static Tensor scalar(double value) {
    return Tensor(std::vector<int64_t>{}, value);
  }
  /// Zeros in the shape of a tensor type of static shape.
  static Tensor zeros(mlir::Type type);

  mlir::ArrayRef<int64_t> getShape() const { return shape; }
  int64_t size() const { return static_cast<int64_t>(elements.size()); }
  int64_t getDimSize(unsigned dim) const { return shape[dim]; }

  double &operator[](int64_t position) { return elements[position]; }
  double operator[](int64_t position) const { return elements[position]; }
  mlir::ArrayRef<double> getElements() const { return elements; }

  /// The element at one index per dim.
  double &at(mlir::ArrayRef<int64_t> index) { return elements[place(index)]; }
  double at(mlir::ArrayRef<int64_t> index) const {
    return elements[place(index)];
  }

  /// Steps between neighbours along each dim, in elements.
  mlir::SmallVector<int64_t> getStrides() const;

private:
  int64_t place(mlir::ArrayRef<int64_t> index) const {
    int64_t sum = 0;
    for (size_t i = 0; i < shape.size(); ++i)
      sum = sum * shape[i] + index[i];
    return sum;
  }

  std::vector<int64_t> shape;
  std::vector<double> elements;
};

/// Calls `visit` with every index of `shape`, last dim fastest; once, with an
/// empty index, for a scalar.
void forEachIndex(mlir::ArrayRef<int64_t> shape,
                  mlir::function_ref<void(mlir::ArrayRef<int64_t>)> visit);

/// How `part` is read while walking `space`: its stride along each dim of
/// `space`, zero along dims that it lacks. Dims are matched by name.
mlir::SmallVector<int64_t> stridesWithin(mlir::RankedTensorType part,
                                         mlir::RankedTensorType space);

/// Sum of index times stride. Here, since it is asked for each element.
inline int64_t positionOf(mlir::ArrayRef<int64_t> index,
                          mlir::ArrayRef<int64_t> strides) {
  int64_t sum = 0;
  for (size_t i = 0; i < index.size(); ++i)
    sum += index[i] * strides[i];
  return sum;
}

} // namespace meshwork::interpreter
