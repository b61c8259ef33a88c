#include "passes/schedule/Overwrites.h"
#include "passes/schedule/Lowering.h"
#include "passes/schedule/LoweringModels.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {
namespace {

/// From where on a value's bytes hold it, and until when somebody needs them:
/// numbers of ops in the block.
struct Needed {
  Value value;
  const Place *place;
  int64_t from = 0, until = 0;
};

class Overwrites {
public:
  Overwrites(Block &body, Placement &placement)
      : body(body), placement(placement) {
    for (auto [i, op] : llvm::enumerate(body))
      numbers[&op] = static_cast<int64_t>(i);
    for (BlockArgument argument : body.getArguments())
      note(argument, -1);
    for (Operation &op : body)
      for (Value result : op.getResults())
        note(result, isa<transformer::ParameterOp>(op) ? -1 : numbers[&op]);
  }

  LogicalResult check() {
    for (Operation &op : body) {
      if (auto assign = dyn_cast<AssignOp>(op)) {
        FailureOr<Place> state = placement.ofState(assign);
        const Place *made = placement.known(assign.getValue());
        bool isCopied = succeeded(state) && made && !(*made == *state);
        if (isCopied && failed(check(assign, assign.getValue(), *state)))
          return failure();
      }
      if (!hasInstruction(&op) || PartInputs::isOne(&op))
        continue;
      for (Value result : op.getResults())
        if (const Place *place = placement.known(result))
          if (failed(check(&op, result, *place)))
            return failure();
    }
    return success();
  }

private:
  void note(Value value, int64_t from) {
    const Place *place = placement.known(value);
    if (!place || !place->buffer)
      return;
    Needed needed{value, place, from, from};
    for (Operation *user : value.getUsers())
      needed.until = std::max(
          needed.until, numbers.lookup(body.findAncestorOpInBlock(*user)));
    inBuffer[place->buffer].push_back(needed);
  }

  /// What holds the same content in the same bytes: a slice is a view of its
  /// whole, and a gather brings other ranks' blocks to the rank's own.
  Value originOf(Value value) const {
    Operation *op = value.getDefiningOp();
    if (!isViewOfOperand(op) && !isa_and_nonnull<mesh::AllGatherOp>(op))
      return value;
    const Place *own = placement.known(value),
                *from = placement.known(op->getOperand(0));
    return own && from && mayShareBytes(*own, *from)
               ? originOf(op->getOperand(0))
               : value;
  }

  /// Whether `writer` may put `value` there.
  LogicalResult check(Operation *writer, Value value, const Place &place) {
    int64_t at = numbers.lookup(writer);
    for (const Needed &other : inBuffer[place.buffer]) {
      if (other.from >= at || other.until <= at ||
          !mayShareBytes(*other.place, place) ||
          originOf(other.value) == originOf(value))
        continue;
      InFlightDiagnostic error = writer->emitOpError(
          "writes bytes of another value, which is read later");
      error.attachNote(other.value.getLoc()) << "that value";
      return error;
    }
    return success();
  }

  Block &body;
  Placement &placement;
  DenseMap<Operation *, int64_t> numbers;
  DenseMap<Value, std::vector<Needed>> inBuffer;
};
} // namespace

LogicalResult checkOverwrites(Block &body, Placement &placement) {
  return Overwrites(body, placement).check();
}

} // namespace meshwork::schedule
