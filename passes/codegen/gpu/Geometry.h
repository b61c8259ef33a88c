// How the threads of a GPU share the walk of a cluster: a function of shapes,
// layouts and alignments alone.
//
//   FailureOr<Geometry> geometry = chooseGeometry(walk, baseAlignments(spec));
//   launch(function, geometry->grid(), geometry->block());
#pragma once

#include "passes/codegen/Walk.h"

namespace meshwork::codegen {

/// A block holds `rowsAtOnce` rows of `threadsPerRow` threads. The threads of a
/// row take vectors of `width` columns in turn: thread t the vectors t,
/// t + threadsPerRow, ... of the block's range of columns.
struct Geometry {
  int64_t width = 1;         // columns of a vector; divides the last col
  int64_t threadsPerRow = 1; // a power of two up to a warp, or whole warps
  int64_t rowsAtOnce = 1;    // one where a row has more threads than a warp
  /// Vectors that a thread holds of a row; where `loops`, it takes them in a
  /// loop, once a pass, as they are too many for its registers.
  int64_t vectors = 1;
  bool loops = false;
  /// Of the rows of a chunk, one after the other, the next is loaded while one
  /// is computed.
  bool ahead = false;
  /// Rows begin at any element, and vectors at multiples of their length: a
  /// row's first and last vector hold columns that are not its own.
  bool shifted = false;
  /// Rows, columns or places of threads are counted in 64 bits, as 32 do not
  /// hold them.
  bool countsFar = false;
  /// A thread holds a vector of each of so many neighbouring rows. A result
  /// that lies along rows is then stored in vectors, too, and `rowsAtOnce`
  /// counts tiles of so many rows.
  int64_t tileRows = 1;
  /// Threads, next to each other, that share each vertical sum of their place
  /// and then hold all of it: a power of two up to a warp.
  int64_t verticalParts = 1;
  int64_t columnBlocks =
      1;                 // blocks that share a row; one when rows are reduced
  int64_t rowBlocks = 1; // blocks along rows: one a chunk when there are chunks
  int64_t sharedBytes = 0; // static, of a block
  /// Blocks that share all tiles where a maximum is found of them, and of which
  /// each takes several places of a block in turn; 0: each has its own place.
  int64_t chunksOfTiles = 0;
  /// Floats of shared memory that a chunk's rows have for their sums in turns:
  /// one row's are still read when the next one's are written. 0: no turns.
  int64_t floatsOfTurn = 0;

  int64_t block() const {
    return std::max<int64_t>(32, threadsPerRow * rowsAtOnce * verticalParts);
  }
  int64_t blocksOfTiles() const { return rowBlocks * columnBlocks; }
  int64_t grid() const {
    return chunksOfTiles ? chunksOfTiles : blocksOfTiles();
  }
  int64_t tilesOf(int64_t rows) const { return rows / tileRows; }
  /// Vectors of a row of `columns`.
  int64_t vectorsOf(int64_t columns) const {
    return (columns + (shifted ? 2 * width - 2 : width - 1)) / width;
  }
  /// Vectors of columns that one block covers.
  int64_t vectorsPerBlock() const { return threadsPerRow * vectors; }
};

/// What of a cluster's columns all threads of a row must have seen.
bool reducesColumns(const Walk &walk);
/// Sums over rows and columns: one per chunk.
bool isChunkScalar(const Walk &walk, unsigned result);
/// Whether it reduces to maxima of everything and to nothing else: these take
/// elements in any order, tile by tile.
bool findsOnlyMaxima(const Walk &walk);
/// Whether it lies along the innermost rows, as a transposed copy does.
bool liesAlongRows(const Walk &walk, const Access &access);
/// Bytes by which each address of the access along a vector is a multiple,
/// 16 at most.
int64_t alignmentOf(const Walk &walk, const Geometry &geometry,
                    const Access &access, int64_t baseBytes);
/// The same where a vector is of a tile's rows.
int64_t tileAlignmentOf(const Walk &walk, const Geometry &geometry,
                        const Access &access, int64_t baseBytes);
/// Of inputs, then results.
llvm::SmallVector<int64_t> baseAlignments(const KernelSpec &spec);

/// Rows may be walked in any order where each stands alone. If a result lies
/// along one that is not the innermost, as the transposed copy of heads does,
/// that one becomes the innermost: the result is then stored in vectors.
void putStoredRowLast(Walk &walk);

/// Fails with an error at the op when a GPU has no grid of so many blocks.
mlir::FailureOr<Geometry> chooseGeometry(const Walk &walk,
                                         llvm::ArrayRef<int64_t> baseBytes);

} // namespace meshwork::codegen
