// Emits the values of a cluster as one thread of a GPU computes them. A value
// changes with nothing, the row, the place along the columns, or both. Each of
// these has a point in the kernel for its ops, so a loop over rows or places
// holds only ops that change with it.
#pragma once

#include <map>

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "passes/codegen/ValueEmitter.h"
#include "passes/codegen/gpu/Geometry.h"
#include "passes/codegen/gpu/Shortcuts.h"

namespace meshwork::codegen {

/// Bits: changes with the row, with the place.
enum Scope : unsigned { uniform = 0, ofRow = 1, ofPlace = 2, ofBoth = 3 };

/// One vector of columns of a thread.
struct Place {
  unsigned number = 0; // of the vectors that a thread holds
  llvm::SmallVector<std::pair<mlir::StringAttr, mlir::Value>, 2>
      positions;      // counts, of the first column
  mlir::Value active; // i1; null when it always exists
  mlir::Value
      lanes; // which of its columns exist; null when all that is active does
  bool hasNoMatch = false; // of the cluster's column matches
};

class ThreadBody : public ValueEmitter {
public:
  using Values = llvm::SmallVector<mlir::Value>;
  using LoopBody = llvm::function_ref<Values(mlir::Value, mlir::ValueRange)>;

  ThreadBody(const Walk &walk, const Geometry &geometry,
             llvm::ArrayRef<int64_t> baseBytes);

  /// Begins in a kernel's entry block. `pointers` are of the inputs, then of
  /// the results.
  void begin(mlir::Block *entry, mlir::ValueRange pointers);
  /// Which of the threads that share vertical sums this is.
  void setVerticalPart(mlir::Value part) { verticalPart = part; }

  /// Where ops of this scope go now.
  mlir::OpBuilder &builder(unsigned scope = ofBoth) { return builders[scope]; }
  /// A loop at the end of what `changes` (a bit) changes, over [lower, upper),
  /// counts. What scopes without that bit need is emitted before it.
  Values loop(unsigned changes, mlir::Value lower, mlir::Value upper,
              int64_t step, mlir::ValueRange carried, LoopBody body);
  /// `body`, in the same way, where `condition` holds; else `carried`.
  Values onlyIf(unsigned changes, mlir::Value condition,
                mlir::ValueRange carried, llvm::function_ref<Values()> body);
  void bindRow(mlir::StringAttr key, mlir::Value position) {
    rowPositions.push_back({key, position});
  }
  void unbindRow() { rowPositions.clear(); }
  void setPlace(const Place *newPlace) { place = newPlace; }
  const Place *current() const { return place; }

  Emitted eval(mlir::Value value, int64_t rotation = 0) override;
  void define(mlir::Value reduction, mlir::Value value) {
    values[{reduction, 0, -1}] = {value, ofRow};
  }
  /// Loads all inputs that have cols, here, so that no store comes between.
  void preload();
  /// What has been loaded of the current row, which is forgotten, and the same
  /// of another row: in one order.
  Values takeRow();
  void giveRow(mlir::ValueRange loaded);
  const llvm::SmallVector<ColumnMatch> &columnMatches() const {
    return matches;
  }
  /// Of the current row, a count.
  mlir::Value matchingColumn(const ColumnMatch &match);
  /// The one term of a sum, or zero.
  mlir::Value pick(const Pick &pick);
  /// Whether this operand's bf16 lie along the columns.
  bool isVectorOfBf16(unsigned input) const;
  /// Those of the current place, as bf16.
  mlir::Value bf16At(unsigned input);
  /// Result `i` at the current row and place, as it is now.
  mlir::Value loadResult(unsigned i);
  /// Stores it where `condition` holds (always, when null) and the place
  /// exists.
  void storeResult(unsigned i, mlir::Value value, mlir::Value condition);
  /// The same of a result that lies along rows, for each column of the current
  /// place `rows`, the values there of a tile's rows, the current one first.
  void storeTile(unsigned i, llvm::ArrayRef<mlir::Value> rows,
                 mlir::Value condition);
  /// Elements by which the current row of an access that has rows and cols lies
  /// behind a multiple of the width, a count.
  mlir::Value misalignment();
  /// Whether that is not always zero.
  bool isEverMisaligned() const;

  /// A vector of the walk's width, or the scalar itself where that is one.
  mlir::Value spread(mlir::OpBuilder &b, mlir::Value value) override;
  /// Of what counts rows, columns and threads: i32, or i64 where these are far.
  mlir::Type countType();
  mlir::Value number(int64_t value); // of countType
  /// `value`, of i32, as a count: below zero stays below zero.
  mlir::Value toCount(mlir::OpBuilder &b, mlir::Value value);
  mlir::Value constant(float value);
  mlir::Value wordOf(int32_t value) override; // of what bodies compute
  static float start(bool isMax) {
    return isMax ? -std::numeric_limits<float>::infinity() : 0.0f;
  }
  mlir::Value identity(bool isMax) { return constant(start(isMax)); }
  mlir::Value combine(mlir::OpBuilder &b, bool isMax, mlir::Value a,
                      mlir::Value c);
  mlir::Value add(mlir::Value a, mlir::Value c, unsigned scope = ofBoth);
  bool isVector() const { return geometry.width > 1; }

private:
  /// `body` at the end of `block`, of `op`, for what `changes` changes.
  void emitInside(unsigned changes, mlir::Operation *op, mlir::Block *block,
                  llvm::function_ref<Values()> body);
  using Key =
      std::tuple<mlir::Value, int64_t, int>; // value, rotation, place or -1
  Emitted computeInBody(mlir::Operation *op, int64_t rotation) override;
  Emitted loadInput(unsigned input, int64_t rotation) override;
  Emitted defined(transformer::ReduceOp reduce) override {
    return values.lookup({reduce, 0, -1});
  }
  Emitted evalVertical(transformer::ReduceOp reduce) override;
  mlir::OpBuilder &builderOf(unsigned scope) override {
    return builders[scope];
  }
  unsigned join(unsigned a, unsigned b) const override { return a | b; }
  /// A result without cols is evaluated where there is no place.
  unsigned ofElement() const override { return place ? ofBoth : ofRow; }
  Emitted positionOf(mlir::StringAttr key, int64_t rotation,
                     bool forElement = false) override;
  bool isAlongVector(mlir::StringAttr dim) const override {
    return isVector() && dim == walk.vectorKey();
  }
  mlir::Type vectorOf(mlir::Type element) const override {
    return isVector() ? mlir::VectorType::get({geometry.width}, element)
                      : element;
  }
  mlir::Value lanes(mlir::OpBuilder &b, mlir::Type element,
                    int64_t step) override;
  mlir::Value wideOf(mlir::OpBuilder &b, int64_t value) override;
  void relax(mlir::Operation *made, mlir::Operation *op) override;
  mlir::Value inverseOf(mlir::OpBuilder &b, mlir::Value divisor) override;
  mlir::Value drawWord(mlir::OpBuilder &b, mlir::Value positions,
                       mlir::Value seed, mlir::Value step,
                       mlir::Value stream) override;
  /// The sum along `dims`; of the first one this thread's share of `parts`.
  mlir::Value sumVertical(transformer::ReduceOp reduce,
                          llvm::ArrayRef<mlir::StringAttr> dims,
                          mlir::Value carried, bool wide, int64_t parts);
  /// `count` positions of the first dim from `first` on, each `parts` after the
  /// one before.
  mlir::Value sumPositions(transformer::ReduceOp reduce,
                           llvm::ArrayRef<mlir::StringAttr> dims,
                           mlir::Value carried, bool wide, mlir::Value first,
                           int64_t count, int64_t parts);
  mlir::Value orNothing(mlir::Value exists, mlir::Value part, bool isMax);
  /// The sums of all threads that share them, in each.
  mlir::Value sumOfParts(mlir::OpBuilder &b, mlir::Value sum, bool isMax);
  unsigned scopeOf(mlir::Value value);
  mlir::Value rotated(mlir::Value position, int64_t rotation);
  /// A position as it is multiplied with strides.
  mlir::Value toI64(mlir::OpBuilder &b, mlir::Value position);
  /// The element `offset` elements behind `pointer`.
  mlir::Value elementAt(mlir::OpBuilder &b, mlir::Value pointer,
                        mlir::Type storage, int64_t offset);
  Emitted address(unsigned number, int64_t rotation);
  const Access &access(unsigned number) const {
    return number < walk.inputs.size()
               ? walk.inputs[number]
               : walk.results[number - walk.inputs.size()];
  }
  Emitted loadStored(unsigned number, int64_t rotation);
  /// What bodies compute with.
  mlir::Value fromStorageOf(mlir::OpBuilder &b, mlir::Value stored,
                            mlir::RankedTensorType type);
  mlir::Value loadAt(mlir::OpBuilder &b, unsigned number, mlir::Value from);
  /// The first access that has columns: all are shifted as it is.
  unsigned firstAlongColumns() const;
  /// Rounds to what is stored for `element`.
  mlir::Value toStorage(mlir::OpBuilder &b, mlir::Value value,
                        mlir::Type element);
  void storeAt(mlir::OpBuilder &b, unsigned number, mlir::Value to,
               mlir::Value stored);
  /// Element `lane` of each of `vectors`.
  mlir::Value gather(mlir::OpBuilder &b, llvm::ArrayRef<mlir::Value> vectors,
                     int64_t lane);
  /// Where `condition` and `active` hold; null holds.
  void storeWhere(mlir::Value condition, mlir::Value active,
                  llvm::function_ref<void(mlir::OpBuilder &)> write);
  void storeLanes(mlir::OpBuilder &b, unsigned number, mlir::Value to,
                  mlir::Value stored);

  const Geometry &geometry;
  llvm::SmallVector<ColumnMatch> matches;
  llvm::SmallVector<int64_t> baseBytes;
  llvm::SmallVector<mlir::OpBuilder, 4> builders;
  mlir::Block *entry = nullptr;
  llvm::SmallVector<mlir::Value> bases;
  llvm::SmallVector<std::pair<mlir::StringAttr, mlir::Value>> rowPositions,
      verticalPositions;
  mlir::Value verticalPart;
  const Place *place = nullptr;
  llvm::DenseMap<Key, Emitted> values;
  using Loads = std::map<std::tuple<unsigned, int64_t, int>, Emitted>;
  Loads loads;     // as stored
  Loads loadedRow; // by takeRow
  llvm::DenseMap<int64_t, mlir::Value> numbers;
};

} // namespace meshwork::codegen
