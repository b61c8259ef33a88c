// Matrix products: the destination is cut into blocks, each computed whole by
// one thread (the sum over k is never split). With oneDNN column panel by
// column panel, so that a panel of rhs stays in cache while the rows of lhs
// pass by; with tiles of our own one block a thread.
#include "absl/strings/str_cat.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/device/cpu/GemmGrid.h"
#include "runtime/device/cpu/MatmulBlocking.h"
#include "runtime/device/cpu/MatmulEpilogue.h"
#include "runtime/device/cpu/Operation.h"
#include "runtime/device/cpu/TileGemm.h"

namespace meshwork::runtime::cpu {
namespace {

/// The last two dims of an operand as oneDNN takes them.
struct Matrix {
  bool transposed = false;
  int64_t ld = 0;

  /// Elements from the start to (row, column).
  int64_t at(int64_t row, int64_t column) const {
    return transposed ? column * ld + row : row * ld + column;
  }
};

absl::StatusOr<Matrix> matrixOf(const Tensor &tensor, const char *role) {
  int64_t rows = tensor.shape[1], columns = tensor.shape[2];
  int64_t rowStride = tensor.strides[1], columnStride = tensor.strides[2];
  // The stride of a dim of size one means nothing.
  bool denseRows = columnStride == 1 || columns == 1;
  bool denseColumns = rowStride == 1 || rows == 1;
  if (denseRows && (rows == 1 || rowStride >= columns))
    return Matrix{false, rows == 1 ? columns : rowStride};
  if (denseColumns && (columns == 1 || columnStride >= rows))
    return Matrix{true, columns == 1 ? rows : columnStride};
  return absl::UnimplementedError(absl::StrCat(
      role, " is ", tensor.describe(),
      ", expected stride 1 in one of the two inner dims and the other stride "
      "no smaller than that dim"));
}

struct Operands {
  Tensor lhs, rhs, dst, bias;
  bool hasBias = false;
  std::vector<Tensor> scales; // both or none
  Matrix lhsMatrix, rhsMatrix, dstMatrix;
  int64_t batch() const { return dst.shape[0]; }
  int64_t m() const { return dst.shape[1]; }
  int64_t n() const { return dst.shape[2]; }
  int64_t k() const { return lhs.shape[2]; }
};

absl::Status checkTypes(const Operands &ops) {
  bool narrow = plan::isFloat8(ops.lhs.dtype) && plan::isFloat8(ops.rhs.dtype);
  bool inputs = narrow || (ops.lhs.dtype == ops.rhs.dtype &&
                           plan::isWideFloat(ops.lhs.dtype));
  bool output = ops.dst.dtype == DType::f32 ||
                ops.dst.dtype == (narrow ? DType::bf16 : ops.lhs.dtype);
  if (!inputs || !output)
    return absl::UnimplementedError(absl::StrCat(
        "multiplies ", nameOf(ops.lhs.dtype), " by ", nameOf(ops.rhs.dtype),
        " into ", nameOf(ops.dst.dtype),
        ", expected f32 by f32 into f32, or bf16 by bf16, or e4m3 or e5m2 by "
        "e4m3 or e5m2, into f32 or bf16"));
  DType type = narrow ? DType::bf16 : ops.lhs.dtype;
  if (ops.hasBias && ops.bias.dtype != DType::f32 && ops.bias.dtype != type)
    return absl::UnimplementedError(absl::StrCat(
        "bias is ", ops.bias.describe(), ", expected f32 or ", nameOf(type)));
  return absl::OkStatus();
}

absl::Status checkBias(const Operands &ops) {
  int64_t count;
  MESHWORK_ASSIGN_OR_RETURN(count, denseCount(ops.bias, "bias"));
  if (count != ops.n())
    return absl::InvalidArgumentError(absl::StrCat(
        "bias is ", ops.bias.describe(), ", expected ", ops.n(), " elements"));
  if (!ops.dstMatrix.transposed)
    return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "dst is ", ops.dst.describe(), ", expected dense rows beside a bias"));
}

void swapMatrix(Tensor &tensor, Matrix &matrix) {
  std::swap(tensor.shape[1], tensor.shape[2]);
  std::swap(tensor.strides[1], tensor.strides[2]);
  matrix.transposed = !matrix.transposed;
}

/// A transposed destination: its transpose is the product of the operands'.
void transposeAll(Operands &ops) {
  std::swap(ops.lhs, ops.rhs);
  std::swap(ops.lhsMatrix, ops.rhsMatrix);
  swapMatrix(ops.lhs, ops.lhsMatrix);
  swapMatrix(ops.rhs, ops.rhsMatrix);
  swapMatrix(ops.dst, ops.dstMatrix);
}

absl::StatusOr<Operands> operandsOf(const plan::Matmul &op,
                                    const ProgramOnRank &program) {
  Operands ops;
  MESHWORK_ASSIGN_OR_RETURN(ops.lhs, tensorOf(program, op.lhs(), "lhs"));
  MESHWORK_ASSIGN_OR_RETURN(ops.rhs, tensorOf(program, op.rhs(), "rhs"));
  MESHWORK_ASSIGN_OR_RETURN(
      ops.dst, tensorOf(program, MatmulEpilogue::productOf(op), "dst"));
  MESHWORK_RETURN_IF_ERROR(expectRank(ops.lhs, 3, "lhs"));
  MESHWORK_RETURN_IF_ERROR(expectRank(ops.rhs, 3, "rhs"));
  MESHWORK_RETURN_IF_ERROR(expectRank(ops.dst, 3, "dst"));
  bool isShared = ops.rhs.shape[0] == 1; // by all of the batch
  std::vector<int64_t> rhsShape = {isShared ? 1 : ops.batch(), ops.k(),
                                   ops.n()};
  std::vector<int64_t> lhsShape = {ops.batch(), ops.m(), ops.k()};
  MESHWORK_RETURN_IF_ERROR(expectShape(ops.lhs, lhsShape, "lhs"));
  MESHWORK_RETURN_IF_ERROR(expectShape(ops.rhs, rhsShape, "rhs"));
  MESHWORK_ASSIGN_OR_RETURN(ops.lhsMatrix, matrixOf(ops.lhs, "lhs"));
  MESHWORK_ASSIGN_OR_RETURN(ops.rhsMatrix, matrixOf(ops.rhs, "rhs"));
  MESHWORK_ASSIGN_OR_RETURN(ops.dstMatrix, matrixOf(ops.dst, "dst"));
  ops.hasBias = op.bias() != plan::noView;
  if (ops.hasBias)
    MESHWORK_ASSIGN_OR_RETURN(ops.bias, tensorOf(program, op.bias(), "bias"));
  for (uint32_t view : {op.lhs_scale(), op.rhs_scale()})
    if (view != plan::noView) {
      ops.scales.emplace_back();
      MESHWORK_ASSIGN_OR_RETURN(ops.scales.back(),
                                tensorOf(program, view, "scale"));
      MESHWORK_RETURN_IF_ERROR(
          expectType(ops.scales.back(), DType::f32, "scale"));
    }
  MESHWORK_RETURN_IF_ERROR(checkTypes(ops));
  if (ops.hasBias)
    MESHWORK_RETURN_IF_ERROR(checkBias(ops));
  if (isShared)
    ops.rhs.strides[0] = 0;
  if (ops.dstMatrix.transposed)
    transposeAll(ops);
  return ops;
}

GemmSpec blockSpec(const Operands &ops, int64_t rows, int64_t columns) {
  GemmSpec spec{.m = rows, .n = columns, .k = ops.k()};
  spec.type = ops.lhs.dtype;
  spec.rhsType = ops.rhs.dtype;
  spec.dstType = ops.dst.dtype;
  spec.lhsTransposed = ops.lhsMatrix.transposed;
  spec.rhsTransposed = ops.rhsMatrix.transposed;
  spec.lhsLd = ops.lhsMatrix.ld;
  spec.rhsLd = ops.rhsMatrix.ld;
  spec.dstLd = ops.dstMatrix.ld;
  spec.hasBias = ops.hasBias;
  spec.biasType = ops.bias.dtype;
  return spec;
}

class MatmulOperation final : public Operation {
public:
  MatmulOperation(Operands ops, plan::Accumulate accumulate,
                  MatmulEpilogue epilogue)
      : ops(std::move(ops)), accumulate(accumulate),
        epilogue(std::move(epilogue)) {}

  absl::Status describe();
  uint64_t workspaceBytes() const override {
    return std::max(plain.scratchBytes(), adding.scratchBytes()) +
           std::max(plain.packedBytes(), adding.packedBytes());
  }
  absl::Status bind(const PrepareContext &context) override;
  void run(const StepState &state) override;

private:
  absl::Status describe(const MatmulBlocking &blocking);
  absl::Status describe(GemmGrid &grid, bool accumulate, bool pack);
  MatmulShape shape() const {
    return {ops.m(), ops.n(), ops.k(), ops.lhs.bytes(),
            ops.lhsMatrix.transposed};
  }
  void runBlocks(GemmGrid &grid, int64_t begin, int64_t end, int thread);
  float scale() const {
    float product = 1;
    for (const Tensor &scale : ops.scales)
      product *= *reinterpret_cast<const float *>(scale.in(arena));
    return product;
  }
  const std::byte *panelOf(int64_t batch, int64_t n) const {
    return ops.rhs.in(arena) +
           (batch * ops.rhs.strides[0] + ops.rhsMatrix.at(0, n)) *
               ops.rhs.bytes();
  }

  Operands ops;
  plan::Accumulate accumulate;
  MatmulEpilogue epilogue;
  Cut rows, columns;
  GemmGrid plain, adding;
};

/// Tiles are cut for the team in bind(); no cut needs more scratch than the
/// whole product.
absl::Status MatmulOperation::describe() {
  if (hasTileGemm(ops.lhs.dtype))
    return describe(MatmulBlocking{ops.m(), ops.n(), false});
  return describe(chooseMatmulBlocking(shape()));
}

absl::Status MatmulOperation::describe(const MatmulBlocking &blocking) {
  rows = {ops.m(), blocking.m};
  columns = {ops.n(), blocking.n};
  if (accumulate != plan::Accumulate::yes)
    MESHWORK_RETURN_IF_ERROR(describe(plain, false, blocking.packRhs));
  if (accumulate != plan::Accumulate::no)
    MESHWORK_RETURN_IF_ERROR(describe(adding, true, blocking.packRhs));
  return absl::OkStatus();
}

absl::Status MatmulOperation::describe(GemmGrid &grid, bool accumulate,
                                       bool pack) {
  return grid.describe(rows, columns, [&](int64_t m, int64_t n) {
    GemmSpec spec = blockSpec(ops, m, n);
    spec.accumulate = accumulate;
    spec.packRhs = pack;
    return spec;
  });
}

absl::Status MatmulOperation::bind(const PrepareContext &context) {
  MESHWORK_RETURN_IF_ERROR(Operation::bind(context));
  if (hasTileGemm(ops.lhs.dtype))
    MESHWORK_RETURN_IF_ERROR(
        describe(chooseTileBlocking(shape(), ops.batch(), team->size())));
  MESHWORK_RETURN_IF_ERROR(plain.generate(team->size()));
  return adding.generate(team->size());
}

void MatmulOperation::run(const StepState &state) {
  GemmGrid &grid = accumulates(accumulate, state) ? adding : plain;
  int64_t items = ops.batch() * columns.count() * rows.count();
  team->parallelFor(items, [&](int64_t begin, int64_t end, int thread) {
    runBlocks(grid, begin, end, thread);
  });
  epilogue.run(*team, arena);
}

/// Items count row blocks innermost, then panels, then batches.
void MatmulOperation::runBlocks(GemmGrid &grid, int64_t begin, int64_t end,
                                int thread) {
  std::byte *packed = workspaceOf(thread);
  std::byte *scratch = packed + grid.packedBytes();
  int64_t packedPanel = -1;
  for (int64_t item = begin; item < end; ++item) {
    int64_t panel = item / rows.count(), row = item % rows.count();
    int64_t batch = panel / columns.count(), column = panel % columns.count();
    int64_t m = row * rows.block, n = column * columns.block;
    Gemm &gemm = grid.at(rows.lengthAt(row), columns.lengthAt(column));
    const std::byte *rhs = panelOf(batch, n);
    if (gemm.packedBytes() > 0) {
      if (panel != packedPanel)
        gemm.pack(thread, rhs, packed, scratch);
      packedPanel = panel;
      rhs = packed;
    }
    const std::byte *lhs =
        ops.lhs.in(arena) +
        (batch * ops.lhs.strides[0] + ops.lhsMatrix.at(m, 0)) * ops.lhs.bytes();
    std::byte *dst =
        ops.dst.in(arena) +
        (batch * ops.dst.strides[0] + ops.dstMatrix.at(m, n)) * ops.dst.bytes();
    const std::byte *bias =
        ops.hasBias ? ops.bias.in(arena) + n * ops.bias.bytes() : nullptr;
    gemm.run(thread, lhs, rhs, dst, bias, scratch, scale());
  }
}

} // namespace

OperationOr make(const plan::Matmul &op, const ProgramOnRank &program) {
  Operands ops;
  MESHWORK_ASSIGN_OR_RETURN(ops, operandsOf(op, program));
  MatmulEpilogue epilogue;
  MESHWORK_ASSIGN_OR_RETURN(epilogue, MatmulEpilogue::of(op, program));
  auto matmul = std::make_unique<MatmulOperation>(
      std::move(ops), op.accumulate(), std::move(epilogue));
  MESHWORK_RETURN_IF_ERROR(matmul->describe());
  return matmul;
}

} // namespace meshwork::runtime::cpu
