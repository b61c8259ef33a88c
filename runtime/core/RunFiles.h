// The files of a run: none may be lost because two options name it.
#pragma once

#include "meshwork/Runtime/Run.h"
#include "runtime/io/FileUses.h"
#include "runtime/io/LineLog.h"
#include "runtime/io/SafeTensors.h"
#include <vector>

namespace meshwork::runtime {

/// Every file that the run reads or writes. `weights` may be null; its files
/// are read, whatever --init names.
std::vector<FileUse> filesOfRun(const RunOptions &options,
                                const SafeTensorsReader *weights);

/// Refuses one file in two of these roles if one of them writes it (exit code
/// 64). Then creates what will be written at the end, and takes it away again:
/// a wrong path costs seconds, not a night (73). Returns the log for metrics,
/// or null.
absl::StatusOr<std::unique_ptr<LineLog>>
prepareOutputs(const RunOptions &options, const SafeTensorsReader *weights);

} // namespace meshwork::runtime
