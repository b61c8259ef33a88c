// The peak that MFU is told of, where the plan names a machine.
#ifndef MESHWORK_LIB_COST_PLANPEAK_H
#define MESHWORK_LIB_COST_PLANPEAK_H

#include "meshwork/Plan/Plan.h"

namespace meshwork::cost {

/// The peak of products in the plan's type on `target.machine`, in Tflop/s of
/// all ranks together; 0 where the plan's spec names none.
double peakTflopsOf(const plan::Plan &plan);

} // namespace meshwork::cost

#endif // MESHWORK_LIB_COST_PLANPEAK_H
