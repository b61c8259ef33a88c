#include "Mutate.h"

#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Transformer.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

#include <algorithm>

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::interpreter {
namespace {

ArrayAttr axesOf(Operation *op) { return op->getAttrOfType<ArrayAttr>("axes"); }

/// The axes that have more than one rank: these alone make groups.
SmallVector<Attribute> splitting(Operation *op, ArrayRef<Attribute> axes) {
  SmallVector<Attribute> list;
  for (Attribute axis : axes)
    if (mesh::meshOf(op).sizeOf(cast<StringAttr>(axis)) > 1)
      list.push_back(axis);
  return list;
}

/// Each set of the mesh's axes that makes other groups than `own`.
std::vector<ArrayAttr> otherAxes(Operation *op, ArrayAttr own) {
  SmallVector<Attribute> names;
  llvm::append_range(names, mesh::meshOf(op).getNames());
  names = splitting(op, names);
  SmallVector<Attribute> kept = splitting(op, own.getValue());
  std::vector<ArrayAttr> sets;
  for (unsigned bits = 1; bits < 1u << names.size(); ++bits) {
    SmallVector<Attribute> set;
    for (auto [i, name] : llvm::enumerate(names))
      if (bits >> i & 1)
        set.push_back(name);
    bool isSame =
        set.size() == kept.size() && llvm::all_of(set, [&](Attribute axis) {
          return llvm::is_contained(kept, axis);
        });
    if (!isSame)
      sets.push_back(ArrayAttr::get(op->getContext(), set));
  }
  return sets;
}

std::string textOf(ArrayAttr axes) {
  std::string text;
  for (StringAttr axis : axes.getAsRange<StringAttr>())
    text += (text.empty() ? "" : ", ") + axis.str();
  return text;
}

/// `value` of the rank before, in the group of `op`.
Value rotated(OpBuilder &builder, Operation *op, Value value) {
  int64_t ranks = 1;
  for (StringAttr axis : axesOf(op).getAsRange<StringAttr>())
    ranks *= mesh::meshOf(op).sizeOf(axis);
  SmallVector<int64_t> sources;
  for (int64_t i = 0; i < ranks; ++i)
    sources.push_back((i + ranks - 1) % ranks);
  constexpr int64_t none = mesh::CauseAttr::noLayer;
  StringAttr empty = builder.getStringAttr("");
  auto cause = mesh::CauseAttr::get(builder.getContext(),
                                    builder.getStringAttr("mutant"), none,
                                    empty, none, empty, {});
  return mesh::PermuteOp::create(builder, op->getLoc(), value.getType(), value,
                                 sources, axesOf(op), cause);
}

Value multiplied(OpBuilder &builder, Value value, double factor) {
  return buildMap(builder, value.getLoc(), value.getType(), value,
                  [&](ImplicitLocOpBuilder &inner, ValueRange x) -> Value {
                    Value constant = arith::ConstantOp::create(
                        inner, inner.getF32FloatAttr(factor));
                    return arith::MulFOp::create(inner, x[0], constant);
                  });
}

/// What users see of `op` becomes what `change` makes of its result.
void changeResult(Operation *op,
                  llvm::function_ref<Value(OpBuilder &, Value)> change) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value result = op->getResult(0);
  SmallPtrSet<Operation *, 4> before;
  for (Operation *user : result.getUsers())
    before.insert(user);
  Value changed = change(builder, result);
  result.replaceUsesWithIf(
      changed, [&](OpOperand &use) { return before.contains(use.getOwner()); });
}

void changeInput(Operation *op,
                 llvm::function_ref<Value(OpBuilder &, Value)> change) {
  OpBuilder builder(op);
  op->setOperand(0, change(builder, op->getOperand(0)));
}

class List {
public:
  explicit List(Operation *op) : op(op) {}

  std::vector<Mutation> build() {
    if (auto head = dyn_cast<HeadLossGradOp>(op)) {
      if (head.getVocabAxesAttr())
        attribute("vocab_axes", otherAxes(op, head.getVocabAxesAttr()));
    } else if (auto coordinate = dyn_cast<mesh::CoordinateOp>(op)) {
      attribute("axes", otherAxes(op, axesOf(op)));
      auto size = static_cast<int64_t>(coordinate.getSize());
      number("size", {size * 2, size + 1});
    } else if (isa<mesh::CollectiveOpInterface>(op)) {
      collective();
    }
    return std::move(list);
  }

private:
  void add(const std::string &what, std::function<void(Operation *)> apply) {
    list.push_back(
        {op->getName().stripDialect().str() + ": " + what, std::move(apply)});
  }

  void attribute(const char *name, const std::vector<ArrayAttr> &choices) {
    for (ArrayAttr choice : choices)
      add(std::string(name) + " are " + textOf(choice),
          [=](Operation *copy) { copy->setAttr(name, choice); });
  }
  void number(const char *name, const std::vector<int64_t> &choices) {
    for (int64_t choice : choices)
      add(std::string(name) + " is " + std::to_string(choice),
          [=](Operation *copy) {
            copy->setAttr(name, OpBuilder(copy).getI64IntegerAttr(choice));
          });
  }
  void otherDims(const char *name) {
    std::vector<int64_t> choices;
    int64_t own = op->getAttrOfType<IntegerAttr>(name).getInt();
    for (int64_t dim = -1; dim <= tensorType(op->getResult(0)).getRank(); ++dim)
      if (dim != own)
        choices.push_back(dim);
    number(name, choices);
  }

  void collective() {
    attribute("axes", otherAxes(op, axesOf(op)));
    drop();
    twice();
    if (auto reduction = op->getAttrOfType<mesh::ReductionAttr>("reduction"))
      reductions(reduction);
    for (const char *name : {"dim", "gather_dim", "split_dim"})
      if (op->hasAttr(name))
        otherDims(name);
    // Stale or another's: the parts of a gather, the part of a rank.
    if (isa<mesh::AllGatherOp, mesh::AllToAllOp>(op))
      add("input of the rank before", [](Operation *copy) {
        changeInput(copy, [&](OpBuilder &builder, Value value) {
          return rotated(builder, copy, value);
        });
      });
    if (isa<mesh::ReduceScatterOp, mesh::SliceOp, mesh::AllToAllOp,
            mesh::PermuteOp>(op))
      add("result of the rank before", [](Operation *copy) {
        changeResult(copy, [&](OpBuilder &builder, Value value) {
          return rotated(builder, copy, value);
        });
      });
    if (axesOf(op).size() > 1 && !isa<mesh::AllReduceOp, mesh::PermuteOp>(op))
      add("axes in another order", [](Operation *copy) {
        SmallVector<Attribute> axes(axesOf(copy).getValue());
        std::rotate(axes.begin(), axes.begin() + 1, axes.end());
        copy->setAttr("axes", ArrayAttr::get(copy->getContext(), axes));
      });
  }

  void drop() {
    if (!isa<mesh::ReduceScatterOp>(op))
      return add("dropped", [](Operation *copy) {
        copy->getResult(0).replaceAllUsesWith(copy->getOperand(0));
      });
    add("not summed", [](Operation *copy) {
      auto scatter = cast<mesh::ReduceScatterOp>(copy);
      OpBuilder builder(copy);
      Value slice = mesh::SliceOp::create(
          builder, copy->getLoc(), scatter.getType(), scatter.getInput(),
          scatter.getDimAttr(), scatter.getAxes(), scatter.getCauseAttr());
      copy->getResult(0).replaceAllUsesWith(slice);
    });
  }

  void twice() {
    if (auto scatter = dyn_cast<mesh::ReduceScatterOp>(op))
      return add("summed before too", [](Operation *copy) {
        changeInput(copy, [&](OpBuilder &builder, Value value) -> Value {
          auto scatter = cast<mesh::ReduceScatterOp>(copy);
          return mesh::AllReduceOp::create(
              builder, copy->getLoc(), value.getType(), value,
              scatter.getReductionAttr(), scatter.getAxes(),
              scatter.getCauseAttr());
        });
      });
    add("twice", [](Operation *copy) {
      changeResult(copy, [&](OpBuilder &builder, Value value) {
        Operation *again = builder.clone(*copy);
        again->setOperand(0, value);
        return again->getResult(0);
      });
    });
  }

  void reductions(mesh::ReductionAttr own) {
    bool isSum = own.getValue() == mesh::Reduction::sum;
    add("the other reduction", [=](Operation *copy) {
      copy->setAttr("reduction",
                    mesh::ReductionAttr::get(copy->getContext(),
                                             isSum ? mesh::Reduction::max
                                                   : mesh::Reduction::sum));
    });
    if (isSum)
      for (auto [name, factor] :
           {std::pair("mean for sum", 0.5), {"sum of means twice", 2.0}})
        add(name, [factor = factor](Operation *copy) {
          changeResult(copy, [&](OpBuilder &builder, Value value) {
            return multiplied(builder, value, factor);
          });
        });
  }

  Operation *op;
  std::vector<Mutation> list;
};
} // namespace

std::vector<Mutation> mutationsOf(Operation *op) { return List(op).build(); }

} // namespace meshwork::interpreter
