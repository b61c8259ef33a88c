// What signals ask of a run: to end after this step, to end now, or to save.
//
//   handleSignals(); // first: until then SIGUSR1 kills
//   listenTo(options);
#pragma once

#include "meshwork/Runtime/Run.h"

namespace meshwork {

void handleSignals();

/// The run looks at what was asked after each step.
void listenTo(runtime::RunOptions &options);

} // namespace meshwork
