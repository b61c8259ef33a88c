// Layers that were left out of a model come back, made from those that stand
// for them.
#include "dialects/transformer/Facts.h"
#include "passes/pipeline/EqualLayers.h"
#include "passes/pipeline/Passes.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::pipeline {

#define GEN_PASS_DEF_UNFOLDLAYERSPASS
#include "passes/pipeline/Passes.h.inc"

namespace {
using analysis::FoldedLayers;

/// One function. Copy 0 is what is there, and what stands behind is the one
/// after the last.
class Unfolding {
public:
  Unfolding(const EqualLayers &equal, const FoldedLayers &folded,
            const LayerOfParameter &parameters)
      : equal(equal), folded(folded), parameters(parameters),
        values(folded.copies + 2) {
    values.front() = equal.values;
    values.back() = equal.valuesBehind;
  }

  void run() {
    for (const Section &section : equal.sections)
      copy(section);
    for (OpOperand *operand : equal.readBefore)
      operand->set(at(folded.copies, equal.places.at(operand->get())));
    for (OpOperand *operand : equal.readBehind)
      operand->set(at(1, equal.placesBehind.at(operand->get())));
    renameNeighbours();
    for (const Sum &sum : equal.sums)
      extend(sum);
  }

private:
  Value at(int64_t copy, size_t value) const { return values[copy][value]; }

  void copy(const Section &section) {
    auto numbers = llvm::seq<int64_t>(1, folded.copies + 1);
    OpBuilder builder(section.rises ? section.behind.front()
                                    : section.ops.front());
    if (section.rises)
      for (int64_t number : numbers)
        copy(section, number, builder);
    else
      for (int64_t number : llvm::reverse(numbers))
        copy(section, number, builder);
  }

  void copy(const Section &section, int64_t number, OpBuilder &builder) {
    int64_t distance = number * folded.period;
    LayerNames names(
        parameters, folded,
        {distance, distance, distance - folded.copies * folded.period});
    values[number].resize(values.front().size());
    for (Operation *op : section.ops) {
      Operation *made = copy(op, number, builder);
      if (equal.named.contains(op))
        names->rename(made);
      else if (std::optional<int64_t> layer = layerOf(op))
        setLayer(made, *layer + distance);
    }
  }

  Operation *copy(Operation *op, int64_t number, OpBuilder &builder) {
    Operation *made = builder.clone(*op);
    for (auto [operand, source] :
         llvm::zip_equal(made->getOpOperands(), equal.sources.at(op)))
      if (!source.isFixed)
        operand.set(at(number + source.copy, source.value));
    for (auto [result, own] :
         llvm::zip_equal(op->getResults(), made->getResults()))
      values[number][equal.places.at(result)] = own;
    return made;
  }

  /// What one layer says of the next one, which is another one now.
  void renameNeighbours() {
    int64_t distance = folded.copies * folded.period;
    LayerNames ofBehind(parameters, folded, {distance, 0, 0}),
        ofOwn(parameters, folded, {0, 0, -distance});
    for (const Section &section : equal.sections)
      for (auto [op, other] : llvm::zip_equal(section.ops, section.behind))
        if (equal.named.contains(op)) {
          ofOwn->rename(op);
          ofBehind->rename(other);
        }
  }

  /// Terms stand in the order of parameters, so of layers.
  void extend(Sum sum) {
    SmallVector<Value> terms;
    SmallVector<size_t> period; // places of the terms just before
    for (Value term : sum.terms) {
      auto place = equal.places.find(term);
      if (place == equal.places.end())
        addCopies(period, terms);
      else
        period.push_back(place->second);
      terms.push_back(term);
    }
    addCopies(period, terms);
    if (terms.size() > sum.terms.size())
      sum.replace(terms);
  }

  void addCopies(SmallVector<size_t> &period, SmallVector<Value> &terms) const {
    for (int64_t copy = 1; copy <= folded.copies; ++copy)
      for (size_t place : period)
        terms.push_back(at(copy, place));
    period.clear();
  }

  const EqualLayers &equal;
  const FoldedLayers &folded;
  const LayerOfParameter &parameters;
  std::vector<SmallVector<Value>> values; // by copy
};

struct UnfoldLayersPass : impl::UnfoldLayersPassBase<UnfoldLayersPass> {
  using UnfoldLayersPassBase::UnfoldLayersPassBase;

  void runOnOperation() override {
    Attribute told = getOperation()->getAttr(analysis::foldedLayersName);
    auto folded = FoldedLayers::of(getOperation());
    if (folded.copies == 0) {
      if (told)
        emitError(getOperation().getLoc())
            << "'" << analysis::foldedLayersName << "' is " << told
            << ", expected the first layer left out, the length of a period, "
               "and how many periods";
      return told ? signalPassFailure() : void();
    }
    LayerOfParameter parameters = layersOfParameters(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!isAsked(function))
        continue;
      EqualLayers equal(function, folded, parameters);
      if (failed(equal.find()))
        return signalPassFailure();
      Unfolding(equal, folded, parameters).run();
    }
    if (of != "update")
      getOperation()->removeAttr(analysis::foldedLayersName);
  }

private:
  bool isAsked(func::FuncOp function) const {
    return of.empty() || function.getSymName() == of;
  }
};
} // namespace
} // namespace meshwork::pipeline
