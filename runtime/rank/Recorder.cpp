#include "runtime/rank/Recorder.h"

namespace meshwork::runtime {

Recorder::Recorder(const Rank &rank, uint64_t traceSteps, uint64_t steps)
    : rank(rank), traceSteps(traceSteps), skipsFirst(steps > 1) {
  size_t perStep = 0;
  for (const plan::ListShape &list : rank.table().lists()) {
    totals.emplace_back(list.size);
    perStep += list.size;
  }
  // A start for the list; microbatches multiply it.
  if (traceSteps > 0)
    kept.reserve(perStep);
}

void Recorder::beginStep(uint64_t number) {
  step = number;
  sums = !(skipsFirst && seen == 0);
  ++seen;
  summed += sums;
}

void Recorder::after(const ListRun &run, uint32_t at, int64_t beginNs,
                     int64_t endNs, const CommTimes &times) {
  uint32_t index = rank.turn(run.list, at).instruction;
  if (seen <= traceSteps)
    kept.push_back(
        {step, beginNs, endNs, times.waitNs, index, run.microbatch, run.list});
  if (!sums)
    return;
  InstructionTotal &total = totals[run.list][index];
  total.ns += endNs - beginNs;
  total.waitNs += times.waitNs;
  ++total.calls;
}

} // namespace meshwork::runtime
