// The options of a run on the command line, by runtime/rank/OptionTable.h.
#pragma once

#include "meshwork/Runtime/Run.h"
#include "tools/cli/Cli.h"

namespace meshwork {

void addOptions(CLI::App &app, runtime::RunOptions &options);

/// Of those that need one option or another: as the others, once all are known.
void checkNeeds(const CLI::App &app);

} // namespace meshwork
