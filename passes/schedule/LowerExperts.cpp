// Routing and the rows of experts as instructions: tensors as rows, whatever
// dims a token has.
#include "passes/schedule/LoweringKinds.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::schedule {
namespace {

/// Makes views of one instruction; some may fail.
class RowViews {
public:
  explicit RowViews(Operation *op, Lowering &to) : op(op), to(to) {}

  /// [first `split` dims, the others], the latter dense.
  Value read(Value value, int64_t split) {
    Layout layout = rowsLayout(tensorType(value).getRank(), split);
    return view(to.copies.readable(value, layout), layout);
  }
  Value write(Value value, int64_t split) {
    Layout layout = rowsLayout(tensorType(value).getRank(), split);
    return view(to.copies.writable(value, layout), layout);
  }
  /// All but the last dim, and that.
  Value readRows(Value value) {
    return read(value, tensorType(value).getRank() - 1);
  }
  Value writeRows(Value value) {
    return write(value, tensorType(value).getRank() - 1);
  }
  /// One dim.
  Value readAll(Value value) {
    Layout layout = flatLayout(tensorType(value).getRank());
    return view(to.copies.readable(value, layout), layout);
  }
  Value writeAll(Value value) {
    Layout layout = flatLayout(tensorType(value).getRank());
    return view(to.copies.writable(value, layout), layout);
  }
  Value view(FailureOr<Place> place, const Layout &layout) {
    if (failed(place)) {
      complete = false;
      return {};
    }
    return to.builder.view(op->getLoc(), *layout.of(*place));
  }
  bool areComplete() const { return complete; }

private:
  Operation *op;
  Lowering &to;
  bool complete = true;
};

/// The instruction `Made` of an op: its source, flops and bytes, then the rest.
template <typename Made, typename... Arguments>
LogicalResult make(Operation *op, uint64_t flops, const RowViews &views,
                   Lowering &to, Arguments &&...arguments) {
  if (!views.areComplete())
    return failure();
  ProgramBuilder &builder = to.builder;
  Made::create(builder, op->getLoc(), builder.sourceOf(op), builder.i64(flops),
               builder.i64(bytesOfValues(op)),
               std::forward<Arguments>(arguments)...);
  return success();
}

/// [experts, a, b] as it lies; one of the two is dense.
Layout matricesLayout() {
  Layout layout = separateLayout(3);
  layout.dense = {1, 2};
  return layout;
}
} // namespace

static LogicalResult emit(transformer::PickOp op, Lowering &to) {
  RowViews views(op, to);
  Value scores = views.readRows(op.getScores()),
        choices = views.readRows(op.getChoices()),
        result = views.writeRows(op.getResult());
  return make<schedule::PickOp>(op, 0, views, to, scores, choices, result);
}

static LogicalResult emit(transformer::PickGradOp op, Lowering &to) {
  RowViews views(op, to);
  Value choices = views.readRows(op.getChoices()),
        gradient = views.readRows(op.getGradient()),
        result = views.writeRows(op.getResult());
  return make<schedule::PickGradOp>(op, 0, views, to, choices, gradient,
                                    result);
}

static LogicalResult emit(transformer::LimitChoicesOp op, Lowering &to) {
  RowViews views(op, to);
  Value choices = views.readRows(op.getChoices()),
        kept = views.writeRows(op.getResult());
  auto type = tensorType(op.getChoices());
  int64_t tokens = type.getNumElements() / type.getShape().back(),
          group =
              tokens / type.getDimSize(0) * static_cast<int64_t>(op.getGroup());
  return make<schedule::LimitChoicesOp>(
      op, 0, views, to, op.getExpertsAttr(), op.getMostAttr(),
      to.builder.getI64IntegerAttr(group), choices, kept);
}

static LogicalResult emit(transformer::SortRowsOp op, Lowering &to) {
  RowViews views(op, to);
  Value choices = views.readRows(op.getChoices()),
        first =
            op.getFirstExpert() ? Views(to).of(op.getFirstExpert()) : Value(),
        order = views.writeAll(op.getOrder()),
        tokens = views.writeAll(op.getTokens()),
        places = views.writeRows(op.getPlaces()),
        begins = views.writeAll(op.getBegins());
  auto most = to.builder.getI64IntegerAttr(
      static_cast<int64_t>(op.getMostChoices().value_or(0)));
  return make<schedule::SortRowsOp>(op, 0, views, to, most, choices, first,
                                    order, tokens, places, begins);
}

static LogicalResult emit(transformer::AssignSlotsOp op, Lowering &to) {
  RowViews views(op, to);
  Value choices = views.readRows(op.getChoices()),
        slots = views.writeRows(op.getSlots()),
        ranks = views.writeRows(op.getRanks()),
        places = views.writeRows(op.getPlaces()),
        last = views.writeAll(op.getLast());
  return make<schedule::AssignSlotsOp>(op, 0, views, to, op.getExpertsAttr(),
                                       op.getMostChoicesAttr(), choices, slots,
                                       ranks, places, last);
}

static LogicalResult emit(transformer::TakeRowsOp op, Lowering &to) {
  int64_t numbers = tensorType(op.getRows()).getRank(),
          width = tensorType(op.getResult()).getRank() - numbers;
  RowViews views(op, to);
  Value table = views.read(op.getTable(),
                           tensorType(op.getTable()).getRank() - width),
        rows = views.readAll(op.getRows()),
        result = views.write(op.getResult(), numbers);
  return make<schedule::TakeRowsOp>(op, 0, views, to, table, rows, result);
}

static LogicalResult emit(transformer::CombineRowsOp op, Lowering &to) {
  RowViews views(op, to);
  Value source = views.readRows(op.getSource()),
        places = views.readRows(op.getPlaces()),
        choices = views.readRows(op.getChoices()),
        result = views.writeRows(op.getResult());
  return make<schedule::CombineRowsOp>(op, 0, views, to, source, places,
                                       choices, result);
}

/// [experts, a, b] as [experts, b, a].
static Place turned(Place place) {
  std::swap(place.shape[1], place.shape[2]);
  std::swap(place.strides[1], place.strides[2]);
  return place;
}

static LogicalResult emit(transformer::GroupedProductOp op, Lowering &to) {
  RowViews views(op, to);
  Value lhs = views.readRows(op.getLhs());
  Layout matrices = matricesLayout();
  FailureOr<Place> place = to.copies.readable(op.getRhs(), matrices);
  Value begins = views.readAll(op.getBegins()),
        result = views.writeRows(op.getResult());
  if (failed(place))
    return failure();
  bool isTurned =
      dimsOf(op.getRhs()).getNames()[2] == dimsOf(op.getLhs()).getNames()[1];
  Value rhs = to.builder.view(op.getLoc(), isTurned ? turned(*place) : *place);
  return make<schedule::GroupedProductOp>(op, op.getFlops(), views, to, lhs,
                                          rhs, begins, result);
}

static LogicalResult emit(transformer::GroupedGradientOp op, Lowering &to) {
  RowViews views(op, to);
  Value lhs = views.readRows(op.getLhs()), rhs = views.readRows(op.getRhs()),
        begins = views.readAll(op.getBegins());
  FailureOr<Destination> destination = to.sums.destinationOf(op.getResult());
  if (failed(destination))
    return failure();
  Layout matrices = matricesLayout();
  Place place = to.copies.writable(*destination, matrices, op.getLoc());
  Value result = to.builder.view(op.getLoc(), place);
  return make<schedule::GroupedGradientOp>(
      op, op.getFlops(), views, to,
      AccumulateAttr::get(op.getContext(), destination->accumulate), lhs, rhs,
      begins, result);
}

void attachExperts(MLIRContext *context) {
  attach<Computing, transformer::PickOp, transformer::PickGradOp,
         transformer::LimitChoicesOp, transformer::SortRowsOp,
         transformer::AssignSlotsOp, transformer::TakeRowsOp,
         transformer::CombineRowsOp, transformer::GroupedProductOp,
         transformer::GroupedGradientOp>(context);
}

} // namespace meshwork::schedule
