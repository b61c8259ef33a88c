// The shape of a launch. Bytes in flight decide the speed of these kernels, so
// vectors are 16 bytes, rows get as few threads as keep them in registers (a
// warp needs no barrier), and blocks are of 128 to 1024 threads.
#include "passes/codegen/gpu/Geometry.h"

#include <numeric>

#include "passes/codegen/KernelLoops.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace meshwork::codegen {
using namespace transformer;
namespace {
constexpr int64_t warp = 32, maxBlock = 1024, maxVectors = 8,
                  maxShared = 48 << 10;
/// Registers that values of a row may take, of the 255 a thread can have; of 64
/// when a block has 1024 threads.
constexpr int64_t rowRegisters = 120, rowRegistersOfLargeBlock = 32;
/// Threads of a row that is walked in loops: two such blocks fit a
/// multiprocessor, and one loads while another waits at a barrier. Measured on
/// an H100, rows of 50257 bf16: 768 threads 1.50 TB/s, 512 1.35, 1024 1.27.
constexpr int64_t loopThreads = 768;
/// Rows of a tile, at most, and registers for what is loaded of a tile and for
/// an f32 of each element that is stored along rows: more make the tile
/// shorter.
constexpr int64_t mostTileRows = 8, tileRegisters = 160;
/// A vertical sum is a chain of loads: threads hide them, not vectors. Loads
/// that a thread has under way at once, and bytes of a row that a warp loads.
constexpr int64_t wantedThreadsOfVertical = 8192, verticalLoads = 8,
                  verticalBytes = 32;

int64_t bytesOf(const Access &access) {
  return access.type.getElementTypeBitWidth() / 8;
}

bool hasVertical(const Walk &walk) {
  return llvm::any_of(FusedOp(walk.op).getBody().front().getOps<ReduceOp>(),
                      [&](ReduceOp reduce) {
                        return walk.formOf(reduce) == ReduceForm::vertical;
                      });
}

/// What threads may share of vertical sums.
struct Vertical {
  int64_t longest = 1; // outermost dim of all sums
  int64_t divisor = 0; // of those over several dims, which are shared evenly
};
Vertical verticalOf(const Walk &walk) {
  Vertical vertical;
  for (ReduceOp reduce :
       FusedOp(walk.op).getBody().front().getOps<ReduceOp>()) {
    if (walk.formOf(reduce) != ReduceForm::vertical)
      continue;
    auto input = tensorType(reduce.getInput());
    SmallVector<int64_t> sizes;
    for (auto [name, size] :
         llvm::zip_equal(dimsOf(input).getNames(), input.getShape()))
      if (reduce.getDims().find(name) >= 0 && size != 1)
        sizes.push_back(size);
    if (sizes.empty())
      continue;
    vertical.longest = std::max(vertical.longest, sizes.front());
    if (sizes.size() > 1)
      vertical.divisor = std::gcd(vertical.divisor, sizes.front());
  }
  return vertical;
}

/// 16 bytes of the smallest elements, though no more than 8 elements: a thread
/// has no registers for what a vector of more f8 is computed from.
int64_t widestOf(const Walk &walk) {
  int64_t width = 4;
  for (const Access &access :
       llvm::concat<const Access>(walk.inputs, walk.results))
    if (walk.hasCols(access))
      width = std::max(width, std::min<int64_t>(8, 16 / bytesOf(access)));
  return width;
}

/// Sums over rows for each column, which do not shift with a row.
bool sumsColumns(const Walk &walk) {
  return llvm::any_of(
      llvm::seq<unsigned>(0, walk.results.size()), [&](unsigned result) {
        return walk.isChunked(result) && !isChunkScalar(walk, result);
      });
}

/// Whether long rows of an odd length can be walked in whole vectors: all
/// tensors along them lie shifted by the same number of elements.
bool canShift(const Walk &walk, ArrayRef<int64_t> baseBytes) {
  int64_t width = widestOf(walk);
  if (sumsColumns(walk) || walk.cols.size() != 1 || walk.numCols % width == 0 ||
      walk.numCols < 64 * width || !rotationsOf(walk).empty())
    return false;
  const Access *first = nullptr;
  for (auto [access, bytes] : llvm::zip(
           llvm::concat<const Access>(walk.inputs, walk.results), baseBytes)) {
    if (!walk.hasCols(access))
      continue;
    if (access.along(walk.vectorKey()) != 1 || bytes % 16 ||
        access.along(walk.chunkKey))
      return false;
    first = first ? first : &access;
    for (const LoopDim &row : walk.rows)
      if ((access.along(row.key) - first->along(row.key)) % width)
        return false;
  }
  return first != nullptr;
}

/// As far as rows and rolls allow.
int64_t widthOf(const Walk &walk) {
  if (walk.cols.empty())
    return 1;
  int64_t width = std::gcd(widestOf(walk), walk.cols.back().size);
  for (int64_t rotation : rotationsOf(walk))
    width = std::gcd(width, rotation);
  return width;
}

/// Registers of a row's values when each thread holds `vectors` of them: what
/// is loaded, what is summed, and as much again for what is computed.
int64_t registersOf(const Walk &walk, int64_t width, int64_t vectors) {
  int64_t values = 1;
  for (const Access &access : walk.inputs)
    values += walk.hasCols(access)
                  ? 1 + static_cast<int64_t>(rotationsOf(walk).size())
                  : 0;
  for (unsigned i = 0; i < walk.results.size(); ++i)
    values += walk.isChunked(i) && walk.hasCols(walk.results[i]);
  return values * width * vectors;
}

/// Whether elements may be taken in any order.
bool isFree(const Walk &walk) {
  return (walk.passes.empty() && walk.split != Split::chunks) ||
         findsOnlyMaxima(walk);
}

/// Where all is independent and a result lies along the rows: as many rows as
/// a thread has registers for. Else one.
int64_t tileRowsOf(const Walk &walk, int64_t width) {
  auto isWhole = [&](unsigned result) {
    return walk.isChunked(result) || walk.hasCols(walk.results[result]);
  };
  auto isAlongRows = [&](unsigned result) {
    return !walk.isChunked(result) && liesAlongRows(walk, walk.results[result]);
  };
  auto results = llvm::seq<unsigned>(0, walk.results.size());
  if (!isFree(walk) || hasVertical(walk) || width == 1 ||
      !llvm::all_of(results, isWhole) || llvm::none_of(results, isAlongRows))
    return 1;
  // Bytes of a column, with an f32 for each result that waits for its tile.
  int64_t loaded = 4 * llvm::count_if(results, isAlongRows);
  for (const Access &access : walk.inputs)
    loaded += walk.hasCols(access) ? bytesOf(access) : 0;
  int64_t rows = std::gcd(mostTileRows, walk.rows.back().size);
  while (rows > 1 && rows * width * loaded / 4 > tileRegisters)
    rows /= 2;
  return rows;
}

/// The largest numbers that threads come to: those past the end of the grid,
/// and of the row that is loaded ahead of the last.
bool countsFar(const Walk &walk, const Geometry &geometry) {
  constexpr int64_t beyond = maxBlock * mostTileRows;
  int64_t most = INT32_MAX - beyond;
  auto isLong = [&](const Access &access) {
    return llvm::any_of(access.type.getShape(),
                        [&](int64_t size) { return size > most; });
  };
  return walk.numRows > most || walk.numCols > most ||
         geometry.rowBlocks > most / geometry.rowsAtOnce ||
         geometry.columnBlocks >
             most / (geometry.vectorsPerBlock() * geometry.width) ||
         llvm::any_of(walk.inputs, isLong);
}

class Chooser {
public:
  Chooser(const Walk &walk, ArrayRef<int64_t> baseBytes)
      : walk(walk), baseBytes(baseBytes),
        isChunked(walk.split == Split::chunks) {}

  Geometry run() {
    geometry.width = widthOf(walk);
    if (geometry.tileRows = tileRowsOf(walk, geometry.width);
        geometry.tileRows > 1)
      shareTiles();
    else if (!walk.passes.empty())
      shareRows();
    else
      shareFreely();
    bool hasTiles = geometry.tileRows > 1;
    geometry.chunksOfTiles = isChunked && hasTiles ? walk.items : 0;
    geometry.rowBlocks = isChunked && !hasTiles
                             ? walk.items
                             : llvm::divideCeil(geometry.tilesOf(walk.numRows),
                                                geometry.rowsAtOnce);
    while (sharedFloats() * 4 > maxShared &&
           geometry.threadsPerRow * geometry.rowsAtOnce > warp)
      geometry.rowsAtOnce = (geometry.rowsAtOnce + 1) / 2;
    geometry.floatsOfTurn = floatsOfTurn();
    geometry.sharedBytes = (sharedFloats() + geometry.floatsOfTurn) * 4;
    geometry.ahead = !geometry.loops && reducesColumns(walk) && isChunked &&
                     geometry.columnBlocks == 1 &&
                     walk.numRows > walk.items * geometry.rowsAtOnce;
    return geometry;
  }

private:
  int64_t vectorsOfRow() const { return geometry.vectorsOf(walk.numCols); }

  /// A chunk's rows that are held have their places worked out once for all of
  /// them, so those do not shift.
  void shareRows() {
    Geometry plain = geometry;
    geometry.shifted = canShift(walk, baseBytes);
    if (geometry.shifted)
      geometry.width = widestOf(walk);
    shareWholeRows();
    if (!geometry.shifted || !isChunked || geometry.loops)
      return;
    geometry = plain;
    shareWholeRows();
  }

  /// Rows at once that fill a block of `wanted` threads.
  int64_t rowsFor(int64_t wanted) const {
    int64_t rows = std::max<int64_t>(1, wanted / geometry.threadsPerRow);
    if (!isChunked)
      rows = std::min<int64_t>(rows, llvm::PowerOf2Ceil(walk.numRows));
    return std::max(rows,
                    warp / (geometry.threadsPerRow * geometry.verticalParts));
  }

  /// All vectors are independent: one for each thread.
  void shareFreely() {
    if (hasVertical(walk))
      shareVertical();
    // Of threads that do not share a sum.
    int64_t block = geometry.verticalParts > 1 ? 256 / geometry.verticalParts
                    : hasVertical(walk)        ? 64
                                               : 256;
    int64_t perRow = llvm::PowerOf2Ceil(vectorsOfRow());
    geometry.threadsPerRow = std::min(perRow, isChunked ? warp : block);
    if (walk.numRows == 1 && walk.numCols == 1)
      return; // One warp.
    geometry.rowsAtOnce = rowsFor(block);
    geometry.columnBlocks =
        llvm::divideCeil(vectorsOfRow(), geometry.threadsPerRow);
  }

  /// A warp stores whole sectors of 32 bytes along either: of elements of one
  /// byte, with 8 rows a tile, 4 tiles side by side. Tiles with maxima take up
  /// to 160 registers a thread, so blocks of half as many threads fill a
  /// multiprocessor better.
  void shareTiles() {
    int64_t block = isChunked ? 128 : 256;
    geometry.threadsPerRow = std::min<int64_t>(
        llvm::PowerOf2Ceil(vectorsOfRow()), geometry.tileRows);
    int64_t tiles = llvm::PowerOf2Ceil(geometry.tilesOf(walk.numRows));
    geometry.rowsAtOnce =
        std::max(std::min(block / geometry.threadsPerRow, tiles),
                 warp / geometry.threadsPerRow);
    geometry.columnBlocks =
        llvm::divideCeil(vectorsOfRow(), geometry.threadsPerRow);
  }

  /// More threads, until there are enough: that share sums, then of narrower
  /// vectors, as long as a warp loads whole sectors.
  void shareVertical() {
    Vertical vertical = verticalOf(walk);
    int64_t &parts = geometry.verticalParts;
    int64_t wantedBytes = std::min(verticalBytes, walk.numCols * 4);
    auto threads = [&] { return walk.numRows * vectorsOfRow() * parts; };
    auto bytes = [&](int64_t vectors) {
      return std::min(vectorsOfRow(), vectors) * geometry.width * 4;
    };
    while (!isChunked && parts < warp && vertical.divisor % (2 * parts) == 0 &&
           vertical.longest / (2 * parts) >= verticalLoads &&
           threads() < wantedThreadsOfVertical &&
           bytes(warp / (2 * parts)) >= wantedBytes)
      parts *= 2;
    while (geometry.width > 1 && threads() < wantedThreadsOfVertical &&
           (parts == 1 || bytes(warp / parts) > wantedBytes))
      geometry.width /= 2;
  }

  /// The fewest threads that hold a row in registers; one block sees all of it.
  void shareWholeRows() {
    int64_t vectors = vectorsOfRow(), threads = 1;
    auto perThread = [&] {
      return static_cast<int64_t>(llvm::divideCeil(vectors, threads));
    };
    auto fits = [&] {
      int64_t limit = threads > 512 ? rowRegistersOfLargeBlock : rowRegisters;
      return perThread() <= maxVectors &&
             registersOf(walk, geometry.width, perThread()) <= limit;
    };
    while (threads < maxBlock && threads < vectors &&
           (threads < warp ? perThread() > 1 : !fits()))
      threads = threads < warp ? threads * 2 : threads + warp;
    geometry.loops = perThread() > 1 && !fits();
    threads = geometry.loops ? loopThreads : threads;
    geometry.threadsPerRow = threads;
    geometry.vectors = geometry.loops ? 1 : perThread();
    // Threads of several warps meet at barriers, which rows at once would
    // share.
    bool meets = threads > warp && reducesColumns(walk);
    geometry.rowsAtOnce = meets ? 1 : rowsFor(isChunked ? 512 : 128);
  }

  /// Of rows that have several warps, which are one at once.
  int64_t floatsOfTurn() const {
    if (!isChunked || geometry.threadsPerRow <= warp)
      return 0;
    int64_t reductions = 0;
    for (ArrayRef<ReduceOp> pass : walk.passes)
      reductions += llvm::count_if(pass, [&](ReduceOp reduce) {
        return walk.formOf(reduce) == ReduceForm::columns;
      });
    return reductions * geometry.threadsPerRow / warp;
  }

  /// A float for each warp and reduction, or for each column of the sums that
  /// the rows at once are added up from.
  int64_t sharedFloats() const {
    int64_t reductions = 0, columns = 0;
    for (ArrayRef<ReduceOp> pass : walk.passes)
      reductions += pass.size();
    for (unsigned i = 0; i < walk.results.size(); ++i)
      if (walk.isChunked(i) && isChunkScalar(walk, i))
        ++reductions;
      else if (walk.isChunked(i) && geometry.rowsAtOnce > 1)
        columns =
            geometry.rowsAtOnce * geometry.vectorsPerBlock() * geometry.width;
    int64_t warps = geometry.block() / warp;
    return std::max(warps > 1 ? reductions * warps : 0, columns);
  }

  const Walk &walk;
  ArrayRef<int64_t> baseBytes;
  bool isChunked;
  Geometry geometry;
};
} // namespace

bool reducesColumns(const Walk &walk) {
  return llvm::any_of(walk.passes, [&](ArrayRef<ReduceOp> pass) {
    return llvm::any_of(pass, [&](ReduceOp reduce) {
      return walk.formOf(reduce) == ReduceForm::columns;
    });
  });
}

bool isChunkScalar(const Walk &walk, unsigned result) {
  return !walk.hasCols(walk.results[result]);
}

bool findsOnlyMaxima(const Walk &walk) {
  FusedOp op = walk.op;
  auto reduces = op.getBody().front().getOps<ReduceOp>();
  return !walk.cols.empty() && !reduces.empty() &&
         llvm::all_of(reduces, [&](ReduceOp reduce) {
           return reduce.getKind() == Reduction::max &&
                  walk.formOf(reduce) == ReduceForm::rows &&
                  tensorType(reduce.getResult()).getRank() == 0 &&
                  llvm::all_of(op.getCols().getNames(), [&](StringAttr name) {
                    return reduce.getDims().find(name) >= 0;
                  });
         });
}

bool liesAlongRows(const Walk &walk, const Access &access) {
  return !walk.rows.empty() && !walk.cols.empty() &&
         access.along(walk.rows.back().key) == 1 &&
         access.along(walk.vectorKey()) > 1;
}

int64_t alignmentOf(const Walk &walk, const Geometry &geometry,
                    const Access &access, int64_t baseBytes) {
  int64_t bytes = bytesOf(access), alignment = std::gcd<int64_t>(16, baseBytes);
  if (geometry.shifted && walk.hasCols(access))
    return std::min(alignment, geometry.width * bytes);
  for (auto &[key, stride] : access.strides)
    alignment =
        std::gcd(alignment, stride * bytes *
                                (key == walk.vectorKey() ? geometry.width : 1));
  return std::max(alignment, bytes);
}

int64_t tileAlignmentOf(const Walk &walk, const Geometry &geometry,
                        const Access &access, int64_t baseBytes) {
  int64_t bytes = bytesOf(access), alignment = std::gcd<int64_t>(16, baseBytes);
  for (auto &[key, stride] : access.strides)
    alignment = std::gcd(
        alignment,
        stride * bytes * (key == walk.rows.back().key ? geometry.tileRows : 1));
  return std::max(alignment, bytes);
}

SmallVector<int64_t> baseAlignments(const KernelSpec &spec) {
  SmallVector<int64_t> bytes;
  for (const Layout &layout :
       llvm::concat<const Layout>(spec.inputs, spec.results))
    bytes.push_back(layout.alignBytes);
  return bytes;
}

void putStoredRowLast(Walk &walk) {
  auto hasTiles = [](const Walk &walk) {
    return tileRowsOf(walk, widthOf(walk)) > 1;
  };
  if (hasTiles(walk))
    return;
  for (size_t last = walk.rows.size(); last-- > 1;) {
    Walk other = walk;
    auto dim = other.rows.begin() + static_cast<ptrdiff_t>(last) - 1;
    std::rotate(dim, dim + 1, other.rows.end());
    if (!hasTiles(other))
      continue;
    walk = std::move(other);
    return;
  }
}

FailureOr<Geometry> chooseGeometry(const Walk &walk,
                                   ArrayRef<int64_t> baseBytes) {
  Geometry geometry = Chooser(walk, baseBytes).run();
  geometry.countsFar = countsFar(walk, geometry);
  if (geometry.grid() > INT32_MAX)
    return FusedOp(walk.op).emitOpError()
           << "needs " << geometry.grid()
           << " blocks, expected fewer than 2^31 on a GPU";
  return geometry;
}

} // namespace meshwork::codegen
