// The schedules of a pipeline that are known by name; Words.h reads and writes
// them. lib/Schedules makes their tables.
#pragma once

#include "lib/Spec/Words.h"

namespace meshwork::spec {

enum class Schedule {
  gpipe,
  oneForwardOneBackward,
  interleaved,
  zbH1,
  zbH2,
  zbV,
  dualPipeV,
  best // whatever a search finds
};

} // namespace meshwork::spec
