#include "passes/partition/ChunkGain.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
namespace meshwork::partition {
using namespace transformer;
namespace {

double elementsOf(Value value) {
  return static_cast<double>(tensorType(value).getNumElements());
}
double bytesOf(Value value) {
  return elementsOf(value) * tensorType(value).getElementTypeBitWidth() / 8;
}

cost::Arithmetic arithmeticOf(Value operand) {
  Type type = tensorType(operand).getElementType();
  if (type.getIntOrFloatBitWidth() == 8)
    return cost::Arithmetic::fp8;
  return type.isBF16() ? cost::Arithmetic::bf16 : cost::Arithmetic::f32;
}

class PairTime {
public:
  PairTime(ChunkedPair pair, const cost::Times &times, mesh::MeshAttr mesh)
      : pair(std::move(pair)), times(times) {
    for (auto axis : this->pair.moves.getAxes().getAsRange<StringAttr>())
      axes.push_back(static_cast<uint32_t>(mesh.find(axis)));
  }

  /// Of that part of the rows.
  double moved(double part) const {
    return times.collective(kindOf(), part * bytesOf(pair.moves->getOperand(0)),
                            axes);
  }
  double multiplied(double part) const {
    double sum = 0;
    for (ContractOp product : pair.products)
      sum += secondsOf(product, part);
    return sum;
  }
  double beside() const {
    double sum = 0;
    for (ContractOp product : pair.beside)
      sum += secondsOf(product, 1);
    return sum;
  }
  double copied() const {
    if (pair.bytesCopied == 0)
      return 0;
    return times.instruction({}, 0,
                             2.0 * static_cast<double>(pair.bytesCopied));
  }
  bool takesCores() const { return times.takesCores(axes); }

private:
  plan::CollectiveKind kindOf() const {
    if (isa<mesh::AllGatherOp>(pair.moves))
      return plan::CollectiveKind::all_gather;
    return isa<mesh::AllReduceOp>(pair.moves)
               ? plan::CollectiveKind::all_reduce
               : plan::CollectiveKind::reduce_scatter;
  }

  /// Rows are those of the operand that has the dim of the chunks. Of a product
  /// beside any operand will do.
  double secondsOf(ContractOp product, double part) const {
    Value rows = product.getLhs(), other = product.getRhs();
    if (dimsOf(rows).find(pair.chunks.dim) < 0)
      std::swap(rows, other);
    double flops = static_cast<double>(product.getFlops()),
           made = elementsOf(product.getResult()), k = flops / 2 / made,
           m = elementsOf(rows) / k;
    cost::Work work{cost::Work::product, arithmeticOf(rows)};
    work.multiplied = {1, m * part, made / m, k,
                       bytesOf(rows) / elementsOf(rows)};
    return times.instruction(
        work, flops * part,
        part * (bytesOf(rows) + bytesOf(product.getResult())) + bytesOf(other));
  }

  mutable ChunkedPair pair; // ops answer no const questions
  const cost::Times &times;
  std::vector<uint32_t> axes;
};
} // namespace

ChunkGain gainOf(const ChunkedPair &pair, const cost::Times &times,
                 mesh::MeshAttr mesh) {
  PairTime time(pair, times, mesh);
  auto count = static_cast<double>(pair.chunks.count);
  double moved = time.moved(1 / count), multiplied = time.multiplied(1 / count),
         beside = time.beside();
  const cost::Machine &machine = times.machine();
  ChunkGain gain;
  gain.whole = std::max(time.moved(1) - beside, 0.0) + time.multiplied(1);
  gain.chunked =
      std::max(moved - beside, 0.0) + multiplied +
      (count - 1) * (std::max(moved, multiplied) + machine.handOver +
                     machine.slowdown * std::min(moved, multiplied)) +
      time.copied();
  gain.takesCores = time.takesCores();
  return gain;
}

std::string textOf(const ChunkGain &gain, int64_t chunks, bool isDone) {
  auto us = [](double seconds) {
    return llvm::formatv("{0:F1} us", seconds * 1e6).str();
  };
  if (isDone)
    return llvm::formatv("in {0} chunks beside its products, estimated to "
                         "take {1}; whole {2}",
                         chunks, us(gain.chunked), us(gain.whole));
  if (gain.takesCores)
    return "left whole: moving chunks takes the cores that multiply";
  return llvm::formatv("left whole: estimated to take {0}; in {1} chunks {2}",
                       us(gain.whole), chunks, us(gain.chunked));
}

} // namespace meshwork::partition
