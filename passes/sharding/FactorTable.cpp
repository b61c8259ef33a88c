// How shardings meet on factors.
#include "passes/sharding/FactorTable.h"

using namespace mlir;
using namespace meshwork::transformer;

namespace meshwork::sharding {
namespace {

/// How much speaks for an axis on a factor.
struct Strength {
  unsigned parameters = 0, tensors = 0;
  uint64_t bytes = 0;
  auto key() const { return std::tuple(parameters, tensors, bytes); }
  bool operator<(const Strength &other) const { return key() < other.key(); }
};

bool isPrefix(const Axes &shorter, const Axes &longer) {
  return shorter.size() <= longer.size() &&
         std::equal(shorter.begin(), shorter.end(), longer.begin());
}

/// The strongest list that is not cut; others shorten it unless `aggressive`.
Axes merge(ArrayRef<std::pair<Axes, Strength>> lists, bool aggressive) {
  Axes best;
  Strength strength;
  for (const auto &[axes, own] : lists)
    if (isPrefix(best, axes) || (!isPrefix(axes, best) && strength < own)) {
      best = axes;
      strength = own;
    }
  for (const auto &[axes, own] : lists)
    if (!aggressive && !isPrefix(axes, best))
      best.resize(
          std::mismatch(best.begin(), best.end(), axes.begin(), axes.end())
              .first -
          best.begin());
  return best;
}

bool splits(const Proposal &proposal) {
  return proposal.dims && llvm::any_of(*proposal.dims, [](const Axes &axes) {
           return !axes.empty();
         });
}
} // namespace

FactorTable::FactorTable(Operation *op) : operands(op->getNumOperands()) {
  if (auto factored = dyn_cast<FactorOpInterface>(op))
    all = factored.getFactors();
  llvm::append_range(tensors, op->getOperands());
  llvm::append_range(tensors, op->getResults());
}

int64_t FactorTable::dimOf(unsigned tensor, const Factor &factor) const {
  return tensor < operands ? factor.operandDims[tensor]
                           : factor.resultDims[tensor - operands];
}

std::vector<Axes> FactorTable::project(const Mesh &mesh, unsigned tensor,
                                       const std::vector<Axes> &dims) const {
  std::vector<Axes> result(all.size());
  std::vector<size_t> used(dims.size(),
                           0); // axes of each dim that earlier factors have
  for (auto [f, factor] : llvm::enumerate(all)) {
    int64_t dim = dimOf(tensor, factor);
    if (dim < 0)
      continue;
    bool isLast = llvm::none_of(
        ArrayRef(all).drop_front(f + 1),
        [&](const Factor &later) { return dimOf(tensor, later) == dim; });
    int64_t product = 1;
    while (used[dim] < dims[dim].size()) {
      int64_t next = product * mesh.axes[dims[dim][used[dim]]].size;
      if (!isLast && factor.size % next)
        break;
      product = next;
      result[f].push_back(dims[dim][used[dim]++]);
    }
    if (!isLast && product != factor.size)
      used[dim] =
          dims[dim].size(); // What is left is no block of the next factor.
  }
  return result;
}

std::vector<Axes> FactorTable::decide(const Mesh &mesh,
                                      ArrayRef<Proposal> proposals,
                                      bool aggressive) const {
  std::vector<Axes> result(all.size());
  if (llvm::none_of(proposals, splits))
    return result;
  std::vector<std::vector<Axes>> projected(proposals.size());
  // By axis, and then by factor.
  SmallVector<Strength> strengths(mesh.axes.size() * all.size());
  auto strengthOf = [&](AxisId axis, size_t factor) -> Strength & {
    return strengths[axis * all.size() + factor];
  };
  for (auto [t, proposal] : llvm::enumerate(proposals)) {
    if (!proposal.dims)
      continue;
    projected[t] = project(mesh, t, *proposal.dims);
    if (!splits(proposal))
      continue;
    uint64_t bytes = bytesOfType(tensors[t].getType());
    for (auto [f, axes] : llvm::enumerate(projected[t]))
      for (AxisId axis : axes) {
        Strength &strength = strengthOf(axis, f);
        strength.parameters += proposal.isParameter;
        ++strength.tensors;
        strength.bytes += bytes;
      }
  }
  SmallVector<size_t> winner(mesh.axes.size(), all.size()); // by axis
  for (AxisId axis = 0; axis < mesh.axes.size(); ++axis)
    for (size_t f = 0; f < all.size(); ++f) {
      const Strength &strength = strengthOf(axis, f);
      if (strength.tensors == 0 || all[f].kind == Factor::whole ||
          all[f].kind == Factor::exchanged)
        continue;
      size_t &known = winner[axis];
      if (known == all.size() || strengthOf(axis, known) < strength)
        known = f;
    }
  for (size_t f = 0; f < all.size(); ++f) {
    if (all[f].kind == Factor::whole)
      continue;
    SmallVector<std::pair<Axes, Strength>> lists;
    for (auto [t, proposal] : llvm::enumerate(proposals)) {
      if (!proposal.dims || dimOf(t, all[f]) < 0)
        continue;
      Axes &axes = projected[t][f];
      auto lost = llvm::find_if(axes, [&](AxisId axis) {
        return all[f].kind != Factor::exchanged && winner[axis] != f;
      });
      axes.erase(lost, axes.end());
      Strength strength = axes.empty() ? Strength() : strengthOf(axes[0], f);
      lists.emplace_back(std::move(axes), strength);
    }
    result[f] = merge(lists, aggressive);
  }
  return result;
}

std::string FactorTable::whyStronger(size_t winner, size_t loser, AxisId axis,
                                     const Mesh &mesh,
                                     ArrayRef<Proposal> proposals) const {
  auto strengthOf = [&](size_t factor) {
    Strength strength;
    for (auto [t, proposal] : llvm::enumerate(proposals))
      if (proposal.dims &&
          llvm::is_contained(project(mesh, t, *proposal.dims)[factor], axis)) {
        strength.parameters += proposal.isParameter;
        ++strength.tensors;
        strength.bytes += bytesOfType(tensors[t].getType());
      }
    return strength;
  };
  Strength won = strengthOf(winner), lost = strengthOf(loser);
  if (won.parameters != lost.parameters)
    return "a weight or its gradient has it there";
  if (won.tensors != lost.tensors)
    return std::to_string(won.tensors) + " of its tensors have it there, " +
           std::to_string(lost.tensors) + " here";
  return won.bytes != lost.bytes ? "the larger tensor has it there"
                                 : "that factor comes first";
}

void FactorTable::dropScattered(const Mesh &mesh,
                                std::vector<Axes> &factorAxes) const {
  for (auto [f, factor] : llvm::enumerate(all))
    for (unsigned t = 0; t < numTensors(); ++t)
      for (size_t before = 0; before < f; ++before) {
        int64_t dim = dimOf(t, factor);
        bool isOuter = dim >= 0 && dimOf(t, all[before]) == dim;
        if (isOuter && all[before].size != mesh.numRanks(factorAxes[before]))
          factorAxes[f].clear();
      }
}

std::vector<Axes> FactorTable::dimsOf(const Mesh &mesh, unsigned tensor,
                                      ArrayRef<Axes> factorAxes) const {
  std::vector<Axes> dims(tensorType(tensors[tensor]).getRank());
  std::vector<bool> isFull(dims.size(),
                           true); // earlier factors are split to single entries
  for (auto [factor, axes] : llvm::zip_equal(all, factorAxes)) {
    int64_t dim = dimOf(tensor, factor);
    if (dim < 0)
      continue;
    if (isFull[dim])
      dims[dim].insert(dims[dim].end(), axes.begin(), axes.end());
    isFull[dim] = isFull[dim] && factor.size == mesh.numRanks(axes);
  }
  return dims;
}

bool FactorTable::isExchanged(AxisId axis, ArrayRef<Axes> factorAxes) const {
  return llvm::count_if(factorAxes, [&](const Axes &axes) {
           return llvm::is_contained(axes, axis);
         }) > 1;
}

Sharding FactorTable::resultSharding(const Mesh &mesh, unsigned result,
                                     ArrayRef<Axes> factorAxes) const {
  Sharding sharding{
      dimsOf(mesh, operands + result, factorAxes), {}, Reduction::sum};
  for (auto [factor, axes] : llvm::zip_equal(all, factorAxes))
    if (factor.resultDims[result] == Factor::absent && !axes.empty()) {
      // Sums are whole over exchanged axes, maxima are of what a rank was sent.
      bool isOfOwn = result >= factor.firstMaximum;
      llvm::copy_if(axes, std::back_inserter(sharding.partial),
                    [&](AxisId axis) {
                      return isOfOwn || !isExchanged(axis, factorAxes);
                    });
      if (isOfOwn || factor.combine == transformer::Reduction::max)
        sharding.reduction = Reduction::max;
    }
  llvm::sort(sharding.partial);
  sharding.partial.erase(llvm::unique(sharding.partial),
                         sharding.partial.end());
  return sharding;
}

} // namespace meshwork::sharding
