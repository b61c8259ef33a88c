// How a matrix product is cut into blocks.
#pragma once

#include <cstdint>

namespace meshwork::runtime::cpu {

struct MatmulShape {
  int64_t m, n, k;
  int64_t elementBytes; // of lhs and rhs
  bool lhsTransposed;
};

struct MatmulBlocking {
  int64_t m = 1, n = 1; // of a whole block; the last ones are smaller
  bool packRhs = false; // each column panel of rhs is packed before its use
};

/// For oneDNN. A function of the problem alone, never of the number of threads:
/// so are the bits of the result.
MatmulBlocking chooseMatmulBlocking(const MatmulShape &shape);

/// For TileGemm, whose sums do not depend on the blocks: each of `batch`
/// products in as many blocks as there are threads, cut where that leaves the
/// least to multiply and to pack.
MatmulBlocking chooseTileBlocking(const MatmulShape &shape, int64_t batch,
                                  int64_t threads);

} // namespace meshwork::runtime::cpu
