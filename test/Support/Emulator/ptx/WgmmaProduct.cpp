// D (64xN) = A (64x16) B (16xN) + D for the rows of one warp. Layouts of the
// operands and fragments: PTX ISA 8.8, 9.7.15.5; those with 128-byte swizzle.
#include "test/Support/Emulator/ptx/Boxes.h"
#include "test/Support/Emulator/ptx/Wgmma.h"

#include "absl/strings/str_format.h"

namespace meshwork::ptx {
namespace {

constexpr unsigned numRows = 16, depth = 16, maxColumns = 256;
constexpr unsigned perChunk = 8; // elements of the 16 bytes that stay together

/// Where a matrix is in shared memory: a matrix descriptor, in bytes.
struct Layout {
  uint32_t begin, leading, stride;
  bool alongK; // neighbours in memory are neighbours along k

  uint32_t offset(unsigned mn, unsigned k) const {
    return alongK
               ? mn / 8 * stride + mn % 8 * 128 + k * 2
               : mn / 64 * leading + mn % 64 * 2 + k / 8 * stride + k % 8 * 128;
  }
};

[[noreturn]] void wrong(uint64_t descriptor, const char *why) {
  throw Fault{Fault::Kind::asynchronous,
              absl::StrFormat("descriptor 0x%016x: %s", descriptor, why)};
}
Layout layoutOf(uint64_t descriptor, bool transposed) {
  constexpr uint64_t known = 0xc000'3fff'3fff'3fff; // and base offset 0
  constexpr unsigned swizzle128B = 1;
  auto bytes = [&](unsigned from) {
    return uint32_t(descriptor >> from & 0x3fff) << 4;
  };
  if (descriptor & ~known)
    wrong(descriptor, "a base offset or reserved bits are not 0");
  if (descriptor >> 62 != swizzle128B)
    wrong(descriptor, "only the layout with 128-byte swizzle is modelled");
  Layout layout{bytes(0), bytes(16), bytes(32), !transposed};
  // Eight rows of 128 bytes repeat; 32 bytes further in a row is fine.
  if (layout.begin >> 7 & 7 || layout.stride % 1024)
    wrong(descriptor, "its rows do not begin where the swizzle's pattern does, "
                      "at a multiple of 1024 bytes");
  return layout;
}

float wide(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

/// put(mn, k, value) for mn below `count` and all k.
template <class Put>
void readMatrix(Warp &warp, const Layout &layout, unsigned count, Put put) {
  unsigned stepK = layout.alongK ? perChunk : 1;
  unsigned stepMn = layout.alongK ? 1 : perChunk;
  for (unsigned mn = 0; mn < count; mn += stepMn)
    for (unsigned k = 0; k < depth; k += stepK) {
      uint32_t at = layout.begin + layout.offset(mn, k);
      uint16_t values[perChunk];
      std::memcpy(values, asyncReadAt(warp, swizzle128(at), sizeof values, 0),
                  sizeof values);
      for (unsigned e = 0; e < perChunk; ++e)
        if (layout.alongK)
          put(mn, k + e, wide(values[e]));
        else
          put(mn + e, k, wide(values[e]));
    }
}

struct Operands {
  float a[numRows][depth];
  float b[depth][maxColumns];
  float d[numRows][maxColumns];
};

/// Rows of the warp. Those of the other warps are looked at too: a product
/// belongs to the warpgroup, so all of them must be there.
void readMemoryOfA(Warp &warp, const Layout &layout, Operands &to) {
  unsigned first = warp.index % 4 * numRows;
  readMatrix(warp, layout, 4 * numRows, [&](unsigned row, unsigned k, float x) {
    if (row / numRows * numRows == first)
      to.a[row - first][k] = x;
  });
}
/// As the A of mma.m16n8k16.
void readRegistersOfA(Warp &warp, const uint32_t *registers, Operands &to) {
  for (unsigned n = 0; n < 4; ++n)
    for (unsigned lane = 0; lane < numLanes; ++lane) {
      uint32_t pair = warp.at<uint32_t>(registers[n])[lane];
      unsigned row = lane / 4 + n % 2 * 8, k = lane % 4 * 2 + n / 2 * 8;
      to.a[row][k] = wide(uint16_t(pair));
      to.a[row][k + 1] = wide(uint16_t(pair >> 16));
    }
}

/// visit(lane, register of D, element)
template <class Visit>
void eachSum(Operands &operands, unsigned columns, Visit visit) {
  for (unsigned n = 0; n < columns / 2; ++n)
    for (unsigned lane = 0; lane < numLanes; ++lane)
      visit(lane, n,
            operands
                .d[lane / 4 + n % 4 / 2 * 8][n / 4 * 8 + lane % 4 * 2 + n % 2]);
}

void sum(Operands &o, unsigned columns, float sign) {
  for (unsigned row = 0; row < numRows; ++row)
    for (unsigned k = 0; k < depth; ++k) {
      float a = sign * o.a[row][k];
      for (unsigned column = 0; column < columns; ++column)
        o.d[row][column] = __builtin_fmaf(a, o.b[k][column], o.d[row][column]);
    }
}

} // namespace

void multiply(Warp &warp, const Instruction &i, const PendingProduct &product) {
  unsigned columns = i.count * 8u;
  const uint32_t *registers = &warp.block->launch->program->registers[i.target];
  static thread_local Operands operands;
  if (i.extra & wgmma::aInRegisters)
    readRegistersOfA(warp, registers + columns / 2, operands);
  else
    readMemoryOfA(warp, layoutOf(product.a, i.extra & wgmma::aTransposed),
                  operands);
  readMatrix(
      warp, layoutOf(product.b, i.extra & wgmma::bTransposed), columns,
      [&](unsigned column, unsigned k, float x) { operands.b[k][column] = x; });
  eachSum(operands, columns, [&](unsigned lane, unsigned n, float &value) {
    value = product.accumulates ? warp.at<float>(registers[n])[lane] : 0;
  });
  bool negative =
      bool(i.extra & wgmma::aNegative) != bool(i.extra & wgmma::bNegative);
  sum(operands, columns, negative ? -1.f : 1.f);
  eachSum(operands, columns, [&](unsigned lane, unsigned n, float &value) {
    warp.at<float>(registers[n])[lane] = canonical(value);
  });
}

} // namespace meshwork::ptx
