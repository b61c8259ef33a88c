// Tensors that several ranks of a stage have whole: each sends a part of them,
// and the next stage gathers the parts, where that takes less time.
#pragma once

#include "lib/Cost/Times.h"
#include "passes/pipeline/Uniform.h"

namespace meshwork::pipeline {

/// How a value crosses to another stage: in parts of `dim`, one for each rank
/// along `axes`.
struct Parts {
  int64_t dim = 0;
  ::mlir::ArrayAttr axes;
  ::mlir::RankedTensorType type; // of one
};

class Scatter {
public:
  /// Over any of `axes`, none of which splits the batch; stages are along
  /// `stages`.
  Scatter(::mlir::func::FuncOp step, ::mlir::StringAttr stages,
          ::llvm::ArrayRef<std::string> axes, const cost::Machine &machine);

  /// None where the value goes whole.
  std::optional<Parts> of(::mlir::Value value) const;

private:
  std::optional<Parts> cut(::mlir::RankedTensorType type,
                           ::llvm::ArrayRef<unsigned> over) const;
  bool isFaster(::mlir::RankedTensorType whole, ::mlir::RankedTensorType part,
                ::llvm::ArrayRef<unsigned> over) const;

  mesh::MeshAttr mesh;
  uint32_t stageAxis;
  cost::Times times;
  std::vector<std::pair<uint32_t, Uniform>> uniform; // by axis of the mesh
};

} // namespace meshwork::pipeline
