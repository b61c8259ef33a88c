// The spec's rules and pins as shardings of what the step starts from.
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/StepFunctions.h"
#include "meshwork/Text/Counted.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/analysis/SpecKey.h"
#include "passes/sharding/DimRoles.h"
#include "passes/sharding/Notes.h"
#include "passes/sharding/Passes.h"
#include "passes/sharding/Rules.h"
#include "passes/sharding/Ulysses.h"
#include <optional>
#include <set>

using namespace mlir;
namespace meshwork::sharding {
#define GEN_PASS_DEF_ANNOTATEPASS
#include "passes/sharding/Passes.h.inc"
namespace {
using namespace transformer;

// Rules of a spec that are of no one dim.
constexpr StringRef residualRule = "residual_sequence", layersRule = "layers";

struct AnnotatePass : impl::AnnotatePassBase<AnnotatePass> {
  using AnnotatePassBase::AnnotatePassBase;

  void runOnOperation() override {
    func::FuncOp microbatch = microbatchOf(getOperation());
    if (!microbatch)
      return signalPassFailure();
    given.emplace(&getContext(), [&](const Twine &key) {
      return emitError(analysis::ofSpec(key, getOperation().getLoc()));
    });
    given->setAxes(axes);
    roles.emplace(getOperation());
    bool fine = given->setRules(rules);
    fine &= succeeded(checkResidual(microbatch));
    fine &= succeeded(shareAttention(microbatch));
    exchangeTokens(microbatch);
    fine &= given->setPins(pins);
    fine &= succeeded(splitAxes(microbatch));
    if (!mesh)
      return signalPassFailure();
    getOperation()->setAttr(mesh::MeshDialect::meshName, mesh);
    mesh::provenanceOf(getOperation()) = mesh::Provenance();
    nameAll(microbatch);
    for (BlockArgument argument : microbatch.getArguments())
      fine &= succeeded(annotate(argument, microbatch));
    std::vector<std::string> names;
    microbatch.walk([&](Operation *op) {
      if (auto parameter = dyn_cast<transformer::ParameterOp>(op))
        names.push_back(parameter.getName().str());
      if (isa<transformer::ParameterOp>(op) || isResidual(op))
        for (Value result : op->getResults())
          fine &= succeeded(annotate(result, op));
    });
    fine &= given->checkPinsUsed(names);
    if (!fine)
      signalPassFailure();
  }

private:
  /// How ranks with parts of a sequence see each other's keys.
  LogicalResult shareAttention(func::FuncOp function) {
    const Rule *rule = given->ruleOf(dims::tokens);
    if (!rule || llvm::none_of(rule->axes, [&](StringRef axis) {
          return given->sizeOf(axis) > 1;
        }))
      return success();
    std::optional<Sharing> sharing = symbolizeSharing(method);
    if (!sharing)
      return emitError(analysis::ofSpec("context.method", function.getLoc()))
             << "found \"" << method
             << "\", expected \"gathered\", \"ulysses\" or \"ring\"";
    function.walk([&](AttentionOpInterface op) {
      op.setTermsAttr(op.getTerms().with({.sharing = *sharing}));
      setExchanged(op, exchanged);
    });
    return success();
  }

  /// How tokens reach experts of other ranks.
  void exchangeTokens(func::FuncOp function) {
    if (bound == 0)
      return;
    FloatAttr slots = Builder(&getContext()).getF64FloatAttr(bound);
    function.walk([&](Operation *op) {
      if (auto experts = dyn_cast<ExpertsOp>(op))
        experts.setBoundAttr(slots);
      else if (auto grad = dyn_cast<ExpertsGradOp>(op))
        grad.setBoundAttr(slots);
    });
  }

  /// Fewer key heads than ranks: they are split over the major part of the
  /// axes, and copied over the rest. An axis is cut where the two meet.
  LogicalResult splitAxes(func::FuncOp function) {
    llvm::MapVector<StringRef, int64_t> cuts; // axis -> size of its major part
    bool fine = true;
    function.walk([&](transformer::ParameterOp op) {
      auto names = dimsOf(op.getResult()).getNames();
      const auto *keys = llvm::find_if(names, [&](StringAttr name) {
        return roles->has(name, Factor::keyHeads);
      });
      const Rule *rule =
          keys == names.end() ? nullptr : given->ruleOf(keys->getValue());
      if (!rule || !fine)
        return;
      int64_t size =
                  tensorType(op.getResult()).getDimSize(keys - names.begin()),
              left = size;
      for (StringRef axis : rule->axes) {
        int64_t ranks = given->sizeOf(axis);
        if (left % ranks == 0)
          left /= ranks;
        else if (ranks % left == 0)
          cuts[axis] = left, left = 1;
        else
          fine = succeeded(indivisible(
              op, "shard." + keys->str(), *keys, size, axis.str(), ranks,
              headsFit(function) ? copiedOver(axis, *rule) : ""));
      }
    });
    SmallVector<StringAttr> parts;
    SmallVector<int64_t> partSizes;
    for (auto [name, size] : llvm::zip_equal(given->names(), given->sizes())) {
      int64_t major = cuts.lookup(name);
      if (major <= 1 || major == size) {
        parts.push_back(name);
        partSizes.push_back(size);
        continue;
      }
      parts.push_back(StringAttr::get(&getContext(),
                                      name.getValue() + ":(1)" + Twine(major)));
      parts.push_back(StringAttr::get(&getContext(), name.getValue() + ":(" +
                                                         Twine(major) + ")" +
                                                         Twine(size / major)));
      partSizes.append({major, size / major});
    }
    mesh = mesh::MeshAttr::getChecked(
        [&] { return getOperation().emitError(); }, &getContext(),
        ArrayRef<StringAttr>(parts), ArrayRef<int64_t>(partSizes));
    keyHeadsFit = fine;
    return success(fine && mesh);
  }

  /// Whether ranks get equally many heads of queries.
  bool headsFit(func::FuncOp function) const {
    bool fit = true;
    function.walk([&](transformer::ParameterOp op) {
      auto type = tensorType(op.getResult());
      for (auto [name, size] :
           llvm::zip_equal(dimsOf(type).getNames(), type.getShape()))
        if (roles->has(name, Factor::heads))
          fit &= size % ranksOf(given->ruleOf(name.getValue())) == 0;
    });
    return fit;
  }

  int64_t ranksOf(const Rule *rule) const {
    int64_t ranks = 1;
    for (StringRef axis : rule ? ArrayRef(rule->axes) : ArrayRef<StringRef>())
      ranks *= given->sizeOf(axis);
    return ranks;
  }

  /// Key heads need not be split where heads are.
  static std::string copiedOver(StringRef axis, const Rule &keys) {
    std::string others;
    for (StringRef other : keys.axes)
      if (other != axis)
        others += (others.empty() ? "\"" : ", \"") + other.str() + "\"";
    return "; or write shard." + keys.dim.str() + " = [" + others +
           "], so that each rank of '" + axis.str() + "' has " +
           (others.empty() ? "all of them" : "the same of them");
  }

  /// The parts of an axis as the user named it.
  void appendParts(StringRef axis, SmallVectorImpl<StringAttr> &parts) const {
    for (StringAttr name : mesh.getNames())
      if (mesh::wholeAxis(name.getValue()) == axis && mesh.sizeOf(name) > 1)
        parts.push_back(name);
  }

  /// Told once for each dim, size and axis: layers are alike.
  LogicalResult indivisible(Operation *op, const std::string &key,
                            StringRef dim, int64_t size,
                            const std::string &axis, int64_t ranks,
                            const std::string &otherwise = "") {
    if (!told.insert({key, size, axis}).second)
      return failure();
    int64_t below = std::min(ranks, size), above = ranks;
    while (size % below)
      --below;
    while (above <= size && size % above)
      ++above;
    return emitError(analysis::ofSpec(key, op->getLoc()))
           << nameOf(op) << ": dim '" << dim << "' of size " << size
           << " cannot be split over axis '" << axis << "' of size " << ranks
           << "; an axis of "
           << (above <= size && above != below
                   ? std::to_string(below) + " or " + std::to_string(above) +
                         " ranks"
                   : counted(below, "rank"))
           << " would divide it" << otherwise;
  }

  static std::string nameOf(Operation *op) {
    auto parameter = dyn_cast<transformer::ParameterOp>(op);
    return parameter ? "parameter '" + parameter.getName().str() + "'"
                     : "'" + op->getName().getStringRef().str() + "'";
  }

  /// Heads and samples come in whole numbers, equally many on each rank. Other
  /// dims may have short last blocks.
  LogicalResult checkDim(Operation *op, const std::string &key, StringRef dim,
                         int64_t size, ArrayRef<StringAttr> parts) {
    int64_t ranks = mesh.product(parts);
    if (size % ranks == 0 || !roles->isCounted(dim))
      return success();
    SmallVector<StringRef> whole;
    for (StringAttr part : parts)
      if (!llvm::is_contained(whole, mesh::wholeAxis(part.getValue())))
        whole.push_back(mesh::wholeAxis(part.getValue()));
    return indivisible(op, key, dim, size, llvm::join(whole, ", "), ranks);
  }

  /// What the residual stream is is told by the head alone.
  LogicalResult checkResidual(func::FuncOp function) {
    if (ranksOf(given->ruleOf(residualRule)) == 1 || roles->any(Factor::width))
      return success();
    return emitError(
               analysis::ofSpec("shard." + residualRule, function.getLoc()))
           << "splits the residual stream, but the model has no head_loss, "
              "which would tell its dim; leave the rule out";
  }

  /// Whether results of `op` are of the residual stream, which a rule splits.
  bool isResidual(Operation *op) {
    if (!given->ruleOf(residualRule) || op->getNumResults() == 0 ||
        isa<transformer::ParameterOp>(op) || !isa<FactorOpInterface>(op))
      return false;
    return llvm::all_of(op->getResults(),
                        [&](Value result) { return isResidual(result); });
  }
  bool isResidual(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || !isa<FloatType>(type.getElementType()))
      return false;
    auto has = [&](Factor::Role role) {
      return llvm::any_of(dimsOf(type).getNames(), [&](StringAttr name) {
        return roles->has(name, role);
      });
    };
    return has(Factor::tokens) && has(Factor::width);
  }

  LogicalResult annotate(Value value, Operation *at) {
    if (auto parameter = dyn_cast<transformer::ParameterOp>(at))
      if (const Pin *pin = given->pinOf(parameter.getName()))
        return applyPin(parameter, *pin);
    auto type = tensorType(value);
    bool residual = isResidual(value) && !isa<transformer::ParameterOp>(at);
    SmallVector<mesh::DimShardingAttr> dims;
    llvm::SmallDenseSet<StringAttr> used;
    for (auto [name, size] :
         llvm::zip_equal(dimsOf(type).getNames(), type.getShape())) {
      bool isSequence = roles->has(name, Factor::tokens);
      SmallVector<const Rule *> rulesOfDim = {given->ruleOf(name.getValue())};
      if (residual && isSequence)
        rulesOfDim.push_back(given->ruleOf(residualRule));
      SmallVector<StringAttr> parts;
      for (const Rule *rule : rulesOfDim)
        for (StringRef axis :
             rule ? ArrayRef(rule->axes) : ArrayRef<StringRef>())
          appendParts(axis, parts);
      bool isOfKeys = roles->has(name, Factor::keyHeads);
      if (isOfKeys)
        while (mesh.product(parts) > size)
          parts.pop_back();
      // An axis that an earlier dim of this tensor has stays there.
      llvm::erase_if(
          parts, [&](StringAttr part) { return !used.insert(part).second; });
      bool isReported = isOfKeys && !keyHeadsFit;
      if (!isReported && failed(checkDim(at, "shard." + name.str(),
                                         name.getValue(), size, parts)))
        return failure();
      for (const Rule *rule : rulesOfDim)
        if (rule)
          noteAnnotation(value, dims.size(), partsOf(*rule, parts),
                         "shard." + rule->dim.str());
      SmallVector<StringAttr> inZigzag;
      if (isSequence)
        llvm::copy_if(
            parts, std::back_inserter(inZigzag), [&](StringAttr part) {
              return llvm::is_contained(zigzag, mesh::wholeAxis(part).str());
            });
      dims.push_back(
          mesh::DimShardingAttr::get(&getContext(), parts, inZigzag, false, 0));
    }
    mesh::setSharding(value, mesh::ShardingAttr::get(&getContext(), dims, {},
                                                     {}, mesh::Reduction::sum));
    return success();
  }

  /// Those of `parts` that a rule names.
  static SmallVector<StringAttr> partsOf(const Rule &rule,
                                         ArrayRef<StringAttr> parts) {
    SmallVector<StringAttr> own(parts);
    llvm::erase_if(own, [&](StringAttr part) {
      return !llvm::is_contained(rule.axes, mesh::wholeAxis(part));
    });
    return own;
  }

  /// Ranks of a pipeline have different parameters.
  LogicalResult checkStages(ArrayRef<StringAttr> parts,
                            function_ref<InFlightDiagnostic()> onError) {
    const Rule *layers = given->ruleOf(layersRule);
    for (StringAttr part : parts)
      if (layers && mesh.sizeOf(part) > 1 &&
          llvm::is_contained(layers->axes, mesh::wholeAxis(part)))
        return onError() << "splits over axis '" << part.getValue()
                         << "', which shares out layers (shard.layers): its "
                            "ranks have different parameters";
    return success();
  }

  LogicalResult applyPin(transformer::ParameterOp parameter, const Pin &pin) {
    auto onError = [&] {
      return emitError(analysis::ofSpec(pin.key, parameter.getLoc()))
             << "pin '" << pin.glob << "' of " << nameOf(parameter) << ": ";
    };
    FailureOr<mesh::ShardingAttr> sharding =
        mesh::parseSharding(pin.text, &getContext(), onError);
    if (failed(sharding))
      return failure();
    auto type = tensorType(parameter.getResult());
    if (static_cast<int64_t>(sharding->getDims().size()) != type.getRank())
      return onError() << "has " << counted(sharding->getDims().size(), "dim")
                       << ", expected " << type.getRank() << " for " << type;
    if (!sharding->getPartial().empty())
      return onError() << "makes a parameter partial";
    SmallVector<mesh::DimShardingAttr> dims;
    bool fine = true;
    for (auto [i, dim] : llvm::enumerate(sharding->getDims())) {
      SmallVector<StringAttr> parts = partsOf(dim.getAxes(), onError, fine);
      fine &= succeeded(checkStages(parts, onError));
      fine &= succeeded(checkDim(parameter, pin.key,
                                 dimsOf(type).getNames()[i].getValue(),
                                 type.getDimSize(i), parts));
      noteAnnotation(parameter.getResult(), i, parts,
                     "shard.tensor " + pin.glob);
      SmallVector<StringAttr> inZigzag(parts);
      llvm::erase_if(inZigzag, [&](StringAttr part) {
        return llvm::none_of(dim.getZigzag(), [&](StringAttr axis) {
          return axis == part || axis == mesh::wholeAxis(part);
        });
      });
      dims.push_back(mesh::DimShardingAttr::get(
          &getContext(), parts, inZigzag, dim.getIsOpen(), dim.getPriority()));
    }
    SmallVector<StringAttr> whole =
        partsOf(sharding->getReplicated(), onError, fine);
    // An axis and a part of it may both be named.
    auto checked = mesh::ShardingAttr::getChecked(
        onError, &getContext(), ArrayRef<mesh::DimShardingAttr>(dims),
        ArrayRef<StringAttr>(whole), ArrayRef<StringAttr>(),
        mesh::Reduction::sum);
    if (!fine || !checked)
      return failure();
    mesh::setSharding(parameter.getResult(), checked);
    return success();
  }

  /// The mesh's axes for what a pin names; false in `fine` for what it has not.
  SmallVector<StringAttr> partsOf(ArrayRef<StringAttr> axes,
                                  function_ref<InFlightDiagnostic()> onError,
                                  bool &fine) {
    SmallVector<StringAttr> parts;
    for (StringAttr axis : axes)
      if (mesh.find(axis) >= 0) {
        parts.push_back(axis);
      } else if (given->hasAxis(axis)) {
        appendParts(axis.getValue(), parts);
      } else {
        onError() << "names axis " << axis << ", expected one of " << mesh
                  << given->nearestAxis(axis.getValue());
        fine = false;
      }
    return parts;
  }

  std::optional<Rules> given;
  std::optional<DimRoles> roles;
  mesh::MeshAttr mesh;
  bool keyHeadsFit = true;
  std::set<std::tuple<std::string, int64_t, std::string>> told;
};
} // namespace
} // namespace meshwork::sharding
