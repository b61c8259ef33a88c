// Loops around the tiles, outermost first: blocks of columns, blocks of rows,
// slices of k, strips of columns. A strip of a slice is 32 KiB and stays in the
// first-level cache while the rows of lhs pass by. The packed slice, the block
// of lhs and the sums stay in the second-level cache.
//
// Sums are kept where they belong when that is f32 with room for whole vectors,
// else in the scratch. They begin with what is added to, so both give the same
// bits.
#include "runtime/device/cpu/SliceGemm.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/AttentionKernels.h"
#include "runtime/device/cpu/Operation.h"

namespace meshwork::runtime::cpu {
namespace {

constexpr int64_t stripColumns = 64, depthOfSlice = 128, rowsOfBlock = 240;
constexpr int64_t vectorColumns = 16;

int64_t wholeVectors(int64_t columns) {
  return ceilDiv(columns, vectorColumns) * vectorColumns;
}

/// Where elements of an operand are. `rowStep` and `columnStep` count elements.
struct Place {
  const std::byte *data;
  plan::DType type;
  int64_t rowStep, columnStep;

  const std::byte *at(int64_t row, int64_t column) const {
    return data + (row * rowStep + column * columnStep) * plan::bytesOf(type);
  }
};

/// Copies stored rows to f32, as they lie or transposed.
void copyRows(const Place &from, int64_t rows, int64_t columns, float *to,
              int64_t toLd) {
  const AttentionKernels &kernels = attentionKernels();
  bool isBf16 = from.type == plan::DType::bf16;
  auto copy = isBf16 ? kernels.widenBf16 : kernels.widenF32;
  auto transpose = isBf16 ? kernels.transposeBf16 : kernels.transposeF32;
  if (from.columnStep == 1)
    copy(from.data, from.rowStep, rows, columns, to, toLd);
  else
    transpose(from.data, from.columnStep, columns, rows, to, toLd);
}

class SliceGemm {
public:
  SliceGemm(const GemmSpec &spec, std::byte *scratch) : spec(spec) {
    Carver carver(scratch);
    int64_t columns = std::min(wholeVectors(spec.n), sliceGemmColumns),
            depth = std::min(spec.k, depthOfSlice),
            rows = std::min(spec.m, rowsOfBlock);
    packedRhs = carver.take<float>(columns * depth);
    packedLhs = carver.take<float>(packsLhs() ? rows * depth : 0);
    sums = carver.take<float>(rows * columns);
    bytes = carver.used();
  }

  void run(const std::byte *lhsData, const std::byte *rhsData,
           std::byte *dstData) {
    lhs = {lhsData, spec.type, spec.lhsTransposed ? 1 : spec.lhsLd,
           spec.lhsTransposed ? spec.lhsLd : 1};
    rhs = {rhsData, spec.type, spec.rhsTransposed ? 1 : spec.rhsLd,
           spec.rhsTransposed ? spec.rhsLd : 1};
    dst = {dstData, spec.dstType, spec.dstLd, 1};
    for (int64_t n = 0; n < spec.n; n += sliceGemmColumns)
      for (int64_t m = 0; m < spec.m; m += rowsOfBlock)
        runBlock({m, std::min(rowsOfBlock, spec.m - m), n,
                  std::min(sliceGemmColumns, spec.n - n)});
  }

  uint64_t bytes; // of the scratch

private:
  struct Block {
    int64_t m, rows, n, columns;
  };
  struct Sums {
    float *at;
    int64_t ld;
  };

  /// An f32 lhs with rows along k is read where it lies.
  bool packsLhs() const {
    return spec.lhsTransposed || spec.type != plan::DType::f32;
  }
  bool isInPlace(int64_t columns) const {
    return spec.dstType == plan::DType::f32 && columns % vectorColumns == 0;
  }
  /// Of the strip from `column` of the block on.
  Sums sumsOf(const Block &block, int64_t column, int64_t columns) const {
    if (isInPlace(columns))
      return {reinterpret_cast<float *>(
                  const_cast<std::byte *>(dst.at(block.m, block.n + column))),
              spec.dstLd};
    return {sums + column * block.rows, wholeVectors(columns)};
  }

  template <typename Visit>
  void forEachStrip(const Block &block, Visit visit) const {
    for (int64_t column = 0; column < block.columns; column += stripColumns)
      visit(column, std::min(stripColumns, block.columns - column));
  }

  void runBlock(const Block &block) const {
    if (spec.accumulate)
      fetchSums(block);
    for (int64_t k = 0; k < spec.k; k += depthOfSlice)
      runSlice(block, k, std::min(depthOfSlice, spec.k - k));
    finish(block);
  }

  void runSlice(const Block &block, int64_t k, int64_t depth) const {
    if (packsLhs())
      packLhs(block, k, depth);
    forEachStrip(block, [&](int64_t column, int64_t columns) {
      float *strip = packedRhs + column * depth;
      packRhs(k, depth, block.n + column, columns, strip);
      F32Product product{.m = block.rows, .n = columns, .k = depth};
      setLhs(product, block, k, depth);
      product.rhs = strip, product.rhsLd = wholeVectors(columns);
      Sums to = sumsOf(block, column, columns);
      product.to = to.at, product.toLd = to.ld;
      product.accumulate = spec.accumulate || k > 0;
      attentionKernels().multiply(product);
    });
  }

  void setLhs(F32Product &product, const Block &block, int64_t k,
              int64_t depth) const {
    if (!packsLhs()) {
      product.lhs = reinterpret_cast<const float *>(lhs.at(block.m, k));
      product.lhsRow = lhs.rowStep, product.lhsStep = 1;
      return;
    }
    product.lhs = packedLhs;
    product.lhsRow = spec.lhsTransposed ? 1 : depth;
    product.lhsStep = spec.lhsTransposed ? block.rows : 1;
  }

  /// As it is stored.
  void packLhs(const Block &block, int64_t k, int64_t depth) const {
    Place from = lhs;
    from.data = lhs.at(block.m, k);
    if (spec.lhsTransposed) {
      std::swap(from.rowStep, from.columnStep);
      return copyRows(from, depth, block.rows, packedLhs, block.rows);
    }
    copyRows(from, block.rows, depth, packedLhs, depth);
  }

  /// [depth, columns], zeros up to whole vectors.
  void packRhs(int64_t k, int64_t depth, int64_t n, int64_t columns,
               float *to) const {
    Place from = rhs;
    from.data = rhs.at(k, n);
    int64_t ld = wholeVectors(columns);
    for (int64_t row = 0; columns < ld && row < depth; ++row)
      std::fill(to + row * ld + columns, to + (row + 1) * ld, 0.0f);
    copyRows(from, depth, columns, to, ld);
  }

  /// What sums in the scratch begin with.
  void fetchSums(const Block &block) const {
    forEachStrip(block, [&](int64_t column, int64_t columns) {
      if (isInPlace(columns))
        return;
      Place from = dst;
      from.data = dst.at(block.m, block.n + column);
      Sums to = sumsOf(block, column, columns);
      copyRows(from, block.rows, columns, to.at, to.ld);
    });
  }

  void finish(const Block &block) const {
    const AttentionKernels &kernels = attentionKernels();
    auto round = spec.dstType == plan::DType::bf16 ? kernels.roundBf16
                                                   : kernels.roundF32;
    forEachStrip(block, [&](int64_t column, int64_t columns) {
      if (isInPlace(columns))
        return;
      Sums from = sumsOf(block, column, columns);
      auto *to = const_cast<std::byte *>(dst.at(block.m, block.n + column));
      round(from.at, from.ld, nullptr, block.rows, columns, to, spec.dstLd);
    });
  }

  GemmSpec spec;
  Place lhs{}, rhs{}, dst{};
  float *packedRhs, *packedLhs, *sums;
};
} // namespace

uint64_t sliceGemmScratch(const GemmSpec &largest) {
  return SliceGemm(largest, nullptr).bytes;
}

void runSliceGemm(const GemmSpec &spec, const std::byte *lhs,
                  const std::byte *rhs, std::byte *dst, std::byte *scratch) {
  SliceGemm(spec, scratch).run(lhs, rhs, dst);
}

} // namespace meshwork::runtime::cpu
