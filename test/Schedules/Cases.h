// Tables for tests.
#ifndef MESHWORK_TEST_SCHEDULES_CASES_H
#define MESHWORK_TEST_SCHEDULES_CASES_H

#include "lib/Schedules/Table.h"

#include <random>

namespace meshwork::schedules {

/// From the definition: rank r runs min(P - r - 1, m) microbatches ahead.
Table oneFOneB(int32_t ranks, int32_t microbatches);
/// All forward, then all backward.
Table gpipe(int32_t ranks, int32_t microbatches);

/// The same times for each stage.
Costs evenCosts(size_t stages, double forward, double inputGrad,
                double weightGrad, double transfer);

/// With SEND right after the work and RECV right before it.
Table withTransfers(const Table &table);

/// Any order that some run of the pipeline could have: up to 4 ranks, stages on
/// any of them, B or I and W. SEND and RECV stand at any place that the run
/// allows; some are posted as one.
Table randomTable(std::mt19937 &random);

} // namespace meshwork::schedules

#endif // MESHWORK_TEST_SCHEDULES_CASES_H
