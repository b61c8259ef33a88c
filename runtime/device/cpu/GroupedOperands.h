// What products of experts' rows have in common.
#pragma once

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/ExpertShare.h"
#include "runtime/device/cpu/FreeGemm.h"
#include "runtime/device/cpu/GemmGrid.h"
#include "runtime/device/cpu/Operation.h"
#include "runtime/device/cpu/Rows.h"

namespace meshwork::runtime::cpu {

/// A matrix of each expert, with rows or columns dense.
struct ExpertMatrices {
  Tensor tensor; // [experts, rows, columns]
  bool transposed = false;
  int64_t ld = 0;

  int64_t rows() const { return tensor.shape[1]; }
  int64_t columns() const { return tensor.shape[2]; }
  /// Element (row, column) of an expert's.
  std::byte *at(std::byte *arena, int64_t expert, int64_t row,
                int64_t column) const {
    return tensor.in(arena) +
           (expert * tensor.strides[0] + row * tensor.strides[1] +
            column * tensor.strides[2]) *
               tensor.bytes();
  }
};

inline absl::StatusOr<ExpertMatrices>
expertMatricesOf(const ProgramOnRank &program, uint32_t view,
                 const char *role) {
  ExpertMatrices matrices;
  Tensor &tensor = matrices.tensor;
  MESHWORK_ASSIGN_OR_RETURN(tensor, tensorOf(program, view, role));
  MESHWORK_RETURN_IF_ERROR(expectRank(tensor, 3, role));
  // The stride of a dim of size one means nothing.
  bool denseRows = tensor.strides[2] == 1 || tensor.shape[2] == 1,
       denseColumns = tensor.strides[1] == 1 || tensor.shape[1] == 1;
  if (!denseRows && !denseColumns)
    return absl::UnimplementedError(
        absl::StrCat(role, " is ", tensor.describe(),
                     ", expected stride 1 in one of the two inner dims"));
  matrices.transposed = !denseRows;
  matrices.ld = tensor.strides[denseRows ? 1 : 2];
  return matrices;
}

/// Both f32 or both bf16, and the result f32 or like them.
inline absl::Status checkGroupedTypes(DType lhs, DType rhs, DType to) {
  if (plan::isWideFloat(lhs) && rhs == lhs && (to == DType::f32 || to == lhs))
    return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "multiplies ", nameOf(lhs), " by ", nameOf(rhs), " into ", nameOf(to),
      ", expected f32 by f32 into f32, or bf16 by bf16 into f32 or bf16"));
}

/// One more than experts.
inline absl::StatusOr<Numbers> beginsOf(const ProgramOnRank &program,
                                        uint32_t view,
                                        const ExpertMatrices &of) {
  Numbers begins;
  MESHWORK_ASSIGN_OR_RETURN(begins, numbersOf(program, view, "begins"));
  MESHWORK_RETURN_IF_ERROR(
      expectCount(begins.count, of.tensor.shape[0] + 1, "begins"));
  return begins;
}

} // namespace meshwork::runtime::cpu
