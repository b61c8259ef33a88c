// The rules of a table, one after another. Internal to lib/Schedules; Verdict.h
// is what others ask. Each takes a table that passes checkRanges.
#ifndef MESHWORK_LIB_SCHEDULES_CHECKS_H
#define MESHWORK_LIB_SCHEDULES_CHECKS_H

#include "lib/Schedules/Faults.h"
#include "lib/Schedules/Index.h"

namespace meshwork::schedules {

/// Every action stands once, on the rank that holds its stage; what starts
/// together may.
void checkPlaces(const Table &table, const Index &index, Faults &faults);

/// Each stage has for each microbatch F, and B or both I and W.
void checkCounts(const Table &table, const Index &index, Faults &faults);

/// What an action needs of its own rank stands before it.
void checkOrder(const Table &table, const Index &index, Faults &faults);

/// Each SEND has its RECV, each RECV its SEND, every edge between ranks has
/// both and no other edge has any. A table without transfers is complete too.
void checkTransfers(const Table &table, const Index &index, Faults &faults);

/// No rank keeps more than `memory` microbatches, counted in virtual stages;
/// 0: no limit.
void checkMemory(const Table &table, double memory, double stash,
                 Faults &faults);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_CHECKS_H
