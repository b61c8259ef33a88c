#include "runtime/rank/options/Groups.h"

namespace meshwork::runtime {
namespace {
const OptionRow toldRows[] = {
    {.name = "--log-every",
     .valueName = "N",
     .help = "Print a line after each N steps, on a terminal beside the bar; "
             "default: off a terminal the first, the last, and one each ten "
             "seconds",
     .field = MESHWORK_FIELD(logEvery),
     .least = 1,
     .needs = "--steps"},
    {.name = "--peak-tflops",
     .valueName = "TFLOPS",
     .help =
         "Peak of all ranks together, for mfu; default: that of the machine "
         "that the plan names (target.machine)",
     .field = MESHWORK_FIELD(peakTflops),
     .lowest = 1e-3,
     .highest = 1e9,
     .isPositive = true,
     .needs = "--steps"},
    {.name = "--measure-peak",
     .valueName = "",
     .help = "Measure it with a matmul on each rank",
     .field = MESHWORK_FIELD(measurePeak),
     .needs = "--steps",
     .excludes = "--peak-tflops",
     .isShared = true},
    {.name = "--profile",
     .valueName = "",
     .help = "Print time per instruction",
     .field = MESHWORK_FIELD(profile),
     .needs = "--steps"},
};
} // namespace

OptionGroup toldOptions() { return {"What is told", toldRows}; }

} // namespace meshwork::runtime
