#include "runtime/device/cpu/GemmGrid.h"

#include <algorithm>

#include "runtime/device/cpu/Operation.h"

namespace meshwork::runtime::cpu {

absl::Status
GemmGrid::describe(Cut rows, Cut columns,
                   absl::FunctionRef<GemmSpec(int64_t, int64_t)> specOf) {
  blockRows = std::min(rows.block, rows.size);
  blockColumns = std::min(columns.block, columns.size);
  for (int index = 0; index < 4; ++index) {
    int64_t m = index & 2 ? rows.size % blockRows : blockRows;
    int64_t n = index & 1 ? columns.size % blockColumns : blockColumns;
    if (m == 0 || n == 0)
      continue;
    // The last rows meet the same packed panel as the ones before.
    const Gemm *sameRhs = index & 2 ? gemms[index & 1].get() : nullptr;
    MESHWORK_ASSIGN_OR_RETURN(gemms[index],
                              Gemm::create(specOf(m, n), sameRhs));
  }
  return absl::OkStatus();
}

absl::Status GemmGrid::generate(int threads) {
  for (auto &gemm : gemms)
    if (gemm)
      MESHWORK_RETURN_IF_ERROR(gemm->generate(threads));
  return absl::OkStatus();
}

const std::byte *GemmGrid::packed(int64_t rows, int64_t columns, int thread,
                                  const std::byte *rhs, std::byte *to,
                                  std::byte *scratch) {
  Gemm &gemm = at(rows, columns);
  if (gemm.packedBytes() == 0)
    return rhs;
  gemm.pack(thread, rhs, to, scratch);
  return to;
}

uint64_t GemmGrid::scratchBytes() const {
  uint64_t bytes = 0;
  for (const auto &gemm : gemms)
    bytes = std::max(bytes, gemm ? gemm->scratchBytes() : 0);
  return alignUp(bytes);
}

uint64_t GemmGrid::packedBytes() const {
  uint64_t bytes = 0;
  for (const auto &gemm : gemms)
    bytes = std::max(bytes, gemm ? gemm->packedBytes() : 0);
  return alignUp(bytes);
}

std::byte *GemmGrid::takePacked(Carver &carver) const {
  uint64_t bytes = packedBytes();
  return bytes ? carver.take<std::byte>(static_cast<int64_t>(bytes)) : nullptr;
}

} // namespace meshwork::runtime::cpu
