// A plan small enough to change by hand, complete enough to train.
//
// One parameter "wte" [256, 8]. loss = mean over the step's tokens and the 8
// columns of wte[token]; its gradient goes back through EmbeddingGrad, and
// weight += learning_rate * gradient (uphill, to need no negative number).
#pragma once

#include "meshwork/Plan/Plan.h"
#include <string>
#include <vector>

namespace meshwork::plan::test {

struct TinyOptions {
  uint32_t ranks = 1;
  uint32_t microbatches = 2;
};

// Indices of views, in the order in which tinyPlan makes them.
enum TinyView : uint32_t {
  weight,
  gradient,
  x,
  loss,
  tokens,
  targets,
  learningRate,
  bias1,
  bias2,
  random,
  xRow,
  ones,
  onesAsX,
  cos,
  sin,
  gradNorm,
  weightColumn,
  gradColumn,
  gradRow,
  rateCell,
  lossCell,
  gradNormCell
};

PlanT tinyPlan(const TinyOptions &options = {});

/// The same for GPUs, with a kernel for each instruction that needs one. Its
/// code is none that could run.
PlanT tinyGpuPlan(const TinyOptions &options = {});

using InstructionList = std::vector<std::unique_ptr<InstructionT>>;
/// The list of this kind of a tiny plan. `forward` does all of a microbatch.
InstructionList &listOf(ProgramT &program, ListKind kind);
inline InstructionList &onceOf(ProgramT &program) {
  return listOf(program, ListKind::once);
}
inline InstructionList &forwardOf(ProgramT &program) {
  return listOf(program, ListKind::forward);
}
inline InstructionList &updateOf(ProgramT &program) {
  return listOf(program, ListKind::update);
}
/// once, step, forward, backward, update.
void addLists(ProgramT &program);
/// step, then forward and backward of each microbatch, update.
void setActions(ProgramT &program, uint32_t microbatches);
/// The loss is known in front of this instruction of the update.
void setLossKnown(ProgramT &program, uint32_t instruction);
/// A program for each rank, over all axes.
void setPrograms(PlanT &plan, std::vector<uint32_t> numbers);

/// Frame and payload, as on disk.
std::vector<unsigned char> encode(const PlanT &plan);

/// The operation of an instruction.
template <typename Op> Op &opOf(InstructionT &instruction) {
  return *static_cast<Op *>(instruction.op.value);
}

/// Keeps a state of `parameter`, or another one under its name: whole on every
/// rank, or dim d split over dims[d]. Its role is what it is called, of other
/// names `optimizer`.
StateT &keep(ParameterT &parameter, const char *name, uint32_t view,
             std::vector<std::vector<uint32_t>> dims = {});
/// The state of that name, which is there.
StateT &stateOf(ParameterT &parameter, const std::string &name);
/// Keeps it no more.
void drop(ParameterT &parameter, const std::string &name);
/// One more axis, the innermost, which does not split the batch.
void addAxis(PlanT &plan, const char *name, uint32_t size);
/// A tensor in a buffer of its own that always lives; its view.
uint32_t addTensor(ProgramT &program, const char *name, BufferKind kind,
                   DType dtype, std::vector<int64_t> shape);
/// The input `documents`; its view.
uint32_t addDocuments(PlanT &plan);
/// i32 [1]: a rank's index along the first axis, as the begin of its part of a
/// dim with one element each.
uint32_t addRank(PlanT &plan);
/// As addTensor, in the host's memory.
uint32_t addOnHost(ProgramT &program, const char *name, BufferKind kind,
                   DType dtype, std::vector<int64_t> shape);
/// Gives "wte" a momentum: the update adds rate * gradient to it, and
/// rate * momentum to the weight. On the host it is fetched beside the
/// gradient's sum, on channel 1, and put back beside the weight's update, on
/// channel 2.
void addMomentum(PlanT &plan, bool onHost);
/// In each microbatch, as many of the first rows of x as a counted repeat has
/// turns become the largest that a rank has. The count is the largest rank's
/// number, of 4 at most; each turn has a channel bring a row, and another one
/// copy it. The gradient is that of x. forward[1] makes the count, forward[2]
/// is the repeat.
void addRounds(PlanT &plan);
/// The same with as many turns as the plan says, on no channel.
void addTurns(PlanT &plan, uint32_t turns);
WaitT waitFor(uint32_t channel, uint32_t count);
/// A row-major view of a buffer, `offset` bytes from its start.
uint32_t addView(ProgramT &program, uint32_t buffer, DType dtype,
                 std::vector<int64_t> shape, uint64_t offset = 0);
/// Moves a view by the index along `axes`.
void shift(ProgramT &program, uint32_t view, std::vector<uint32_t> axes,
           uint64_t bytes);
/// An instruction at `at` of a list.
template <typename Op>
InstructionT &insert(std::vector<std::unique_ptr<InstructionT>> &list,
                     size_t at, const char *name, Op op) {
  auto instruction = std::make_unique<InstructionT>();
  instruction->name = name;
  instruction->op.Set(std::move(op));
  return **list.insert(list.begin() + static_cast<std::ptrdiff_t>(at),
                       std::move(instruction));
}
std::unique_ptr<TransferT> transfer(uint32_t src, uint32_t dst, int32_t dim = 0,
                                    int32_t toDim = 0);

/// A path in the test's temporary folder.
std::string temporary(const std::string &name);
void writeFile(const std::string &path, const void *data, size_t bytes);
std::string readFile(const std::string &path);

/// encode(plan) in a file; its path.
std::string writePlan(const PlanT &plan, const std::string &name);
/// Text of `bytes` bytes, a function of nothing; its path.
std::string writeText(size_t bytes, const std::string &name);

} // namespace meshwork::plan::test
