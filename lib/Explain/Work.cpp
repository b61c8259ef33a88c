#include "lib/Explain/Work.h"
#include "lib/Explain/Format.h"
#include <algorithm>
#include <map>

namespace meshwork::explain {
namespace {
void count(Work &work, const plan::Instruction &instruction, uint64_t runs) {
  ++work.instructions;
  work.runs = saturatingAdd(work.runs, runs);
  work.flops =
      saturatingAdd(work.flops, saturatingMul(instruction.flops(), runs));
  work.bytes =
      saturatingAdd(work.bytes, saturatingMul(instruction.bytes(), runs));
}
} // namespace

std::vector<Work> workByKind(const Listing &listing) {
  std::map<std::string, Work> kinds;
  for (const Phase &phase : listing.phases())
    if (phase.runs > 0)
      for (uint64_t i = phase.begin; i < phase.end; ++i)
        count(kinds[operationKind(listing[i])], listing[i],
              saturatingMul(phase.runs, listing.timesOf(i)));
  std::vector<Work> list;
  for (auto &[kind, work] : kinds) {
    work.kind = kind;
    list.push_back(work);
  }
  std::sort(list.begin(), list.end(), [](const Work &a, const Work &b) {
    return std::tie(b.flops, b.bytes, a.kind) <
           std::tie(a.flops, a.bytes, b.kind);
  });
  return list;
}

Work workOfPhase(const Listing &listing, const Phase &phase) {
  Work work;
  work.kind = phase.name;
  for (uint64_t i = phase.begin; i < phase.end; ++i)
    count(work, listing[i], listing.timesOf(i));
  return work;
}

} // namespace meshwork::explain
