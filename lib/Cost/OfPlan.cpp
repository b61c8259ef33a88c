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

class WorkOf {
public:
  WorkOf(const plan::Program &program, const plan::Instruction &instruction)
      : program(program), instruction(instruction) {}

  /// Kernels compute in f32 whatever they store.
  Work work() const {
    if (const plan::Matmul *op = instruction.op_as_Matmul())
      return product(op->lhs(), shapeOf(*op));
    if (const plan::GroupedProduct *op = instruction.op_as_GroupedProduct())
      return product(op->lhs(), {});
    if (const plan::GroupedGradient *op = instruction.op_as_GroupedGradient())
      return product(op->lhs(), {});
    if (const plan::Attention *op = instruction.op_as_Attention())
      return attention(op->q(), false);
    if (const plan::AttentionGrad *op = instruction.op_as_AttentionGrad())
      return attention(op->q(), true);
    return {};
  }

private:
  const plan::View &view(uint32_t number) const {
    return *program.views()->Get(number);
  }
  double size(uint32_t number, uint32_t dim) const {
    const auto &shape = orEmpty(view(number).shape());
    return dim < shape.size() ? static_cast<double>(shape.Get(dim)) : 0;
  }

  double bytesOf(uint32_t number) const {
    return static_cast<double>(plan::bytesOf(view(number).dtype()));
  }

  ProductShape shapeOf(const plan::Matmul &op) const {
    ProductShape shape{size(op.dst(), 0), size(op.dst(), 1), size(op.dst(), 2),
                       size(op.lhs(), 2), bytesOf(op.lhs())};
    bool isGelu = op.epilogue() == plan::Epilogue::gelu ||
                  op.epilogue() == plan::Epilogue::gelu_grad;
    if (isGelu && op.aux() != plan::noView)
      shape.asideBytes = shape.batch * shape.m * shape.n * bytesOf(op.aux());
    return shape;
  }
  Work product(uint32_t lhs, ProductShape shape) const {
    return {Work::product, arithmeticOf(view(lhs).dtype()), shape};
  }

  /// 4 flops for each pair of query and key and element of a head; a gradient
  /// counts as two of these.
  Work attention(uint32_t q, bool isGradient) const {
    double queries = size(q, 0) * size(q, 1) * size(q, 2), head = size(q, 3);
    double flopsOfKey = (isGradient ? 8 : 4) * queries * head;
    double keys = flopsOfKey > 0
                      ? static_cast<double>(instruction.flops()) / flopsOfKey
                      : 0;
    return {Work::attention,
            arithmeticOf(view(q).dtype()),
            {},
            {isGradient, head, keys}};
  }

  const plan::Program &program;
  const plan::Instruction &instruction;
};

std::vector<uint32_t> axesOf(const plan::Collective &op) {
  std::vector<uint32_t> axes;
  for (uint32_t axis : orEmpty(op.axes()))
    axes.push_back(axis);
  return axes;
}

/// Whether data decide how many rows it has.
bool isGrouped(const plan::Instruction &instruction) {
  return instruction.op_as_GroupedProduct() ||
         instruction.op_as_GroupedGradient();
}

} // namespace

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

Work workOf(const plan::Program &program,
            const plan::Instruction &instruction) {
  return WorkOf(program, instruction).work();
}

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
  double rows = isGrouped(instruction) ? times.machine().expertLoad : 1;
  return times.instruction(workOf(program, instruction), flops * rows,
                           bytes * rows);
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

  /// Notes in `spans`, if given, when each instruction runs.
  ListClock run(std::vector<ListClock::Span> *spans = nullptr) const {
    ListClock clock(times.machine().slowdown, times.machine().hostInstruction);
    for (uint32_t i = 0; i < all.size(); ++i)
      if (const plan::Repeat *counted = countedAt(i)) {
        i += counted->instructions();
        clock.restart();
      } else {
        ListClock::Span span = visit(clock, i);
        if (spans)
          (*spans)[i] = span;
      }
    return clock;
  }

private:
  const plan::Repeat *countedAt(uint32_t i) const {
    const plan::Repeat *op = all.Get(i)->op_as_Repeat();
    return op && plan::isCounted(*op) ? op : nullptr;
  }

  ListClock::Span visit(ListClock &clock, uint32_t i) const {
    const plan::Instruction &instruction = *all.Get(i);
    auto runs = static_cast<double>(repeats.timesOf(i));
    double seconds = runs * secondsOfRun(times, program, instruction);
    const plan::Collective *op = instruction.op_as_Collective();
    if (op && op->last_only() && !isLast)
      seconds = 0;
    if (const plan::Wait *wait = instruction.op_as_Wait())
      return clock.wait(wait->channel(), wait->count());
    if (op || instruction.channel() > 0 || crossesHostLink(instruction))
      return clock.start({seconds, instruction.channel(),
                          takesCores(times, instruction),
                          op && times.usesAdapters(axesOf(*op)),
                          op ? axesOf(*op) : MovedOver(), runs});
    return clock.compute(seconds, runs);
  }

  bool crossesHostLink(const plan::Instruction &instruction) const {
    const plan::Copy *copy = instruction.op_as_Copy();
    return copy && bytesOverHostLink(program, *copy) > 0;
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

std::vector<ListClock::Span> spansOfList(const Times &times,
                                         const plan::Program &program,
                                         uint32_t list, bool isLast) {
  std::vector<ListClock::Span> spans(plan::listOf(program, list).size());
  ListTime(times, program, list, isLast).run(&spans);
  return spans;
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
