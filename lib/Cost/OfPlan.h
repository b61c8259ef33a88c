// What the instructions of a program take on a machine, and its lists.
#ifndef MESHWORK_LIB_COST_OFPLAN_H
#define MESHWORK_LIB_COST_OFPLAN_H

#include "lib/Cost/ListClock.h"
#include "lib/Cost/Times.h"

#include <vector>

namespace meshwork::cost {

/// What an instruction computes: of products and attention in which arithmetic.
Work workOf(const plan::Program &program, const plan::Instruction &instruction);

/// One run of an instruction, on the rank with most rows for experts; 0 of a
/// Wait and of a Repeat, whose turns are runs of what it repeats.
double secondsOfRun(const Times &times, const plan::Program &program,
                    const plan::Instruction &instruction);

/// Of a copy to the host's memory or from it; of others 0.
double bytesOverHostLink(const plan::Program &program, const plan::Copy &op);

/// Whether a collective or a copy takes cores that compute.
bool takesCores(const Times &times, const plan::Instruction &instruction);

/// One run of a list; `isLast`: in the last action of the step that runs it.
/// Peers are never late. What a channel moves is hidden until it is waited for,
/// unless moving takes the cores that compute.
double secondsOfList(const Times &times, const plan::Program &program,
                     uint32_t list, bool isLast);

/// When each instruction of a list runs: all its runs, from the list's begin.
/// The same clock as secondsOfList; begin and end are equal of what does not
/// run.
std::vector<ListClock::Span> spansOfList(const Times &times,
                                         const plan::Program &program,
                                         uint32_t list, bool isLast);

/// All runs of a list in a step; 0 of none. Adds what is not hidden of them to
/// `exposed`.
double secondsOfStep(const Times &times, const plan::Program &program,
                     uint32_t list, uint64_t runs, Exposed *exposed = nullptr);

/// By list: one run, the mean of a step; 0 where it does not run.
std::vector<double> meanSeconds(const Times &times,
                                const plan::Program &program);

} // namespace meshwork::cost

#endif // MESHWORK_LIB_COST_OFPLAN_H
