#include "passes/sharding/Ulysses.h"

#include "passes/analysis/SpecKey.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::sharding {
namespace {

/// What a rank has of the heads, which further ranks can share.
struct Heads {
  const Factor *keys, *group; // null: each head has keys of its own
  int64_t keysLeft, groupLeft = 1;

  Heads(const FactorTable &table, const Mesh &mesh, ArrayRef<Axes> decided)
      : keys(factorOf(table, Factor::keyHeads)),
        group(factorOf(table, Factor::heads)) {
    if (!keys)
      std::swap(keys, group);
    auto left = [&](const Factor *factor) {
      const Axes &axes = decided[factor - table.factors().begin()];
      return factor->size / mesh.numRanks(axes);
    };
    keysLeft = left(keys);
    if (group)
      groupLeft = left(group);
  }

  /// The factor that `ranks` can share, which then is smaller; null: none.
  const Factor *split(int64_t ranks) {
    if (keysLeft % ranks == 0) {
      keysLeft /= ranks;
      return keys;
    }
    if (keysLeft != 1 || groupLeft % ranks != 0)
      return nullptr;
    groupLeft /= ranks;
    return group;
  }

private:
  static const Factor *factorOf(const FactorTable &table, Factor::Role role) {
    for (const Factor &factor : table.factors())
      if (factor.role == role)
        return &factor;
    return nullptr;
  }
};

constexpr StringLiteral exchangedName = "mesh.exchanged";

/// Of the axes that split the sequence, those that exchange heads.
Axes exchangedAxes(Operation *op, const Mesh &mesh,
                   ArrayRef<Proposal> proposals) {
  constexpr unsigned q = 0, sequence = 1;
  auto some = op->getAttrOfType<ArrayAttr>(exchangedName);
  Axes axes;
  for (AxisId axis : (*proposals[q].dims)[sequence])
    if (sharingOf(op) == Sharing::ulysses ||
        (some && llvm::any_of(some.getAsRange<StringAttr>(), [&](auto name) {
           return name.getValue() == mesh.axes[axis].name;
         })))
      axes.push_back(axis);
  return axes;
}

void drop(const Axes &dropped, std::vector<Axes> &decided) {
  for (Axes &axes : decided)
    llvm::erase_if(
        axes, [&](AxisId has) { return llvm::is_contained(dropped, has); });
}

/// How many ranks could share what `heads` has.
std::string legalRanks(const Heads &heads) {
  SmallVector<std::string> legal;
  for (int64_t ranks = 2; ranks <= heads.keysLeft * heads.groupLeft; ++ranks)
    if (Heads(heads).split(ranks))
      legal.push_back(std::to_string(ranks));
  return legal.empty() ? "" : ", \"ulysses\" with " + llvm::join(legal, ", ");
}

LogicalResult checkOp(Operation *op, mesh::MeshAttr attr) {
  Mesh mesh = meshFrom(attr);
  FactorTable table(op);
  std::vector<std::vector<Axes>> dims(table.numTensors());
  SmallVector<Proposal> proposals;
  for (unsigned t = 0; t < table.numTensors(); ++t) {
    dims[t] = fromAttr(attr, mesh::shardingOf(table.tensor(t))).dims;
    proposals.push_back({&dims[t], false});
  }
  std::vector<Axes> decided =
      table.decide(mesh, proposals, /*aggressive=*/true);
  Axes sequence = exchangedAxes(op, mesh, proposals);
  std::vector<Axes> split = decided;
  if (splitHeads(op, table, mesh, proposals, split))
    return success();
  drop(sequence, decided);
  Heads heads(table, mesh, decided);
  auto names = llvm::map_to_vector(
      sequence, [&](AxisId axis) { return mesh.axes[axis].name; });
  return emitError(analysis::ofSpec("context.method", op->getLoc()))
         << "'" << op->getName() << "' has " << heads.keysLeft * heads.groupLeft
         << " heads, " << heads.keysLeft << " of keys, on a rank, which the "
         << mesh.numRanks(sequence) << " ranks that split the sequence ("
         << llvm::join(names, ", ")
         << ") cannot share equally; \"gathered\" and \"ring\" work with any "
            "number of ranks"
         << legalRanks(heads);
}
} // namespace

Sharing sharingOf(Operation *op) {
  auto attention = dyn_cast<AttentionOpInterface>(op);
  return attention ? attention.getTerms().getSharing() : Sharing::none;
}

bool exchangesHeads(Operation *op) {
  return sharingOf(op) == Sharing::ulysses || op->hasAttr(exchangedName);
}

void setExchanged(Operation *op, ArrayRef<std::string> axes) {
  if (axes.empty())
    return;
  SmallVector<StringRef> names(axes.begin(), axes.end());
  op->setAttr(exchangedName, Builder(op).getStrArrayAttr(names));
}

bool splitHeads(Operation *op, const FactorTable &table, const Mesh &mesh,
                ArrayRef<Proposal> proposals, std::vector<Axes> &decided) {
  Axes exchanged = exchangedAxes(op, mesh, proposals);
  // Heads may be split over them elsewhere; here these ranks share what is
  // left.
  drop(exchanged, decided);
  Heads heads(table, mesh, decided);
  for (AxisId axis : exchanged) {
    const Factor *taker = heads.split(mesh.axes[axis].size);
    if (!taker)
      return false;
    decided[taker - table.factors().begin()].push_back(AxisId(axis.index));
  }
  return true;
}

LogicalResult checkHeads(func::FuncOp function, mesh::MeshAttr mesh) {
  auto walked = function.walk([&](AttentionOp op) {
    return exchangesHeads(op) && failed(checkOp(op, mesh))
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

} // namespace meshwork::sharding
