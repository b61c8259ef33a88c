// Attention, backward: probabilities are computed again from lse, block by
// block. dk and dv of one sample and key head sum over its query heads and
// their blocks in order, each key block on one thread. A query's dq sums in
// *parts*: part p has key blocks p, p + parts, p + 2 parts, ... in order, and
// the parts are added in order. So a sample and key head can be one thread's
// task, or the parts can be tasks of many threads, with the same bits.
#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/AttentionGradProducts.h"

namespace meshwork::runtime::cpu {
namespace {

/// As many threads as can share one sample and key head.
constexpr int64_t maxParts = 16;
/// Query blocks between two meetings of such threads: with more the parts'
/// sums take more memory, with fewer the threads wait longer for each other.
constexpr int64_t blocksTogether = 4;

struct TaskScratch {
  GradScratch block;
  float *dq, *part; // of a query block
  float *dk,
      *dv; // f32 sums of the task, [sequence, d], but of results that are such
  float *shared; // sums of parts of blocksTogether query blocks
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
  int64_t queriesTogether() const {
    return std::min(blocksTogether, shape.queries.count());
  }
  int64_t dqSize() const { return shape.queries.block * shape.d; }
  TaskScratch carve(Carver &carver) const;
  TaskScratch scratchOf(int thread) const;
  KeySums sumsOf(const TaskScratch &scratch, int64_t sample,
                 int64_t kvHead) const;
  float *sharedPart(int64_t part, int64_t index) const;

  void runAlone(int64_t sample, int64_t kvHead, int thread);
  void runTogether(int64_t sample, int64_t kvHead);
  void runQueries(const TaskScratch &scratch, const KeySums &sums,
                  int64_t sample, int64_t head, int64_t queryBlock, int thread);
  void runQueriesTogether(const KeySums &sums, int64_t sample, int64_t head,
                          int64_t firstBlock, int64_t count);
  bool addPart(const GradQueries &queries, int64_t head, int64_t part,
               const KeySums &sums, const TaskScratch &scratch, float *dq,
               int thread);
  void add(const float *from, float *to) const;
  void roundQueries(const float *dq, int64_t sample, int64_t head,
                    int64_t queryBlock) const;
  void clear(const KeySums &sums, BlockRange range) const;
  void roundKeys(const HeadTensor &to, const std::byte *sums, int64_t sample,
                 int64_t kvHead, BlockRange range) const;

  AttentionShape shape;
  GradOperands ops;
  GradProducts products;
  const AttentionKernels &kernels = attentionKernels();
};

TaskScratch AttentionGradOperation::carve(Carver &carver) const {
  TaskScratch scratch{};
  scratch.block = products.carve(carver);
  scratch.dq = carver.take<float>(dqSize());
  scratch.part = carver.take<float>(dqSize());
  if (sumsInScratch(ops.dk, shape.d))
    scratch.dk = carver.take<float>(shape.sequence * shape.d);
  if (sumsInScratch(ops.dv, shape.d))
    scratch.dv = carver.take<float>(shape.sequence * shape.d);
  if (parts() == 1) // never shared
    return scratch;
  // Two threads share at least; each holds the sums of its parts.
  scratch.shared =
      carver.take<float>(ceilDiv(parts(), 2) * queriesTogether() * dqSize());
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
      runAlone(task / shape.kvHeads, task % shape.kvHeads, thread);
  });
  for (int64_t task = alone; task < tasks; ++task)
    runTogether(task / shape.kvHeads, task % shape.kvHeads);
}

KeySums AttentionGradOperation::sumsOf(const TaskScratch &scratch,
                                       int64_t sample, int64_t kvHead) const {
  auto at = [&](const HeadTensor &result, float *own) {
    return sumsInScratch(result, shape.d) ? reinterpret_cast<std::byte *>(own)
                                          : result.at(arena, sample, 0, kvHead);
  };
  return {at(ops.dk, scratch.dk), at(ops.dv, scratch.dv)};
}

void AttentionGradOperation::runAlone(int64_t sample, int64_t kvHead,
                                      int thread) {
  TaskScratch scratch = scratchOf(thread);
  KeySums sums = sumsOf(scratch, sample, kvHead);
  BlockRange all{0, shape.keys.count()};
  clear(sums, all);
  for (int64_t h = 0; h < shape.groupSize(); ++h)
    for (int64_t block = 0; block < shape.queries.count(); ++block)
      runQueries(scratch, sums, sample, kvHead * shape.groupSize() + h, block,
                 thread);
  roundKeys(ops.dk, sums.dk, sample, kvHead, all);
  roundKeys(ops.dv, sums.dv, sample, kvHead, all);
}

void AttentionGradOperation::runTogether(int64_t sample, int64_t kvHead) {
  KeySums sums = sumsOf(scratchOf(0), sample, kvHead);
  team->parallelFor(shape.keys.count(), [&](int64_t begin, int64_t end, int) {
    clear(sums, {begin, end});
  });
  int64_t blocks = shape.queries.count();
  for (int64_t h = 0; h < shape.groupSize(); ++h)
    for (int64_t block = 0; block < blocks; block += queriesTogether())
      runQueriesTogether(sums, sample, kvHead * shape.groupSize() + h, block,
                         std::min(queriesTogether(), blocks - block));
  team->parallelFor(shape.keys.count(), [&](int64_t begin, int64_t end, int) {
    roundKeys(ops.dk, sums.dk, sample, kvHead, {begin, end});
    roundKeys(ops.dv, sums.dv, sample, kvHead, {begin, end});
  });
}

void AttentionGradOperation::runQueries(const TaskScratch &scratch,
                                        const KeySums &sums, int64_t sample,
                                        int64_t head, int64_t queryBlock,
                                        int thread) {
  GradQueries queries =
      products.prepare(arena, sample, head, queryBlock, scratch.block);
  std::fill_n(scratch.dq, dqSize(), 0.0f);
  for (int64_t part = 0; part < parts(); ++part)
    if (addPart(queries, head, part, sums, scratch, scratch.part, thread))
      add(scratch.part, scratch.dq);
  roundQueries(scratch.dq, sample, head, queryBlock);
}

/// Thread t has the parts t, t + threads, ..., so that each has as many blocks
/// of a causal row as the others, or one more.
void AttentionGradOperation::runQueriesTogether(const KeySums &sums,
                                                int64_t sample, int64_t head,
                                                int64_t firstBlock,
                                                int64_t count) {
  int threads = team->size();
  team->parallelFor(threads, [&](int64_t, int64_t, int thread) {
    TaskScratch scratch = scratchOf(thread);
    for (int64_t i = 0; i < count && thread < parts(); ++i) {
      GradQueries queries =
          products.prepare(arena, sample, head, firstBlock + i, scratch.block);
      for (int64_t part = thread; part < parts(); part += threads)
        addPart(queries, head, part, sums, scratch, sharedPart(part, i),
                thread);
    }
  });
  team->parallelFor(count, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t part = 1; part < parts(); ++part)
        add(sharedPart(part, i), sharedPart(0, i));
      roundQueries(sharedPart(0, i), sample, head, firstBlock + i);
    }
  });
}

/// In the workspace of the thread that computes the part.
float *AttentionGradOperation::sharedPart(int64_t part, int64_t index) const {
  int threads = team->size();
  return scratchOf(static_cast<int>(part % threads)).shared +
         (part / threads * queriesTogether() + index) * dqSize();
}

/// Writes the part's sums to `dq`; whether it has any key that is seen.
bool AttentionGradOperation::addPart(const GradQueries &queries, int64_t head,
                                     int64_t part, const KeySums &sums,
                                     const TaskScratch &scratch, float *dq,
                                     int thread) {
  bool any = false;
  std::fill_n(dq, dqSize(), 0.0f);
  int64_t first = queries.block.keyBlocks.first, step = parts();
  for (int64_t block = first + ((part - first) % step + step) % step;
       block < queries.block.keyBlocks.end; block += step) {
    if (!shape.sees(queries.block, block))
      continue;
    products.add(arena, queries, head, block, sums, dq, scratch.block, thread);
    any = true;
  }
  return any;
}

void AttentionGradOperation::add(const float *from, float *to) const {
  for (int64_t i = 0; i < dqSize(); ++i)
    to[i] += from[i];
}

void AttentionGradOperation::roundQueries(const float *dq, int64_t sample,
                                          int64_t head,
                                          int64_t queryBlock) const {
  auto *round =
      ops.dq.tensor.dtype == DType::bf16 ? kernels.roundBf16 : kernels.roundF32;
  round(dq, shape.d, nullptr, shape.queries.lengthAt(queryBlock), shape.d,
        ops.dq.at(arena, sample, queryBlock * shape.queries.block, head),
        ops.dq.ld());
}

void AttentionGradOperation::clear(const KeySums &sums,
                                   BlockRange range) const {
  int64_t first = range.first * shape.keys.block;
  int64_t end = std::min(range.end * shape.keys.block, shape.sequence);
  int64_t rowBytes = shape.d * 4;
  std::memset(sums.dk + first * rowBytes, 0, (end - first) * rowBytes);
  std::memset(sums.dv + first * rowBytes, 0, (end - first) * rowBytes);
}

void AttentionGradOperation::roundKeys(const HeadTensor &to,
                                       const std::byte *sums, int64_t sample,
                                       int64_t kvHead, BlockRange range) const {
  if (!sumsInScratch(to, shape.d))
    return;
  int64_t first = range.first * shape.keys.block;
  int64_t end = std::min(range.end * shape.keys.block, shape.sequence);
  auto *round =
      to.tensor.dtype == DType::bf16 ? kernels.roundBf16 : kernels.roundF32;
  round(reinterpret_cast<const float *>(sums) + first * shape.d, shape.d,
        nullptr, end - first, shape.d, to.at(arena, sample, first, kvHead),
        to.ld());
}

} // namespace

OperationOr make(const plan::AttentionGrad &op, const ProgramOnRank &program) {
  AttentionShape shape;
  MESHWORK_ASSIGN_OR_RETURN(
      shape, attentionShapeOf(program, op.q(), op.k(),
                              {op.scale(), op.causal(), op.window(),
                               op.dropout(), op.documents(), op.positions(),
                               op.key_positions(), op.total_keys()}));
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
