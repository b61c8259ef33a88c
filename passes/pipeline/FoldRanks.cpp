// Ranks that differ in names alone are compiled once. Which those are is seen
// where stages have just been cut; no pass in between asks for names.
#include <list>

#include "passes/pipeline/EqualRanks.h"
#include "passes/pipeline/Passes.h"

using namespace mlir;

namespace meshwork::pipeline {

#define GEN_PASS_DEF_FOLDRANKSPASS
#define GEN_PASS_DEF_UNFOLDRANKSPASS
#include "passes/pipeline/Passes.h.inc"

namespace {
using schedule::ActionTableAttr;
using schedule::EqualRankAttr;
using schedule::ProgramOp;

/// A rank that stands for others, too.
struct Kind {
  ModuleOp module;
  RankStep step;
  SmallVector<Attribute> others = {};
};

struct FoldRanksPass : impl::FoldRanksPassBase<FoldRanksPass> {
  using FoldRanksPassBase::FoldRanksPassBase;

  void runOnOperation() override {
    std::list<Kind> kinds;
    auto modules = llvm::to_vector(getOperation().getOps<ModuleOp>());
    for (auto [coordinate, module] : llvm::enumerate(modules))
      if (RankStep step(module); !fold(coordinate, module, step, kinds))
        kinds.push_back({module, std::move(step)});
    for (Kind &kind : kinds)
      if (!kind.others.empty())
        kind.module->setAttr(schedule::equalRanksName,
                             ArrayAttr::get(&getContext(), kind.others));
  }

private:
  /// Whether `module` is like one of `kinds`: then it goes.
  bool fold(int64_t coordinate, ModuleOp module, const RankStep &step,
            std::list<Kind> &kinds) {
    for (Kind &kind : kinds) {
      std::optional<Renaming> names = kind.step.renamingTo(step);
      if (!names || !haveSamePolicies(*names))
        continue;
      kind.others.push_back(
          names->toAttr(&getContext(), coordinate, actionsOf(module)));
      module.erase();
      return true;
    }
    return false;
  }

  static DenseI32ArrayAttr actionsOf(ModuleOp module) {
    auto table =
        module->getAttrOfType<ActionTableAttr>(schedule::actionTableName);
    return table ? table.getTable()
                 : DenseI32ArrayAttr::get(module.getContext(), {});
  }

  /// Layers may be recomputed each in their own way.
  bool haveSamePolicies(const Renaming &names) const {
    auto policyOf = [&](int64_t layer) {
      bool isOfLayer =
          layer >= 0 && layer < static_cast<int64_t>(policies.size());
      return isOfLayer ? std::optional(policies[layer]) : std::nullopt;
    };
    return policies.size() <= 1 || llvm::all_of(names.layers, [&](auto pair) {
             return policyOf(pair.first) == policyOf(pair.second);
           });
  }
};

struct UnfoldRanksPass : impl::UnfoldRanksPassBase<UnfoldRanksPass> {
  using UnfoldRanksPassBase::UnfoldRanksPassBase;

  void runOnOperation() override {
    std::map<int64_t, ProgramOp> ranks; // by coordinate
    auto programs = llvm::to_vector(getOperation().getOps<ProgramOp>());
    for (ProgramOp program : programs)
      unfold(program, ranks);
    if (ranks.empty())
      return;
    // Kinds stand in the order of the first of their ranks.
    int64_t coordinate = 0;
    for (ProgramOp program : programs) {
      while (!ranks.try_emplace(coordinate, program).second)
        ++coordinate;
    }
    order(ranks);
  }

private:
  void unfold(ProgramOp program, std::map<int64_t, ProgramOp> &ranks) {
    auto others = program->getAttrOfType<ArrayAttr>(schedule::equalRanksName);
    if (!others)
      return;
    program->removeAttr(schedule::equalRanksName);
    for (auto other : others.getAsRange<EqualRankAttr>())
      ranks.emplace(other.getCoordinate(), copy(program, other));
  }

  static ProgramOp copy(ProgramOp program, EqualRankAttr as) {
    OpBuilder builder(program);
    auto own = cast<ProgramOp>(builder.clone(*program));
    Renaming names = Renaming::from(as);
    Renamer rename(names);
    own.walk([&](Operation *op) {
      if (!isa<schedule::ViewOp>(op)) // Most ops are, and none has a name.
        rename.rename(op);
    });
    nameTransfers(own);
    for (auto actions :
         llvm::to_vector(own.getBody().getOps<schedule::ActionsOp>()))
      actions.erase();
    schedule::createActions(
        builder, own, ActionTableAttr::get(own.getContext(), as.getTable()));
    return own;
  }

  static void nameTransfers(ProgramOp program) {
    for (schedule::ListOp list : schedule::listsOf(program))
      for (Operation &op : list.getBody().front())
        if (isa<schedule::SendOp, schedule::ReceiveOp>(op))
          op.setAttr("source",
                     StringAttr::get(op.getContext(),
                                     schedule::nameOfTransfer(
                                         list.getKind(), list.getStage())));
  }

  static void order(const std::map<int64_t, ProgramOp> &ranks) {
    Block *block = ranks.begin()->second->getBlock();
    Operation *last = nullptr;
    for (auto [coordinate, program] : ranks) {
      ProgramOp own = program;
      own.setName(("rank" + Twine(coordinate)).str());
      last ? own->moveAfter(last) : own->moveBefore(block, block->begin());
      last = own;
    }
  }
};
} // namespace
} // namespace meshwork::pipeline
