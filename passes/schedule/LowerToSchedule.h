// One instruction for each op of the step.
#pragma once

#include "dialects/mesh/Mesh.h"
#include "passes/schedule/Kernels.h"
#include "passes/schedule/Matmul.h"

namespace meshwork::schedule {

/// Puts collectives of one kind side by side where nothing keeps them apart, so
/// that they travel in one bucket.
void groupCollectives(::mlir::Block &body);

/// Appends instructions to the lists of a program.
class Lowering {
public:
  /// `module` has @microbatch and @update.
  Lowering(::mlir::ModuleOp module, ProgramOp program, Kernels &kernels,
           int64_t bucketBytes, int64_t rowBytes, bool sumsInAnyOrder);

  /// Every op of @microbatch in order.
  ::mlir::LogicalResult lowerMicrobatch(::mlir::func::FuncOp function);
  /// Every op of @update, after the reduction of the loss.
  ::mlir::LogicalResult lowerUpdate(::mlir::func::FuncOp function);
  /// Parameters, inputs and results, after all else.
  ::mlir::LogicalResult describeState(::mlir::func::FuncOp microbatch);

private:
  ListOp addList(ListKind kind, int64_t stage);
  /// What is lowered from here on goes there.
  void beginList(ListKind kind, int64_t stage = 0);
  /// State that something other than a first product adds to.
  void zeroState(::mlir::func::FuncOp microbatch);
  ::mlir::LogicalResult lower(::mlir::Operation *op);
  /// Whether it is made of what the runtime writes once a step, and nothing
  /// else, or says that it is of the step.
  bool isOfStep(::mlir::Operation *op) const;
  /// What all microbatches read, in the order of the program.
  ::mlir::LogicalResult lowerStep(::mlir::Block &body);
  ::mlir::LogicalResult lowerAtStepStart(::mlir::Operation *op);
  ::mlir::LogicalResult findForStep(::mlir::Operation *user,
                                    ::mlir::Value operand);
  Place placeOfStep(::mlir::Value value);
  // Between stages (LowerTransfers.cpp).
  ::mlir::LogicalResult lowerSend(mesh::SendOp op);
  ::mlir::LogicalResult lowerReceive(mesh::ReceiveOp op);
  ::mlir::LogicalResult lowerInstruction(::mlir::Operation *op);
  ::mlir::LogicalResult lowerFused(transformer::FusedOp op);
  // Repeats (LowerRepeat.cpp).
  ::mlir::LogicalResult lowerRepeat(transformer::RepeatOp op);
  ::mlir::LogicalResult placeArguments(transformer::RepeatOp op);
  ::mlir::LogicalResult placeYields(transformer::RepeatOp op);
  ::mlir::LogicalResult copyUnlessThere(::mlir::Location loc,
                                        ::mlir::Value value,
                                        const Place &wanted);
  ::mlir::LogicalResult lowerProduct(const ProductParts &product);
  ::mlir::FailureOr<::mlir::Value> auxOf(const ProductParts &product,
                                         const Layout &layout);
  ::mlir::FailureOr<::mlir::Value> flat(::mlir::Value value, bool isWritten);
  ::mlir::FailureOr<::mlir::Value> runOf(::mlir::Value numbers);
  ::mlir::LogicalResult lowerAttention(transformer::AttentionOp op);
  ::mlir::LogicalResult lowerAttentionGrad(transformer::AttentionGradOp op);
  ::mlir::LogicalResult lowerEmbedding(transformer::EmbeddingOp op);
  ::mlir::LogicalResult lowerEmbeddingGrad(transformer::EmbeddingGradOp op);
  ::mlir::LogicalResult lowerRotaryTable(transformer::RotaryTableOp op);
  ::mlir::LogicalResult lowerAssign(transformer::AssignOp op);
  ::mlir::LogicalResult lowerNumberOfPart(::mlir::Operation *op);
  Place numberOfPart(InputKind kind, ::mlir::ArrayAttr axes, int64_t size);
  Place inputOfPart(InputKind kind, mesh::DimShardingAttr split, int64_t size,
                    ::llvm::ArrayRef<int64_t> shape, int64_t hop = 0);
  /// A view where parameters, inputs and results are declared.
  ::mlir::Value declaredView(const Place &place);
  void describeParameter(transformer::ParameterOp op,
                         ::llvm::ArrayRef<transformer::StateOp> slots);
  void describeInputs(::mlir::func::FuncOp microbatch);

  /// Collectives of one kind that stand side by side.
  struct Bucket {
    mesh::CollectiveOpInterface first;
    CollectiveKind kind;
    Reduction reduction;
    ::llvm::SmallVector<int64_t> sources, dims, toDims;
    ::llvm::SmallVector<::mlir::Value> inputs, outputs;
    int64_t bytes;
    ::llvm::SmallVector<std::pair<Place, Place>, 1> places; // of the views
  };
  ::mlir::LogicalResult lowerCollective(mesh::CollectiveOpInterface op);
  ::mlir::LogicalResult lowerSlice(mesh::SliceOp op);
  ::mlir::FailureOr<Place> placeOfResult(mesh::CollectiveOpInterface op,
                                         const Place &input);
  static Bucket bucketOf(mesh::CollectiveOpInterface op);
  bool mayReorder(const Bucket &bucket) const;
  static bool isSameElement(const Bucket &a, const Bucket &b);
  static bool conflict(const Bucket &a, const Bucket &b);
  ::mlir::FailureOr<Place> placeOfPart(::mlir::Value operand,
                                       ::mlir::Value result);
  ::llvm::StringRef gradientOf(::mlir::Value value);
  void noteReduced(::mlir::Value from, ::mlir::Value to);
  /// Appends the instruction of the pending bucket.
  void flush();

  /// Where a product or an embedding gradient goes, and whether it adds there.
  struct Destination {
    Place place;
    Accumulate accumulate;
    StateKey key = {}; // of what it sets in the first microbatch
  };
  ::mlir::FailureOr<Destination> destinationOf(::mlir::Value value);

  // A place with the loops that an instruction wants (LowerCopies.cpp): the
  // tensor's own, else a copy's, from which what is written is copied back.
  ::mlir::FailureOr<Place> readable(::mlir::Value value, const Layout &layout);
  ::mlir::FailureOr<Place> writable(::mlir::Value value, const Layout &layout);
  Place writable(Destination &destination, const Layout &layout,
                 ::mlir::Location loc);
  /// A place of its own for what is copied to `place` after the instruction.
  Place beside(const Place &place, const Layout &layout, ::mlir::Location loc);
  ::mlir::FailureOr<::mlir::Value> read(::mlir::Value value,
                                        const Layout &layout);
  ::mlir::FailureOr<::mlir::Value> write(::mlir::Value value,
                                         const Layout &layout);
  void copy(::mlir::Location loc, const Place &from, const Place &to);
  void copyLoopsFrom(::mlir::Location loc, Place from, Place to,
                     ::llvm::SmallVector<CopyLoop> loops);
  void copyBack();
  // Parts that are set into a whole.
  ::mlir::LogicalResult zeroAround(::mlir::Operation *producer);
  ::mlir::LogicalResult clear(transformer::UnsliceOp op);
  void zero(::mlir::Location loc, Place place,
            ::llvm::ArrayRef<CopyLoop> loops);
  ::mlir::LogicalResult lowerUnslice(transformer::UnsliceOp op);
  ::mlir::LogicalResult takeOver(::mlir::Value operand, ::mlir::Value result);
  void zeroAtStepStart(const Place &place, const ::llvm::Twine &what);
  /// The matrices of a product ([batch, rows, columns]) with extents that fast
  /// kernels take, where there is room; see WidenProducts.cpp.
  void widen(::mlir::Location loc, Place &lhs, Place &rhs, Place &dst);
  void zeroBehind(::mlir::Location loc, const Place &matrix, int64_t loop,
                  int64_t size);

  ::mlir::FailureOr<::mlir::Value> view(::mlir::Value value);
  /// Seed, step and first sample as one; then the first head, if there.
  ::llvm::SmallVector<::mlir::Value> randomViews(::mlir::ValueRange random);
  ::mlir::Value viewOrNone(::mlir::Value value);
  /// The parameter that an instruction is called after; "" when none.
  struct Origin {
    ::llvm::StringRef parameter;
    bool isGradient; // it makes that parameter's gradient
  };
  static Origin originOf(::mlir::Operation *op);
  ::mlir::StringAttr sourceOf(::mlir::Operation *op);
  void noteLayer(::mlir::Operation *op, ::mlir::Operation *before);
  /// Counts past what the attribute holds are its largest.
  ::mlir::IntegerAttr i64(uint64_t value) {
    return builder.getI64IntegerAttr(
        static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)));
  }

  ::mlir::ModuleOp module;
  ProgramOp program;
  int64_t bucketBytes;
  bool sumsInAnyOrder;       // of bf16, between ranks
  ::mlir::OpBuilder builder; // at the end of the current list
  Placement placement;
  Kernels &kernels;
  ListOp once, step;
  ::llvm::DenseSet<StateKey>
      written; // gradients that an earlier product has set
  ::llvm::DenseSet<StateKey> zeroed; // and those that a step starts at zero
  ::llvm::DenseSet<::mlir::Value> ofStep; // what all its microbatches read
  ::llvm::DenseSet<::mlir::Operation *> lowered; // in the list `step`
  ::llvm::DenseSet<::mlir::Operation *> cleared; // unslices whose gaps are zero
  std::map<std::tuple<const void *, Layout::Dims, bool>, Place>
      copies; // of what is read, by the order of dims and the pass
  struct Back {
    ::mlir::Location loc;
    Place from, to;
  };
  std::vector<Back> backs;              // after the current instruction
  ::mlir::Operation *current = nullptr; // that is lowered
  ::llvm::DenseMap<::mlir::Value, ::llvm::StringRef> reducedNames;
  ::llvm::StringMap<Place> reduced; // gradients as @update leaves them
  std::optional<Bucket> pending;
  struct Coordinate {
    InputKind kind;
    Place place;
    mesh::DimShardingAttr split;
    int64_t size, hop;
  };
  std::map<std::string, Coordinate> coordinates; // by name
  ::llvm::StringMap<int64_t> layers;             // of parameters
};

} // namespace meshwork::schedule
