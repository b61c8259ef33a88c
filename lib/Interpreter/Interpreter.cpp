// Walks a function op by op, on one rank or on all ranks of a mesh in step.
#include "lib/Interpreter/Interpreter.h"
#include "lib/Interpreter/Frame.h"

#include "dialects/mesh/Mesh.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {
namespace {

/// The axes of a module, outermost first.
struct MeshAxes {
  SmallVector<std::pair<StringRef, int64_t>> axes;

  static FailureOr<MeshAxes> of(func::FuncOp func) {
    MeshAxes mesh;
    if (mesh::MeshAttr attr = mesh::meshOf(func))
      for (auto [name, size] : llvm::zip_equal(attr.getNames(), attr.getSizes()))
        mesh.axes.emplace_back(name.getValue(), size);
    return mesh;
  }

  /// The first rank of the group of `rank`: its coordinates along `named` set
  /// to zero. Ranks with the same one communicate.
  int64_t groupOf(int64_t rank, ArrayAttr named) const {
    int64_t stride = 1, group = rank;
    for (auto [name, size] : llvm::reverse(axes)) {
      if (llvm::is_contained(named.getAsValueRange<StringAttr>(), name))
        group -= rank / stride % size * stride;
      stride *= size;
    }
    return group;
  }

  LogicalResult check(mesh::AllReduceOp op, size_t numRanks) const {
    int64_t product = 1;
    for (auto [name, size] : axes)
      if (llvm::MulOverflow(product, size, product))
        return op.emitOpError("is on a mesh of more than 2^63 ranks");
    if (product != static_cast<int64_t>(numRanks))
      return op.emitOpError("is on a mesh of ")
             << product << " ranks, but " << numRanks << " run";
    for (StringRef name : op.getAxes().getAsValueRange<StringAttr>())
      if (!llvm::is_contained(llvm::make_first_range(axes), name))
        return op.emitOpError("names axis '")
               << name << "', which is not in `mesh.axes`";
    return success();
  }
};

/// Sums over each group, in the order of ranks.
void allReduce(mesh::AllReduceOp op, const MeshAxes &mesh,
               MutableArrayRef<Frame> frames) {
  std::map<int64_t, Tensor> sums;
  for (auto [rank, frame] : llvm::enumerate(frames)) {
    const Tensor &part = frame.get(op.getInput());
    auto [entry, isNew] =
        sums.try_emplace(mesh.groupOf(rank, op.getAxes()), part);
    for (int64_t i = 0; !isNew && i < part.size(); ++i)
      entry->second[i] += part[i];
  }
  for (auto [rank, frame] : llvm::enumerate(frames))
    frame.set(op.getResult(), sums.at(mesh.groupOf(rank, op.getAxes())));
}

LogicalResult setArguments(func::FuncOp original, func::FuncOp func,
                           Frame &frame, ArrayRef<Tensor> arguments) {
  if (func.getNumArguments() != arguments.size())
    return original.emitOpError("takes ")
           << func.getNumArguments() << " arguments, found "
           << arguments.size();
  for (auto [i, argument, tensor] :
       llvm::enumerate(func.getArguments(), arguments)) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    ArrayRef<int64_t> wanted = type ? type.getShape() : ArrayRef<int64_t>();
    if (wanted != tensor.getShape())
      return original.emitOpError("argument #")
             << i << " has shape " << shapeText(tensor.getShape())
             << ", expected " << shapeText(wanted);
    frame.set(argument, tensor);
  }
  return success();
}

/// What holds whatever the values: known sizes, one block.
LogicalResult checkFunction(func::FuncOp func) {
  if (func.isExternal() || !func.getBody().hasOneBlock())
    return func.emitOpError(
        "cannot be interpreted: expected a body of one block");
  if (failed(checkTypes(func, func.getArgumentTypes())))
    return failure();
  // Before model ops are decomposed, since norms count elements.
  WalkResult sizes = func.walk([](Operation *op) {
    return WalkResult(checkTypes(op, op->getResultTypes()));
  });
  return failure(sizes.wasInterrupted());
}
} // namespace

void decomposeModelOps(func::FuncOp func) {
  SmallVector<DecomposableOpInterface> modelOps;
  func.walk([&](DecomposableOpInterface op) { modelOps.push_back(op); });
  for (DecomposableOpInterface op : modelOps) {
    OpBuilder builder(op);
    op->getResult(0).replaceAllUsesWith(op.decompose(builder));
    op->erase();
  }
}

void Interpreter::startStep() {
  std::erase_if(state, [](const auto &entry) {
    return entry.first.first == StateKind::gradient ||
           entry.first.first == StateKind::loss;
  });
}

FailureOr<SmallVector<Tensor>> Interpreter::run(func::FuncOp func,
                                                ArrayRef<Tensor> arguments) {
  auto results =
      runRanks(func, MutableArrayRef(this, 1), SmallVector<Tensor>(arguments));
  if (failed(results))
    return failure();
  return results->front();
}

FailureOr<std::vector<SmallVector<Tensor>>>
runRanks(func::FuncOp func, MutableArrayRef<Interpreter> ranks,
         ArrayRef<SmallVector<Tensor>> arguments) {
  FailureOr<MeshAxes> mesh = MeshAxes::of(func);
  if (failed(mesh) || failed(checkFunction(func)))
    return failure();
  if (ranks.size() != arguments.size())
    return func.emitOpError("runs on ")
           << ranks.size() << " ranks with arguments for " << arguments.size();
  OwningOpRef<func::FuncOp> copy = func.clone();
  decomposeModelOps(*copy);
  std::vector<Frame> frames(ranks.begin(), ranks.end());
  for (auto [frame, own] : llvm::zip_equal(frames, arguments))
    if (failed(setArguments(func, *copy, frame, own)))
      return failure();
  Block &body = copy->getBody().front();
  for (Operation &op : body.without_terminator()) {
    if (auto reduce = dyn_cast<mesh::AllReduceOp>(op)) {
      if (failed(mesh->check(reduce, ranks.size())))
        return failure();
      allReduce(reduce, *mesh, frames);
      continue;
    }
    for (Frame &frame : frames)
      if (failed(frame.visit(op)))
        return failure();
  }
  std::vector<SmallVector<Tensor>> results;
  for (Frame &frame : frames)
    results.push_back(frame.get(body.getTerminator()->getOperands()));
  return results;
}

} // namespace meshwork::interpreter
