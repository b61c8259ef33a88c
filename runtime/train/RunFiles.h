// The files of a run: none may be lost because two options name it.
#pragma once

#include "meshwork/Runtime/Run.h"
#include "runtime/io/FileUses.h"
#include "runtime/io/SafeTensors.h"
#include "runtime/rank/Report.h"
#include <vector>

namespace meshwork::runtime {

/// Refuses "-" (64): a run's stdout has its progress, and its inputs are read
/// at many places.
absl::Status checkFileNames(const RunOptions &options);

/// Every file that the run reads or writes, and the folder of its checkpoints.
/// `weights` may be null; its files are read, whatever --init names.
std::vector<FileUse> filesOfRun(const RunOptions &options,
                                const SafeTensorsReader *weights);

/// Refuses one file in two of these roles if one of them writes it (exit code
/// 64). Then creates what will be written at the end, and takes it away again:
/// a wrong path costs seconds, not a night (73).
absl::Status checkOutputs(const RunOptions &options,
                          const SafeTensorsReader *weights);

/// The last thing before training: a run that cannot begin leaves no log.
absl::StatusOr<MetricLogs> openMetrics(const RunOptions &options);

} // namespace meshwork::runtime
