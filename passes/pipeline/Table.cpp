#include "passes/pipeline/Table.h"

#include "lib/Analysis/SpecKey.h"
#include "lib/Schedules/Generate.h"
#include "lib/Schedules/Lower.h"
#include "mlir/IR/Diagnostics.h"

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

FailureOr<schedules::Table> computeTable(const TableOptions &options,
                                         Operation *module) {
  return orError(
      schedules::generate(
          {.name = options.schedule,
           .ranks = static_cast<int32_t>(options.ranks),
           .microbatches = static_cast<int32_t>(options.microbatches),
           .virtualStages = static_cast<int32_t>(options.virtualStages)}),
      module);
}

FailureOr<schedules::Table> transferTable(const TableOptions &options,
                                          Operation *module) {
  FailureOr<schedules::Table> table = computeTable(options, module);
  if (failed(table) || options.ranks == 1)
    return table;
  return orError(schedules::lower(*table, {}), module);
}

} // namespace meshwork::pipeline
