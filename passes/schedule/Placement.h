// Where tensors lie: each value of the step as a strided part of one buffer.
#pragma once

#include "dialects/mesh/Mesh.h"
#include "dialects/schedule/Schedule.h"
#include "dialects/transformer/Transformer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace meshwork::schedule {

/// Elements that a rank's index along axes moves a place by.
struct PlaceShift {
  ::mlir::ArrayAttr axes;
  int64_t elements;
  bool operator==(const PlaceShift &) const = default;
};

/// A tensor in a buffer. `offset` and `strides` are in elements.
struct Place {
  ::mlir::Value buffer;
  int64_t offset = 0;
  ::llvm::SmallVector<int64_t> shape, strides;
  ::mlir::Type element;
  ::llvm::SmallVector<PlaceShift, 1> shifts = {};
  /// Elements that each turn of the repeats around moves it by, the outermost
  /// first.
  ::llvm::SmallVector<int64_t, 1> advances = {};
};

/// Of one element, and of all.
int64_t elementBytes(const Place &place);
int64_t bytesOf(const Place &place);

/// False only when no rank finds an element in both, in one turn of the repeats
/// around them. Exact for slices of one tensor along any dims.
bool mayShareBytes(const Place &a, const Place &b);

using transformer::StateKey;

/// What products of GPUs have fast kernels for: `size`, or a little more where
/// no eight elements divide it. `unit` is a power of two, in elements.
int64_t fastExtent(int64_t size, int64_t unit);

/// Creates buffers before the lists of `program` and finds the place of each
/// value.
class Placement {
public:
  /// `rowBytes`: see Passes.td at row-bytes.
  Placement(ProgramOp program, ::mlir::ModuleOp module, int64_t rowBytes);

  /// The place of `value`, found from what uses it: state that it is assigned
  /// to, a whole that it is a part of, or else a buffer of its own.
  ::mlir::FailureOr<Place> of(::mlir::Value value);
  /// Puts `value` where another one lies.
  void set(::mlir::Value value, Place place) { places[value] = place; }
  /// Puts `result` where `operand` lies, which must have no other use.
  ::mlir::LogicalResult takeOver(::mlir::Value operand, ::mlir::Value result);
  /// State, made on first use; weights and master are one in f32 training.
  Place state(StateKey key, ::mlir::RankedTensorType type);
  bool hasState(StateKey key) const { return states.contains(key); }
  /// One of the scalars that the runtime sets.
  Place stepInput(transformer::StepInputOp op);
  /// What the runtime sets for all of a step or a microbatch, made on first
  /// use: learning_rate; random and update_random, three numbers each.
  Place input(InputKind kind);
  bool hasInput(InputKind kind) const { return inputs.contains(kind); }
  /// Those bias corrections that something reads, by base.
  const std::map<double, Place> &biasCorrections() const { return corrections; }
  /// How a state lies: its type on one rank and its sharding.
  struct Stored {
    ::mlir::RankedTensorType type;
    mesh::ShardingAttr sharding; // null: whole
  };
  Stored stored(StateKey key) const { return known.lookup(key); }
  /// Whether weights and master weights are one in f32.
  bool isMixed() const { return mixed; }
  /// Ranks that differ only along `axes`.
  int64_t groupSize(::mlir::ArrayAttr axes) const;
  /// The block of `whole` that a rank has when `dim` is split over `axes`.
  static Place block(const Place &whole, int64_t dim, int64_t size,
                     ::mlir::ArrayAttr axes);
  /// A persistent buffer with row-major contents.
  Place persistent(::llvm::StringRef name, BufferKind kind,
                   ::llvm::ArrayRef<int64_t> shape, ::mlir::Type element);
  /// Of a weight, made by a step for all its microbatches.
  Place copyOfWeight(::mlir::Value value);
  /// A buffer of its own, which lives as long as something uses it.
  Place temporary(::mlir::Value value);
  /// A temporary like `place`, its dims from the outermost to the innermost in
  /// `order`.
  Place temporary(const Place &place, ::llvm::ArrayRef<int64_t> order);

  /// Whether the elements of `loop` from where `loops` ends up to `size` are
  /// nobody's: behind the rows of its buffer, or behind the last of them.
  /// `loops` is a matrix, [batch, one, other].
  bool hasRoom(const Place &loops, int64_t loop, int64_t size) const;
  /// Where rows begin, in bytes; 0: side by side.
  int64_t bytesOfRows() const { return rowBytes; }

  /// A view op of `place` at `builder`.
  static ::mlir::Value view(::mlir::OpBuilder &builder, ::mlir::Location loc,
                            const Place &place);
  /// What `slice` with this dim, offset and part type cuts out of `whole`.
  static Place part(const Place &whole, ::mlir::RankedTensorType wholeType,
                    ::mlir::StringAttr dim, int64_t offset,
                    ::mlir::RankedTensorType part);
  /// Where one turn of `repeat` has its part of a whole that it cuts.
  static Place turnOf(const Place &whole, ::mlir::RankedTensorType wholeType,
                      transformer::RepeatOp repeat);
  /// The type of kept gradients.
  ::mlir::Type gradientType() const { return gradient; }

private:
  /// A tensor of rows, each a run of its last dim, and how much of it is
  /// stored; in elements.
  struct Room {
    int64_t rows, row, storedRows, storedRow;
  };
  /// Rows `rowElements` apart (0: side by side), and room behind the last one
  /// if it `mayGrow`.
  Place buffer(::llvm::StringRef name, BufferKind kind, bool isPersistent,
               ::llvm::ArrayRef<int64_t> shape, ::mlir::Type element,
               int64_t rowElements = 0, bool mayGrow = false);
  bool isMultiplied(::mlir::Value value) const;
  int64_t rowElementsOf(::mlir::Value value) const;
  ::mlir::FailureOr<Place> find(::mlir::Value value);
  ::mlir::FailureOr<Place> yielded(::mlir::Value value,
                                   transformer::RepeatOp repeat);
  void noteStates(::mlir::ModuleOp module);
  Place biasCorrection(double base);
  ::mlir::FailureOr<Place> masterOf(::llvm::StringRef name);
  ::mlir::FailureOr<Place> gathered(mesh::AllGatherOp gather);
  ::mlir::FailureOr<Place> assigned(::mlir::Value value,
                                    transformer::AssignOp assign);

  ProgramOp program;
  ::mlir::OpBuilder builder; // before the first list
  ::mlir::Location loc;
  int64_t rowBytes;
  ::mlir::Operation *firstList = nullptr;
  ::mlir::Type gradient;
  bool mixed; // weights apart from the master weights
  ::llvm::DenseMap<::mlir::Value, Place> places;
  ::llvm::DenseMap<StateKey, Place> states;
  ::llvm::DenseMap<::mlir::Value, Room> rooms; // by buffer
  ::llvm::DenseMap<StateKey, Stored> known;
  mesh::MeshAttr mesh; // null: one rank
  std::map<InputKind, Place> inputs;
  std::map<double, Place> corrections;
  int64_t numTemporaries = 0;
};

} // namespace meshwork::schedule
