// Collectives by their definition: each group's tensors are all there, in index
// order, so a result is one loop over them.
#include "passes/interpreter/Collectives.h"
#include "passes/interpreter/Blocks.h"

#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {
namespace {

using Group = SmallVector<int64_t>; // ranks by index, the first axis major

/// The group of `rank`: it counts through the coordinates along `axes`, the
/// last one fastest, with the others as `rank` has them.
Group groupOf(mesh::MeshAttr mesh, ArrayAttr axes, int64_t rank) {
  Group group = {rank};
  for (StringAttr axis : axes.getAsRange<StringAttr>()) {
    int64_t at = mesh.find(axis), size = mesh.getSizes()[at], stride = 1;
    for (int64_t inner : mesh.getSizes().drop_front(at + 1))
      stride *= inner;
    Group longer;
    for (int64_t member : group)
      for (int64_t i = 0; i < size; ++i)
        longer.push_back(member + (i - member / stride % size) * stride);
    group = longer;
  }
  return group;
}

/// Each group once. Fails when the ranks that run are not the mesh's.
FailureOr<std::vector<Group>> groupsOf(Operation *op, mesh::MeshAttr mesh,
                                       ArrayAttr axes, size_t numRanks) {
  if (!mesh)
    return op->emitOpError("has no mesh; expected the module's attribute ")
           << mesh::MeshDialect::meshName;
  for (StringAttr axis : axes.getAsRange<StringAttr>())
    if (mesh.find(axis) < 0)
      return op->emitOpError("names axis ")
             << axis << ", expected one of " << mesh;
  int64_t ranks = mesh.product(mesh.getNames());
  if (ranks != static_cast<int64_t>(numRanks))
    return op->emitOpError("is on a mesh of ")
           << ranks << " ranks, but " << numRanks << " run";
  std::vector<Group> groups;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    Group group = groupOf(mesh, axes, rank);
    if (group[0] == rank)
      groups.push_back(group);
  }
  return groups;
}

//===-- What a group's ranks get, by index ----------------------------------//

int64_t resultSize(Operation *op, int64_t dim) {
  return tensorType(op->getResult(0)).getDimSize(dim);
}

template <typename Op> Tensor reduced(Op op, ArrayRef<Tensor> parts) {
  // Both enums are made of the plan's.
  return combined(parts, static_cast<plan::Reduction>(op.getReduction()));
}

Tensors blocks(Operation *op, ArrayRef<Tensor> parts, int64_t dim) {
  Tensors results;
  int64_t size = resultSize(op, dim);
  for (auto [i, part] : llvm::enumerate(parts))
    results.push_back(blockOf(part, dim, static_cast<int64_t>(i) * size, size));
  return results;
}

Tensors exchange(mesh::AllToAllOp op, ArrayRef<Tensor> parts) {
  int64_t gather = op.getGatherDim(), split = op.getSplitDim();
  Tensors results;
  for (int64_t i = 0, n = static_cast<int64_t>(parts.size()); i < n; ++i) {
    int64_t size = resultSize(op, split);
    auto sent = llvm::map_to_vector(parts, [&](const Tensor &part) {
      return blockOf(part, split, i * size, size);
    });
    results.push_back(joined(sent, gather, resultSize(op, gather)));
  }
  return results;
}

Tensors communicate(Operation *op, ArrayRef<Tensor> parts) {
  size_t ranks = parts.size();
  return llvm::TypeSwitch<Operation *, Tensors>(op)
      .Case([&](mesh::AllReduceOp op) {
        return Tensors(ranks, reduced(op, parts));
      })
      .Case([&](mesh::AllGatherOp op) {
        int64_t dim = op.getDim();
        return Tensors(ranks, joined(parts, dim, resultSize(op, dim)));
      })
      .Case([&](mesh::ReduceScatterOp op) {
        Tensors sums(ranks, reduced(op, parts));
        return blocks(op, sums, op.getDim());
      })
      .Case([&](mesh::AllToAllOp op) { return exchange(op, parts); })
      .Case([&](mesh::PermuteOp op) {
        return Tensors(llvm::map_range(op.getSources(), [&](int64_t source) {
          return source >= 0 ? parts[source] : Tensor::zeros(op.getType());
        }));
      })
      .Case([&](mesh::SliceOp op) { return blocks(op, parts, op.getDim()); });
}

/// First index and number of elements of each rank's part of a dim of `size`:
/// axis by axis, blocks of ceil(elements / ranks), the last ones short or
/// empty.
std::vector<std::pair<int64_t, int64_t>>
partsOf(mesh::MeshAttr mesh, ArrayRef<StringAttr> axes, int64_t size) {
  std::vector<std::pair<int64_t, int64_t>> parts = {{0, size}};
  int64_t block = size;
  for (StringAttr axis : axes) {
    int64_t ranks = mesh.sizeOf(axis), inner = (block + ranks - 1) / ranks;
    std::vector<std::pair<int64_t, int64_t>> next;
    for (auto [begin, count] : parts)
      for (int64_t i = 0; i < ranks; ++i)
        next.emplace_back(begin + i * inner,
                          std::clamp<int64_t>(count - i * inner, 0, inner));
    parts = next;
    block = inner;
  }
  return parts;
}

/// What each rank of a group has of a dim of `size`: all its elements, split
/// axis by axis, a run of zigzag at once; -1 for what is none.
Tensors positionsOfParts(mesh::MeshAttr mesh, const mesh::PartNumbers &of) {
  std::vector<std::vector<double>> parts(1);
  for (int64_t i = 0; i < of.size; ++i)
    parts[0].push_back(static_cast<double>(i));
  for (const layout::Cut &cut : mesh::cutsOf(mesh, of.split)) {
    bool isZigzag = cut.layout == layout::DimLayout::zigzag && cut.parts > 1;
    size_t pieces = cut.parts * (isZigzag ? 2 : 1);
    std::vector<std::vector<double>> next;
    for (std::vector<double> &part : parts) {
      size_t length = llvm::divideCeil(part.size(), pieces);
      part.resize(length * pieces, -1);
      auto piece = [&](size_t i) {
        return ArrayRef(part).slice(i * length, length).vec();
      };
      for (size_t rank = 0; rank < static_cast<size_t>(cut.parts); ++rank) {
        next.push_back(piece(rank));
        if (isZigzag)
          llvm::append_range(next.back(), piece(pieces - 1 - rank));
      }
    }
    parts = next;
  }
  Tensors results;
  for (const std::vector<double> &part : parts) {
    results.emplace_back(
        std::vector<int64_t>{static_cast<int64_t>(part.size())});
    for (auto [i, position] : llvm::enumerate(part))
      results.back()[static_cast<int64_t>(i)] = position;
  }
  std::rotate(results.begin(), results.end() - of.hop, results.end());
  return results;
}

Tensors numbersOfParts(mesh::MeshAttr mesh, const mesh::PartNumbers &of) {
  Tensors results;
  switch (of.kind) {
  case mesh::PartNumbers::coordinate:
    for (auto [begin, count] : partsOf(mesh, of.split.getAxes(), of.size))
      results.push_back(Tensor::scalar(static_cast<double>(begin)));
    return results;
  case mesh::PartNumbers::extent:
    for (auto [begin, count] : partsOf(mesh, of.split.getAxes(), of.size))
      results.push_back(Tensor::scalar(static_cast<double>(count)));
    return results;
  case mesh::PartNumbers::positions:
    return positionsOfParts(mesh, of);
  }
  llvm_unreachable("all kinds are handled");
}

/// What an op makes on the ranks of a group, when it has several results or
/// operands.
FailureOr<std::vector<Tensors>> evaluateWhole(Operation *op,
                                              std::vector<Tensors> operands) {
  if (auto head = dyn_cast<HeadLossGradOp>(op))
    return evaluateHead(head, operands);
  return evaluateExchange(op, operands);
}

LogicalResult evaluateGroup(Operation *op, mesh::MeshAttr mesh,
                            const Group &group, MutableArrayRef<Frame> frames) {
  if (isa<HeadLossGradOp, ExpertsOp, ExpertsGradOp, ExpertRoundsOp>(op)) {
    std::vector<Tensors> operands;
    for (int64_t rank : group)
      operands.push_back(frames[rank].get(op->getOperands()));
    FailureOr<std::vector<Tensors>> results = evaluateWhole(op, operands);
    if (failed(results))
      return failure();
    for (auto [rank, own] : llvm::zip_equal(group, *results))
      for (auto [value, tensor] : llvm::zip_equal(op->getResults(), own))
        frames[rank].set(value, tensor);
    return success();
  }
  Tensors results;
  if (auto part = dyn_cast<mesh::PartOpInterface>(op)) {
    results = numbersOfParts(mesh, part.getNumbers());
  } else {
    Tensors parts;
    for (int64_t rank : group)
      parts.push_back(frames[rank].get(op->getOperand(0)));
    results = communicate(op, parts);
  }
  for (auto [rank, tensor] : llvm::zip_equal(group, results))
    frames[rank].set(op->getResult(0), tensor);
  return success();
}

ArrayAttr axesOf(Operation *op) {
  if (auto head = dyn_cast<HeadLossGradOp>(op))
    return head.getVocabAxesAttr();
  if (auto experts = dyn_cast<ExpertsOp>(op))
    return experts.getExchangeAxesAttr();
  if (auto grad = dyn_cast<ExpertsGradOp>(op))
    return grad.getExchangeAxesAttr();
  if (auto rounds = dyn_cast<ExpertRoundsOp>(op))
    return rounds.getExchangeAxes();
  if (auto part = dyn_cast<mesh::PartOpInterface>(op))
    return ArrayAttr::get(
        op->getContext(),
        llvm::to_vector_of<Attribute>(part.getNumbers().split.getAxes()));
  if (auto collective = dyn_cast<mesh::CollectiveOpInterface>(op))
    return collective.getAxes();
  return {};
}
} // namespace

bool needsAllRanks(Operation *op) { return !!axesOf(op); }

LogicalResult evaluateTogether(Operation *op, mesh::MeshAttr mesh,
                               MutableArrayRef<Frame> frames) {
  FailureOr<std::vector<Group>> groups =
      groupsOf(op, mesh, axesOf(op), frames.size());
  if (failed(groups))
    return failure();
  for (const Group &group : *groups)
    if (failed(evaluateGroup(op, mesh, group, frames)))
      return failure();
  return success();
}

} // namespace meshwork::interpreter
