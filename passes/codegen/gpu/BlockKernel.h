// Writes one kernel: which rows and columns a thread takes (BlockKernel.cpp),
// sums across threads (BlockSums.cpp).
#pragma once

#include "passes/codegen/gpu/GpuKernel.h"
#include "passes/codegen/gpu/ThreadBody.h"

namespace meshwork::codegen {

/// Where a cluster's part of a kernel is emitted, and what it has there.
struct BlockPart {
  mlir::Block *entry;        // at whose end it goes
  mlir::ValueRange pointers; // to operands, then results
  mlir::ValueRange streams;  // of the draws
  mlir::Value block;         // i32, of the cluster's own grid
  mlir::Value shared;        // memory of the block, null without
  int64_t threads;           // of a block of the launch
};

class BlockKernel {
public:
  BlockKernel(const Walk &walk, const Geometry &geometry,
              llvm::ArrayRef<int64_t> baseBytes);
  /// Emits all that the cluster's threads do, and their return.
  void build(const BlockPart &part,
             llvm::ArrayRef<transformer::DrawOpInterface> draws);

private:
  using Values = llvm::SmallVector<mlir::Value>;

  // BlockKernel.cpp
  void findThread(mlir::Value block);
  void findBlock(mlir::Value block);
  void emitRow();
  void emitChunk();
  // BlockTiles.cpp
  void emitTiles();
  mlir::Value firstTile(mlir::Value chunk);
  /// Rows of a chunk from `lower` on, one after the other.
  Values emitRows(mlir::Value lower, mlir::Value upper);
  void loadHeld();
  /// Loads row `row`, or the chunk's last, and binds none.
  Values loadAhead(mlir::Value row, mlir::Value upper);
  void bindRow(mlir::Value row, mlir::Value end);
  void bindRowPositions(mlir::Value row);
  void makePlaces();
  /// The only place, once for each row of the thread's tile, if it has one.
  void makeTile();
  /// The place of vector `vector` of a row; it always exists where `isActive`,
  /// and all of its columns do where `isWhole`.
  Place placeOf(mlir::Value vector, bool isActive, bool isWhole = false);
  void bindColumns(Place &place, mlir::Value column);
  void emitHeldPass(unsigned pass);
  /// Results with cols at the current place: values first, then stores.
  void storeColumns();
  /// Results that lie along the rows of the thread's tile, the same way.
  void storeTile();
  bool isStoredByTile(unsigned result) const;
  void storeRowResults();
  bool readsValuesOfRows() const;
  void addRowToChunk();
  /// Whether it is a chunk's sum of columns that are too many for registers:
  /// it lies in the result from the first row on, as on the CPU.
  bool isSummedInMemory(unsigned result) const;
  bool sumsInMemory() const;
  void clearMemory();
  mlir::Value sumWithMemory(unsigned result);
  llvm::ArrayRef<transformer::ReduceOp> reductionsOf(unsigned pass);
  mlir::Value onlyExisting(mlir::Value part, mlir::Value otherwise);
  transformer::ReduceOp reductionOf(unsigned result);
  static bool isMax(transformer::ReduceOp reduce);

  // LoopedPass.cpp
  void emitLoopedPass(unsigned pass);
  /// Which vectors a thread takes in a loop.
  struct Share {
    mlir::Value lower, upper; // of most
    mlir::Value
        closer;        // one that needs a closer look, or past the row; or null
    mlir::Value match; // vector with a column that the cluster compares with
  };
  Share shareOf(bool storesAlone);
  /// Sums of a looped pass, with what the current place adds.
  Values addPlace(llvm::ArrayRef<transformer::ReduceOp> reductions,
                  mlir::ValueRange before);
  bool isOfBf16(transformer::ReduceOp reduce);
  mlir::Value startOf(transformer::ReduceOp reduce);
  /// Defines sums of a single term, and returns the others.
  llvm::SmallVector<transformer::ReduceOp> takePicks(unsigned pass);

  // BlockSums.cpp
  mlir::Value combineLanes(mlir::Value vector, bool isMax);
  /// Each value of each thread to that of all `threads` beside it, in all of
  /// them.
  void reduceThreads(llvm::MutableArrayRef<mlir::Value> values,
                     llvm::ArrayRef<transformer::ReduceOp> reductions,
                     int64_t threads);
  void shuffle(llvm::MutableArrayRef<mlir::Value> values,
               llvm::ArrayRef<transformer::ReduceOp> reductions,
               int64_t threads);
  mlir::Value sharedAddress(mlir::Value index);
  void barrier();
  void initChunk();
  void storeChunk();
  void storeChunkColumns(unsigned result, llvm::ArrayRef<mlir::Value> sums);

  mlir::Value
  op(llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location)> make) {
    return make(body.builder(), body.loc());
  }
  mlir::Value mul(mlir::Value a, int64_t b);
  mlir::Value div(mlir::Value a, int64_t b);
  mlir::Value rem(mlir::Value a, int64_t b);
  mlir::Value plus(mlir::Value a, mlir::Value b);
  mlir::Value isLess(mlir::Value a, mlir::Value b);
  mlir::Value isZero(mlir::Value a);
  mlir::Value both(mlir::Value a, mlir::Value b);

  const Walk &walk;
  const Geometry &geometry;
  ThreadBody body;
  Values yields;
  bool isChunked;
  /// Counts; where threads share vertical sums, they have one number in
  /// `thread`.
  mlir::Value thread, lane, ofRowThread, rowOfBlock, blockRow, blockColumn,
      verticalPart;
  mlir::Value rowExists, shift, shared, tileRow;
  int64_t launchedThreads = 0;
  llvm::SmallVector<Place, 8> places;
  Values carried;         // sums of chunk results, by result and place
  unsigned usedSlots = 0; // of shared memory, of one float a warp
  mlir::Value turn;       // where a row's slots begin; null: at the first
};

} // namespace meshwork::codegen
