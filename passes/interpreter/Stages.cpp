// A step that is cut into stages: each coordinate along the pipeline's axis
// runs its own function as far as it can, until what it waits for is there.
#include "passes/interpreter/Collectives.h"
#include "passes/interpreter/Frame.h"
#include <deque>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {
namespace {

/// The ranks of one coordinate, which run one function in step.
struct Stage {
  func::FuncOp function;
  std::vector<Frame> frames; // in the order of ranks
  Block::iterator next;
  /// What other coordinates have sent: by coordinate and direction, in order;
  /// tensors of each rank.
  std::map<std::pair<int64_t, mesh::Direction>,
           std::deque<std::vector<Tensors>>>
      arrived;
};

class Pipeline {
public:
  Pipeline(ArrayRef<func::FuncOp> functions, StringAttr axis,
           MutableArrayRef<Interpreter> ranks)
      : whole(mesh::meshOf(functions.front())), axis(axis) {
    int64_t at = whole.find(axis), inner = 1;
    SmallVector<int64_t> sizes(whole.getSizes());
    for (int64_t size : whole.getSizes().drop_front(at + 1))
      inner *= size;
    for (func::FuncOp function : functions)
      stages.push_back({function, {}, function.getBody().front().begin(), {}});
    for (auto [rank, interpreter] : llvm::enumerate(ranks)) {
      int64_t coordinate = rank / inner % sizes[at];
      stageOf.emplace_back(coordinate, stages[coordinate].frames.size());
      stages[coordinate].frames.emplace_back(interpreter);
    }
    sizes[at] = 1;
    own = mesh::MeshAttr::get(whole.getContext(), whole.getNames(), sizes);
  }

  LogicalResult run(ArrayRef<SmallVector<Tensor>> arguments) {
    for (auto [rank, place] : llvm::enumerate(stageOf)) {
      Stage &stage = stages[place.first];
      for (auto [argument, tensor] :
           llvm::zip_equal(stage.function.getArguments(), arguments[rank]))
        stage.frames[place.second].set(argument, tensor);
    }
    bool moved = true;
    while (moved) {
      moved = false;
      for (auto [coordinate, stage] : llvm::enumerate(stages)) {
        FailureOr<bool> any = advance(stage, coordinate);
        if (failed(any))
          return failure();
        moved |= *any;
      }
      if (!moved && llvm::all_of(stages, [&](Stage &stage) {
            return meetsOthers(*stage.next);
          })) {
        if (failed(meet()))
          return failure();
        moved = true;
      }
    }
    for (Stage &stage : stages)
      if (!stage.next->hasTrait<OpTrait::IsTerminator>())
        return stage.next->emitOpError("waits for what no stage sends");
    return success();
  }

private:
  bool meetsOthers(Operation &op) const {
    auto collective = dyn_cast<mesh::CollectiveOpInterface>(op);
    return collective && llvm::is_contained(collective.getAxes(), axis);
  }

  /// As far as it goes; whether it went at all.
  FailureOr<bool> advance(Stage &stage, int64_t coordinate) {
    bool moved = false;
    for (; !stage.next->hasTrait<OpTrait::IsTerminator>(); ++stage.next) {
      Operation &op = *stage.next;
      if (meetsOthers(op))
        break;
      if (auto receive = dyn_cast<mesh::ReceiveOp>(op)) {
        if (!take(stage, receive))
          break;
      } else if (auto send = dyn_cast<mesh::SendOp>(op)) {
        std::vector<Tensors> tensors;
        for (Frame &frame : stage.frames)
          tensors.push_back(frame.get(send.getInputs()));
        stages[send.getPeer()]
            .arrived[{coordinate, send.getDirection()}]
            .push_back(std::move(tensors));
      } else if (!isa<StageListOp>(op) &&
                 failed(evaluate(op, own, stage.frames))) {
        return failure();
      }
      moved = true;
    }
    return moved;
  }

  static bool take(Stage &stage, mesh::ReceiveOp op) {
    auto &waiting =
        stage.arrived[{static_cast<int64_t>(op.getPeer()), op.getDirection()}];
    if (waiting.empty())
      return false;
    for (auto [frame, tensors] : llvm::zip_equal(stage.frames, waiting.front()))
      for (auto [result, tensor] : llvm::zip_equal(op.getResults(), tensors))
        frame.set(result, tensor);
    waiting.pop_front();
    return true;
  }

  /// All coordinates stand at a collective over the axis; it must be one.
  LogicalResult meet() {
    Operation &first = *stages.front().next;
    for (Stage &stage : stages)
      if (stage.next->getName() != first.getName() ||
          stage.next->getAttr("axes") != first.getAttr("axes") ||
          stage.next->getResultTypes() != first.getResultTypes())
        return stage.next->emitOpError("meets another collective");
    std::vector<Frame> together;
    for (auto [coordinate, number] : stageOf) {
      Stage &stage = stages[coordinate];
      together.push_back(stage.frames[number]);
      together.back().set(first.getOperand(0),
                          stage.frames[number].get(stage.next->getOperand(0)));
    }
    if (failed(evaluateTogether(&first, whole, together)))
      return failure();
    for (auto [frame, place] : llvm::zip_equal(together, stageOf)) {
      Stage &stage = stages[place.first];
      stage.frames[place.second].set(stage.next->getResult(0),
                                     frame.get(first.getResult(0)));
    }
    for (Stage &stage : stages)
      ++stage.next;
    return success();
  }

  mesh::MeshAttr whole, own; // of all ranks, and of those of one coordinate
  StringAttr axis;
  std::vector<Stage> stages;
  std::vector<std::pair<int64_t, size_t>> stageOf; // and frame, by rank
};
} // namespace

LogicalResult runStages(ArrayRef<func::FuncOp> functions, StringRef axis,
                        MutableArrayRef<Interpreter> ranks,
                        ArrayRef<SmallVector<Tensor>> arguments) {
  func::FuncOp first = functions.front();
  auto name = StringAttr::get(first.getContext(), axis);
  return Pipeline(functions, name, ranks).run(arguments);
}

} // namespace meshwork::interpreter
