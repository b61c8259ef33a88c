#include "test/Support/Emulator/ptx/WarpLoop.h"

#include "test/Support/Emulator/ptx/Barriers.h"
#include "test/Support/Emulator/ptx/BulkCopies.h"
#include "test/Support/Emulator/ptx/Mbarriers.h"
#include "test/Support/Emulator/ptx/Wgmma.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>

namespace meshwork::ptx {
namespace {

constexpr uint32_t noStop = ~uint32_t(0);

/// Joins groups that are at the same instruction. Those that waited there look
/// again whether all that they need have come.
void join(std::vector<Group> &groups) {
  std::sort(groups.begin(), groups.end(),
            [](const Group &a, const Group &b) { return a.pc < b.pc; });
  size_t last = 0;
  for (size_t i = 1; i < groups.size(); ++i) {
    if (groups[i].pc == groups[last].pc) {
      groups[last].mask |= groups[i].mask;
      groups[last].waits = Waits::no;
    } else {
      groups[++last] = groups[i];
    }
  }
  groups.resize(last + 1);
}

[[noreturn]] void stuck(Warp &warp) {
  const Program &program = *warp.block->launch->program;
  std::string text = "lanes of a warp wait for each other at different places:";
  for (const Group &group : warp.others)
    absl::StrAppendFormat(
        &text, " lanes 0x%08x at line %d", group.mask,
        program.statements[program.code[group.pc].statement].line);
  warp.current = warp.others[0];
  throw Fault{Fault::Kind::lanes, text, __builtin_ctz(warp.current.mask)};
}

/// Lanes whose phase has completed go on.
void wake(Warp &warp) {
  const Instruction *code = warp.block->launch->program->code.data();
  for (Group &group : warp.others)
    if (group.waits == Waits::phase &&
        lanesWithPhase(warp, code[group.pc], group.mask))
      group.waits = Waits::no;
}

/// No group can run: the warp is parked if one waits for a phase.
bool park(Warp &warp) {
  warp.parked = std::any_of(
      warp.others.begin(), warp.others.end(),
      [](const Group &group) { return group.waits == Waits::phase; });
  if (!warp.parked)
    stuck(warp);
  return false;
}

/// Chooses the group to run. False when all lanes have ended, or none can go on
/// before the phase of an mbarrier completes.
bool reschedule(Warp &warp) {
  std::vector<Group> &others = warp.others;
  if (warp.current.mask)
    others.push_back(warp.current);
  warp.current.mask = 0;
  if (others.empty())
    return false;
  join(others);
  wake(warp);
  auto next =
      std::find_if(others.begin(), others.end(),
                   [](const Group &group) { return group.waits == Waits::no; });
  if (next == others.end())
    return park(warp);
  warp.current = *next;
  next = others.erase(next);
  warp.stop = next == others.end() ? noStop : next->pc; // the list is sorted
  return true;
}

/// False as of reschedule.
bool advance(Warp &warp) {
  return ++warp.current.pc != warp.stop || reschedule(warp);
}

bool branch(Warp &warp, Mask active, uint32_t target) {
  if (active == warp.current.mask) {
    warp.current.pc = target;
    return warp.others.empty() || reschedule(warp);
  }
  warp.others.push_back({target, active});
  warp.current.mask &= ~active;
  ++warp.current.pc;
  return reschedule(warp);
}

bool branchIndexed(Warp &warp, const Instruction &i, Mask active) {
  const Program &program = *warp.block->launch->program;
  const uint32_t *index = warp.at<uint32_t>(i.r[0]);
  uint32_t count = program.targets[i.target];
  eachLane(active, [&](unsigned lane) {
    if (index[lane] >= count)
      throw Fault{Fault::Kind::lanes,
                  absl::StrCat("target ", index[lane], " of ", count),
                  int(lane)};
    warp.others.push_back(
        {program.targets[i.target + 1 + index[lane]], Mask(1) << lane});
  });
  warp.current.mask &= ~active;
  ++warp.current.pc;
  return reschedule(warp);
}

/// The warp's last lanes end.
void finishAsync(Warp &warp) {
  checkProductsDone(warp);
  finishStores(warp);
}

bool exitLanes(Warp &warp, Mask active) {
  if ((warp.exited | active) == warp.lanes)
    finishAsync(warp);
  warp.exited |= active;
  warp.current.mask &= ~active;
  ++warp.current.pc;
  return warp.current.mask && warp.others.empty() ? true : reschedule(warp);
}

/// Lanes that the active ones name, of those that the warp has.
Mask neededLanes(Warp &warp, const Instruction &i, Mask active) {
  if (i.flow == Flow::barrier)
    return warp.lanes;
  const Mask *named = warp.at<Mask>(i.together);
  Mask needed = 0;
  eachLane(active, [&](unsigned lane) {
    if (!(named[lane] >> lane & 1))
      throw Fault{
          Fault::Kind::lanes,
          absl::StrFormat("the lane is not in its mask 0x%08x", named[lane]),
          int(lane)};
    needed |= named[lane];
  });
  return needed & warp.lanes;
}

/// These lanes stay at the instruction, the others go on.
bool leaveWaiting(Warp &warp, Mask lanes, Waits waits) {
  warp.others.push_back({warp.current.pc, lanes, waits});
  warp.current.mask &= ~lanes;
  ++warp.current.pc;
  return reschedule(warp);
}

/// Whether all lanes are here that the instruction needs; if not, the active
/// ones wait.
bool gathered(Warp &warp, const Instruction &i, Mask active, bool &alive) {
  Mask needed = neededLanes(warp, i, active);
  if (Mask gone = needed & warp.exited)
    throw Fault{
        i.flow == Flow::barrier ? Fault::Kind::barrier : Fault::Kind::lanes,
        absl::StrFormat("lanes 0x%08x have ended and never come here", gone),
        __builtin_ctz(active)};
  if (!(needed & ~active))
    return true;
  alive = leaveWaiting(warp, active, Waits::lanes);
  return false;
}

/// mbarrier.try_wait: lanes whose phase is complete go on.
bool waitForPhase(Warp &warp, const Instruction &i, Mask active) {
  Mask done = lanesWithPhase(warp, i, active);
  if (done)
    i.run(warp, i, done);
  return done == active ? advance(warp)
                        : leaveWaiting(warp, active & ~done, Waits::phase);
}

void checkLimit(const Warp &warp) {
  uint64_t limit = warp.block->launch->maxInstructions;
  if (limit && warp.instructions > limit)
    throw Fault{Fault::Kind::limit,
                absl::StrCat("the warp runs more than ", limit,
                             " instructions; does it wait for another block?")};
}

/// An instruction that is not plain; false when the warp ended or waits.
bool control(Warp &warp, const Instruction &i, Mask active) {
  bool alive = true;
  switch (i.flow) {
  case Flow::branch:
    checkLimit(warp);
    return branch(warp, active, i.target);
  case Flow::indexed:
    return branchIndexed(warp, i, active);
  case Flow::exit:
    return exitLanes(warp, active);
  case Flow::gather:
    if (!gathered(warp, i, active, alive))
      return alive;
    i.run(warp, i, active);
    return advance(warp);
  case Flow::barrier:
    if (!gathered(warp, i, active, alive))
      return alive;
    arrive(warp, i, active);
    return warp.ready;
  case Flow::phase:
    return waitForPhase(warp, i, active);
  case Flow::plain:
    break;
  }
  return advance(warp);
}

} // namespace

bool resume(Warp &warp) {
  if (!warp.parked)
    return true;
  warp.parked = false;
  return reschedule(warp);
}

void runWarp(Warp &warp) {
  const Instruction *code = warp.block->launch->program->code.data();
  if (warp.others.empty())
    warp.stop = noStop;
  for (;;) {
    const Instruction &i = code[warp.current.pc];
    Mask active = warp.current.mask;
    if (i.guard != noRegister)
      active &= warp.predicate(i.guard) ^ (i.guardNegated ? allLanes : 0);
    ++warp.instructions;
    warp.laneInstructions += unsigned(__builtin_popcount(active));
    if (active && i.flow != Flow::plain) {
      if (!control(warp, i, active))
        break;
      continue;
    }
    if (active)
      i.run(warp, i, active);
    if (!advance(warp))
      break;
  }
  if (warp.exited == warp.lanes)
    warp.ready = false;
}

} // namespace meshwork::ptx
