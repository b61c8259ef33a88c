// The machine that a plan names, and the peak that MFU is told of.
#ifndef MESHWORK_LIB_COST_PLANPEAK_H
#define MESHWORK_LIB_COST_PLANPEAK_H

#include "lib/Cost/Machine.h"
#include "meshwork/Plan/Plan.h"

namespace meshwork::cost {

/// `target.machine`, as it was when the plan was made; nothing where the plan's
/// spec names none.
std::optional<Machine> machineNamedBy(const plan::Plan &plan);

/// The peak of the plan's products on `target.machine`, in Tflop/s of all ranks
/// together; 0 where the plan's spec names none. It is what the machine reaches
/// if each product runs at the peak of its type: FP8 where it multiplies 8
/// bits, else the plan's. What is recomputed counts among the products.
double peakTflopsOf(const plan::Plan &plan);
/// The same on another machine.
double peakTflopsOn(const plan::Plan &plan, const Machine &machine);

} // namespace meshwork::cost

#endif // MESHWORK_LIB_COST_PLANPEAK_H
