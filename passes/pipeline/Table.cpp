#include "passes/pipeline/Table.h"

#include "lib/Schedules/Csv.h"
#include "lib/Schedules/Generate.h"
#include "lib/Schedules/Lower.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/analysis/SpecKey.h"

using namespace mlir;

namespace meshwork::pipeline {

static FailureOr<schedules::Table>
orError(absl::StatusOr<schedules::Table> table, Operation *module) {
  if (table.ok())
    return std::move(*table);
  emitError(analysis::ofSpec("pipeline.schedule", module->getLoc()))
      << std::string(table.status().message());
  return failure();
}

bool splitsBackward(const schedules::Table &table) {
  for (const auto &rank : table.ranks)
    for (const schedules::Action &action : rank)
      if (action.kind == schedules::Kind::weightGrad)
        return true;
  return false;
}

/// Actions one after the other; where some B is in two, all are.
static void simplify(schedules::Table &table) {
  using schedules::Kind;
  bool splits = splitsBackward(table);
  for (auto &rank : table.ranks) {
    std::vector<schedules::Action> all;
    for (schedules::Action action : rank) {
      action.withNext = false;
      bool isBoth = splits && action.kind == Kind::backward;
      if (isBoth)
        action.kind = Kind::inputGrad;
      all.push_back(action);
      if (isBoth)
        all.push_back({Kind::weightGrad, action.stage, action.microbatch});
    }
    rank = std::move(all);
  }
}

/// Of no stage where none are given.
static schedules::Costs costsOf(const TableOptions &options) {
  schedules::Costs costs;
  std::vector<double> *kinds[] = {&costs.forward, &costs.inputGrad,
                                  &costs.weightGrad, &costs.transfer};
  for (auto [i, time] : llvm::enumerate(options.times))
    kinds[i % std::size(kinds)]->push_back(static_cast<double>(time));
  return costs;
}

FailureOr<schedules::Table> computeTable(const TableOptions &options,
                                         Operation *module) {
  std::string text = options.schedule;
  bool isText = StringRef(text).contains('/');
  llvm::replace(text, '/', '\n');
  FailureOr<schedules::Table> table = orError(
      isText
          ? schedules::parseCsv(text, "pipeline.schedule")
          : schedules::generate(
                {.name = options.schedule,
                 .ranks = static_cast<int32_t>(options.ranks),
                 .microbatches = static_cast<int32_t>(options.microbatches),
                 .virtualStages = static_cast<int32_t>(options.virtualStages),
                 .costs = costsOf(options),
                 .memory = static_cast<double>(options.kept)}),
      module);
  if (succeeded(table))
    simplify(*table);
  return table;
}

FailureOr<schedules::Table> withTransfers(const schedules::Table &table,
                                          const TableOptions &options,
                                          Operation *module) {
  return orError(schedules::lower(table, costsOf(options)), module);
}

} // namespace meshwork::pipeline
