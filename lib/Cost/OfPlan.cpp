#include "lib/Cost/OfPlan.h"

#include "lib/Cost/ListClock.h"
#include "lib/Plan/ProgramLives.h"

#include <algorithm>

namespace meshwork::cost {
namespace {
using plan::orEmpty;

Arithmetic arithmeticOf(plan::DType type) {
  switch (type) {
  case plan::DType::bf16:
    return Arithmetic::bf16;
  case plan::DType::e4m3:
  case plan::DType::e5m2:
    return Arithmetic::fp8;
  default:
    return Arithmetic::f32;
  }
}

/// Kernels compute in f32 whatever they
/// store.
Work workOf(const plan::Program &program,
            const plan::Instruction &instruction) {
  auto typeOf = [&](uint32_t view) {
    return arithmeticOf(program.views()->Get(view)->dtype());
  };
  if (const plan::Matmul *op = instruction.op_as_Matmul())
    return {Work::product, typeOf(op->lhs())};
  if (const plan::GroupedProduct *op = instruction.op_as_GroupedProduct())
    return {Work::product, typeOf(op->lhs())};
  if (const plan::GroupedGradient *op = instruction.op_as_GroupedGradient())
    return {Work::product, typeOf(op->lhs())};
  if (const plan::Attention *op = instruction.op_as_Attention())
    return {Work::attention, typeOf(op->q())};
  if (const plan::AttentionGrad *op = instruction.op_as_AttentionGrad())
    return {Work::attention, typeOf(op->q())};
  return {};
}

std::vector<uint32_t> axesOf(const plan::Collective &op) {
  std::vector<uint32_t> axes;
  for (uint32_t axis : orEmpty(op.axes()))
    axes.push_back(axis);
  return axes;
}

/// Nothing, if both lie on the device.
double bytesOverHostLink(const plan::Program &program, const plan::Copy &op) {
  bool crosses = false;
  double bytes = 0;
  for (uint32_t number : {op.src(), op.dst()}) {
    const plan::View &view = *program.views()->Get(number);
    crosses |=
        program.buffers()->Get(view.buffer())->space() == plan::Space::host;
    bytes = plan::bytesOf(view.dtype());
    for (int64_t size : orEmpty(view.shape()))
      bytes *= static_cast<double>(size);
  }
  return crosses ? bytes : 0;
}

} // namespace

double secondsOfRun(const Times &times, const plan::Program &program,
                    const plan::Instruction &instruction) {
  if (instruction.op_as_Wait() || instruction.op_as_Repeat())
    return 0;
  auto flops = static_cast<double>(instruction.flops()),
       bytes = static_cast<double>(instruction.bytes());
  if (const plan::Collective *op = instruction.op_as_Collective())
    return times.collective(op->kind(), bytes, axesOf(*op));
  if (const plan::Send *op = instruction.op_as_Send())
    return times.transfer(bytes, op->axis());
  if (const plan::Receive *op = instruction.op_as_Receive())
    return times.transfer(bytes, op->axis());
  if (const plan::Copy *op = instruction.op_as_Copy())
    if (double moved = bytesOverHostLink(program, *op); moved > 0)
      return times.hostCopy(moved);
  return times.instruction(workOf(program, instruction), flops, bytes);
}

bool takesCores(const Times &times, const plan::Instruction &instruction) {
  const plan::Collective *op = instruction.op_as_Collective();
  return op ? times.takesCores(axesOf(*op)) : times.hostCopyTakesCores();
}

namespace {
/// One list, as it runs when no counted repeat takes a turn: these come when
/// data ask for more than usual.
class ListTime {
public:
  ListTime(const Times &times, const plan::Program &program, uint32_t list,
           bool isLast)
      : times(times), program(program), all(plan::listOf(program, list)),
        repeats(plan::repeatsOf(program, list)), isLast(isLast) {}

  ListClock run() const {
    ListClock clock;
    for (uint32_t i = 0; i < all.size(); ++i)
      if (const plan::Repeat *counted = countedAt(i)) {
        i += counted->instructions();
        clock.restart();
      } else
        visit(clock, i);
    return clock;
  }

private:
  const plan::Repeat *countedAt(uint32_t i) const {
    const plan::Repeat *op = all.Get(i)->op_as_Repeat();
    return op && plan::isCounted(*op) ? op : nullptr;
  }

  void visit(ListClock &clock, uint32_t i) const {
    const plan::Instruction &instruction = *all.Get(i);
    double seconds = static_cast<double>(repeats.timesOf(i)) *
                     secondsOfRun(times, program, instruction);
    const plan::Collective *op = instruction.op_as_Collective();
    if (op && op->last_only() && !isLast)
      seconds = 0;
    if (const plan::Wait *wait = instruction.op_as_Wait())
      clock.wait(wait->channel(), wait->count());
    else if (op || instruction.channel() > 0)
      clock.start({seconds, instruction.channel(),
                   takesCores(times, instruction),
                   op ? axesOf(*op) : MovedOver()});
    else
      clock.compute(seconds);
  }

  const Times &times;
  const plan::Program &program;
  const plan::Instructions &all;
  plan::Repeats repeats;
  bool isLast;
};
} // namespace

double secondsOfList(const Times &times, const plan::Program &program,
                     uint32_t list, bool isLast) {
  return ListTime(times, program, list, isLast).run().now();
}

double secondsOfStep(const Times &times, const plan::Program &program,
                     uint32_t list, uint64_t runs, Exposed *exposed) {
  if (runs == 0)
    return 0;
  ListClock one = ListTime(times, program, list, false).run(),
            last = ListTime(times, program, list, true).run();
  if (exposed) {
    for (const auto &[over, seconds] : one.exposed())
      (*exposed)[over] += static_cast<double>(runs - 1) * seconds;
    for (const auto &[over, seconds] : last.exposed())
      (*exposed)[over] += seconds;
  }
  return secondsOfRuns(runs, one.now(), last.now());
}

std::vector<double> meanSeconds(const Times &times,
                                const plan::Program &program) {
  std::vector<uint64_t> runs(orEmpty(program.lists()).size());
  for (const plan::Action &action : plan::actionsOf(program))
    ++runs[action.list()];
  std::vector<double> means;
  for (uint32_t list = 0; list < runs.size(); ++list)
    means.push_back(secondsOfStep(times, program, list, runs[list]) /
                    static_cast<double>(std::max<uint64_t>(runs[list], 1)));
  return means;
}

} // namespace meshwork::cost
