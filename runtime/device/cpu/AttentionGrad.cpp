// Attention, backward: probabilities are computed again from lse, block by
// block. For one sample and key head, dk and dv sum over its query heads and
// their blocks in order, each key block on one thread. A query's dq sums in
// *parts*: part p has key blocks p, p + parts, p + 2 parts, ... in order, and
// the parts are added in order. So a sample and key head can be one thread's
// task, or the parts can be tasks of many threads, with the same bits.
//
// A few blocks of queries, a *group*, meet each block of keys together, which
// changes the order of no sum.
#include "runtime/device/cpu/AttentionKeySums.h"

namespace meshwork::runtime::cpu {
namespace {

/// As many threads as can share one sample and key head.
constexpr int64_t maxParts = 16;

/// Whose products a thread adds up: a query head and a group of its blocks.
struct Group {
  int64_t sample, head, firstBlock, count;
};

struct TaskScratch {
  GradScratch block;
  KeySums::Scratch keys;
  float *dq; // sums of groups; as many as a thread can have parts, or two
};

class AttentionGradOperation final : public Operation {
public:
  AttentionGradOperation(AttentionShape from, GradOperands operands)
      : shape(std::move(from)), ops(std::move(operands)), products(shape, ops) {
  }

  absl::Status describe() { return products.describe(); }
  uint64_t workspaceBytes() const override;
  absl::Status bind(const PrepareContext &context) override;
  void run(const StepState &) override;

private:
  int64_t parts() const { return std::min(maxParts, shape.keys.count()); }
  Cut groups() const {
    int64_t blocks = shape.queries.count();
    return {blocks, std::min(shape.blocksTogether(), blocks)};
  }
  int64_t dqSize() const { return shape.queries.block * shape.paddedD(); }
  TaskScratch carve(Carver &carver) const;
  TaskScratch scratchOf(int thread) const;
  KeySums sumsOf(int thread, int64_t task) const;
  float *sharedPart(int64_t part) const;

  void forEachGroup(int64_t task, absl::FunctionRef<void(const Group &)>) const;
  void runAlone(int64_t task, int thread);
  void runTogether(int64_t task);
  void runGroup(const Group &group, const KeySums &sums, int thread);
  void runGroupTogether(const Group &group, const KeySums &sums);
  BlockRange blocksOf(int64_t part, const Group &group,
                      const GradQueries *queries) const;
  void prepare(const Group &group, const GradScratch &scratch,
               GradQueries *queries, int thread);
  void addPart(const Group &group, const GradQueries *queries, int64_t part,
               const KeySums &sums, const GradScratch &scratch, float *dq,
               int thread);
  void roundQueries(const Group &group, int64_t index, const float *dq) const;

  AttentionShape shape;
  GradOperands ops;
  GradProducts products;
  const AttentionKernels &kernels = attentionKernels();
};

void add(const float *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] += from[i];
}

/// Of the threads that share a task, at least two, each holds its parts' sums;
/// one alone holds one part's and their sum.
TaskScratch AttentionGradOperation::carve(Carver &carver) const {
  TaskScratch scratch{};
  scratch.block = products.carve(carver);
  scratch.keys = KeySums::takeScratch(shape, ops, carver);
  int64_t sums = std::max<int64_t>(ceilDiv(parts(), 2), 2);
  scratch.dq = carver.take<float>(sums * groups().block * dqSize());
  return scratch;
}

TaskScratch AttentionGradOperation::scratchOf(int thread) const {
  Carver carver(workspaceOf(thread));
  return carve(carver);
}

uint64_t AttentionGradOperation::workspaceBytes() const {
  Carver carver(nullptr);
  (void)carve(carver);
  return carver.used();
}

absl::Status AttentionGradOperation::bind(const PrepareContext &context) {
  MESHWORK_RETURN_IF_ERROR(Operation::bind(context));
  return products.generate(team->size());
}

/// Whole rounds of tasks alone; the threads share what is left over, where it
/// has more parts than tasks.
void AttentionGradOperation::run(const StepState &) {
  int64_t tasks = shape.batch * shape.kvHeads;
  int64_t left = tasks % team->size();
  int64_t alone = left < parts() ? tasks - left : tasks;
  team->parallelFor(alone, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t task = begin; task < end; ++task)
      runAlone(task, thread);
  });
  for (int64_t task = alone; task < tasks; ++task)
    runTogether(task);
}

KeySums AttentionGradOperation::sumsOf(int thread, int64_t task) const {
  return KeySums(shape, ops, arena, scratchOf(thread).keys,
                 task / shape.kvHeads, task % shape.kvHeads);
}

void AttentionGradOperation::forEachGroup(
    int64_t task, absl::FunctionRef<void(const Group &)> then) const {
  int64_t firstHead = task % shape.kvHeads * shape.groupSize();
  for (int64_t h = 0; h < shape.groupSize(); ++h)
    for (int64_t i = 0; i < groups().count(); ++i)
      then({task / shape.kvHeads, firstHead + h, i * groups().block,
            groups().lengthAt(i)});
}

void AttentionGradOperation::runAlone(int64_t task, int thread) {
  KeySums sums = sumsOf(thread, task);
  BlockRange all{0, shape.keys.count()};
  sums.clear(all);
  forEachGroup(task,
               [&](const Group &group) { runGroup(group, sums, thread); });
  sums.round(all);
}

void AttentionGradOperation::runTogether(int64_t task) {
  KeySums sums = sumsOf(0, task);
  team->parallelFor(shape.keys.count(), [&](int64_t begin, int64_t end, int) {
    sums.clear({begin, end});
  });
  forEachGroup(task,
               [&](const Group &group) { runGroupTogether(group, sums); });
  team->parallelFor(shape.keys.count(), [&](int64_t begin, int64_t end, int) {
    sums.round({begin, end});
  });
}

void AttentionGradOperation::runGroup(const Group &group, const KeySums &sums,
                                      int thread) {
  TaskScratch scratch = scratchOf(thread);
  GradQueries queries[maxBlocksTogether];
  prepare(group, scratch.block, queries, thread);
  int64_t size = group.count * dqSize();
  float *dq = scratch.dq, *part = dq + size;
  addPart(group, queries, 0, sums, scratch.block, dq, thread);
  for (int64_t index = 1; index < parts(); ++index) {
    // Adding the zeros of a part without blocks would change no bit: `dq` began
    // with +0, so no sum is -0.
    BlockRange blocks = blocksOf(index, group, queries);
    if (blocks.first >= blocks.end)
      continue;
    addPart(group, queries, index, sums, scratch.block, part, thread);
    add(part, size, dq);
  }
  for (int64_t i = 0; i < group.count; ++i)
    roundQueries(group, i, dq + i * dqSize());
}

/// Thread t has the parts t, t + threads, ..., so that each has as many blocks
/// of a causal row as the others, or one more.
void AttentionGradOperation::runGroupTogether(const Group &group,
                                              const KeySums &sums) {
  int threads = team->size();
  team->parallelFor(threads, [&](int64_t, int64_t, int thread) {
    TaskScratch scratch = scratchOf(thread);
    GradQueries queries[maxBlocksTogether];
    if (thread < parts())
      prepare(group, scratch.block, queries, thread);
    for (int64_t part = thread; part < parts(); part += threads)
      addPart(group, queries, part, sums, scratch.block, sharedPart(part),
              thread);
  });
  team->parallelFor(group.count, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      float *dq = sharedPart(0) + i * dqSize();
      for (int64_t part = 1; part < parts(); ++part)
        add(sharedPart(part) + i * dqSize(), dqSize(), dq);
      roundQueries(group, i, dq);
    }
  });
}

/// In the workspace of the thread that computes the part.
float *AttentionGradOperation::sharedPart(int64_t part) const {
  int threads = team->size();
  return scratchOf(static_cast<int>(part % threads)).dq +
         part / threads * groups().block * dqSize();
}

void AttentionGradOperation::prepare(const Group &group,
                                     const GradScratch &scratch,
                                     GradQueries *queries, int thread) {
  for (int64_t i = 0; i < group.count; ++i)
    queries[i] =
        products.prepare(arena, group.sample, group.head, group.firstBlock + i,
                         scratch.queries[i], scratch.gemm, thread);
}

/// From the part's first block on, every parts()-th before the end is its own.
BlockRange AttentionGradOperation::blocksOf(int64_t part, const Group &group,
                                            const GradQueries *queries) const {
  BlockRange seen = noBlocks;
  for (int64_t i = 0; i < group.count; ++i)
    seen = covering(seen, queries[i].block.keyBlocks);
  int64_t step = parts();
  seen.first += ((part - seen.first) % step + step) % step;
  return seen;
}

/// Writes the part's sums to `dq`, those of each block after the other's.
void AttentionGradOperation::addPart(const Group &group,
                                     const GradQueries *queries, int64_t part,
                                     const KeySums &sums,
                                     const GradScratch &scratch, float *dq,
                                     int thread) {
  std::fill_n(dq, group.count * dqSize(), 0.0f);
  BlockRange seen = blocksOf(part, group, queries);
  for (int64_t block = seen.first; block < seen.end; block += parts()) {
    GradKeys keys{};
    for (int64_t i = 0; i < group.count; ++i) {
      if (!shape.sees(queries[i].block, block))
        continue;
      if (!keys.rows)
        keys = products.keys(arena, queries[i], group.head, block, scratch,
                             thread);
      products.add(arena, queries[i], keys, group.head, block,
                   {sums.dk(block), sums.dv(block), dq + i * dqSize()}, scratch,
                   thread);
    }
  }
}

void AttentionGradOperation::roundQueries(const Group &group, int64_t index,
                                          const float *dq) const {
  int64_t block = group.firstBlock + index;
  auto *round =
      ops.dq.tensor.dtype == DType::bf16 ? kernels.roundBf16 : kernels.roundF32;
  round(dq, shape.paddedD(), nullptr, shape.queries.lengthAt(block), shape.d,
        ops.dq.at(arena, group.sample, block * shape.queries.block, group.head),
        ops.dq.ld());
}

} // namespace

OperationOr make(const plan::AttentionGrad &op, const ProgramOnRank &program) {
  AttentionShape shape;
  MESHWORK_ASSIGN_OR_RETURN(
      shape, attentionShapeOf(program, op.q(), op.k(), *op.part()));
  GradOperands ops;
  struct Wanted {
    HeadTensor &to;
    uint32_t view;
    const char *name;
    Role role = Role::operand;
  };
  for (const Wanted &wanted :
       {Wanted{ops.q, op.q(), "q"}, Wanted{ops.out, op.out(), "out"},
        Wanted{ops.dout, op.dout(), "dout"},
        Wanted{ops.dq, op.dq(), "dq", Role::result}})
    MESHWORK_ASSIGN_OR_RETURN(
        wanted.to,
        queryTensorOf(program, wanted.view, shape, wanted.name, wanted.role));
  for (const Wanted &wanted :
       {Wanted{ops.k, op.k(), "k"}, Wanted{ops.v, op.v(), "v"},
        Wanted{ops.dk, op.dk(), "dk", Role::result},
        Wanted{ops.dv, op.dv(), "dv", Role::result}})
    MESHWORK_ASSIGN_OR_RETURN(
        wanted.to,
        keyTensorOf(program, wanted.view, shape, wanted.name, wanted.role));
  MESHWORK_ASSIGN_OR_RETURN(ops.lse, rowTensorOf(program, op.lse(), shape));
  auto grad = std::make_unique<AttentionGradOperation>(std::move(shape),
                                                       std::move(ops));
  MESHWORK_RETURN_IF_ERROR(grad->describe());
  return grad;
}

} // namespace meshwork::runtime::cpu
