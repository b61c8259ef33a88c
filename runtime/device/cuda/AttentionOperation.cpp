// Attention by those that were asked for, or by the fastest of them, where they
// can; else by the plan's kernels.
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/device/cuda/AttentionGraph.h"
#include "runtime/device/cuda/AttentionRequest.h"
#include "runtime/device/cuda/Dnn.h"
#include "runtime/device/cuda/DnnAttention.h"
#include "runtime/device/cuda/OperationKinds.h"
#include "runtime/device/cuda/Tuned.h"
#include "runtime/device/cuda/WgmmaAttention.h"
#include <algorithm>

namespace meshwork::runtime::cuda {
namespace {

/// Who may run an instruction, besides the plan's kernels.
struct Other {
  const char *name; // of a choice on disk
  LibraryNotes *notes;
  absl::Status can; // unimplemented: why not
};
constexpr const char *ours = "kernels", *cudnn = "cudnn", *wgmma = "wgmma",
                     *refused = "refused";

/// One instruction; `Op` is plan::Attention or plan::AttentionGrad.
template <typename Op> class Maker {
public:
  Maker(const Op &op, const plan::Instruction &instruction,
        const OperationContext &context)
      : op(op), instruction(instruction), context(context),
        read(problemOf(op, context)) {}

  OperationOr make() {
    std::vector<Other> others = whoElse();
    if (!context.choosesAttention)
      return makeFirst(others);
    std::string choice = ours;
    if (std::any_of(others.begin(), others.end(),
                    [](const Other &one) { return one.can.ok(); }))
      MESHWORK_ASSIGN_OR_RETURN(choice, choose(others));
    for (Other &one : others)
      if (one.can.ok() && choice != one.name)
        one.can = absl::UnimplementedError(
            choice == refused ? "it did not run when it was to be timed"
            : choice == ours  ? "faster here"
                              : absl::StrCat(choice, " is faster here"));
    return makeFirst(others);
  }

private:
  static constexpr bool isGrad = std::is_same_v<Op, plan::AttentionGrad>;

  std::vector<Other> whoElse() const {
    std::vector<Other> others;
    if (context.dnn)
      others.push_back({cudnn, context.dnnNotes, canDnn()});
    if (context.wgmma)
      others.push_back(
          {wgmma, context.wgmmaNotes,
           read.ok() ? WgmmaKernels::check(*read) : read.status()});
    return others;
  }
  absl::Status canDnn() const {
    MESHWORK_RETURN_IF_ERROR(read.status());
    // A time without documents would say nothing of one with them.
    if (context.choosesAttention && read->documents)
      return absl::UnimplementedError(
          "documents, whose hidden blocks cuDNN computes too; "
          "--cudnn-attention has it do so");
    MESHWORK_RETURN_IF_ERROR(checkGraph(*read));
    return checkForDnn(op, context);
  }

  OperationOr makeFirst(const std::vector<Other> &others) const {
    std::unique_ptr<Operation> first;
    for (const Other &one : others) {
      if (first && one.can.ok())
        continue; // Nobody asks it.
      OperationOr made = one.can.ok() ? makeBy(one.name) : one.can;
      if (!made.ok() && !absl::IsUnimplemented(made.status()))
        return made;
      note(one, made.status());
      if (made.ok())
        first = *std::move(made);
    }
    if (first)
      return first;
    return makeKernels(instruction, context);
  }
  void note(const Other &one, const absl::Status &ran) const {
    if (!one.notes)
      return;
    if (ran.ok())
      one.notes->runs();
    else
      one.notes->leaves(instruction.name()->str(), std::string(ran.message()));
  }

  OperationOr makeBy(absl::string_view name) const {
    if (name == ours)
      return makeKernels(instruction, context);
    if (name == cudnn)
      return makeDnnAttention(*context.dnn, *read, isGrad, places(),
                              context.stream);
    return isGrad
               ? context.wgmma->gradient(*read, places(), context.workspace,
                                         context.workspaceBytes, context.stream)
               : context.wgmma->forward(*read, places(), context.stream);
  }

  absl::StatusOr<std::string> choose(const std::vector<Other> &others) const {
    auto isChoice = [&](absl::string_view text) {
      return text == ours || text == refused ||
             std::any_of(others.begin(), others.end(), [&](const Other &one) {
               return one.can.ok() && text == one.name;
             });
    };
    return Tuned::ofProcess().get(key(others), isChoice,
                                  [&] { return fastest(others); });
  }

  /// All sides.
  std::string key(const std::vector<Other> &others) const {
    std::string text = keyOf(*read, isGrad);
    for (const Other &one : others)
      if (one.can.ok())
        absl::StrAppend(&text, " ", one.name);
    if (context.dnn)
      absl::StrAppend(&text, " ", context.dnn->version());
    return absl::StrCat(text, " code ", context.gpu.codeName());
  }

  absl::StatusOr<std::string> fastest(const std::vector<Other> &others) const {
    std::vector<const char *> names{ours};
    std::vector<std::unique_ptr<Operation>> candidates(1);
    MESHWORK_ASSIGN_OR_RETURN(candidates[0], makeBy(ours));
    bool allRan = true;
    for (const Other &one : others) {
      // Nobody asked for it: what it lacks, memory too, ends no run. The other
      // ranks follow.
      OperationOr made = one.can.ok() ? makeBy(one.name) : one.can;
      allRan &= made.ok() || !one.can.ok();
      if (!made.ok())
        continue;
      names.push_back(one.name);
      candidates.push_back(*std::move(made));
    }
    MESHWORK_RETURN_IF_ERROR(clearDocuments());
    size_t best = 0;
    MESHWORK_ASSIGN_OR_RETURN(
        best, fastestOf(context.gpu.driver(), context.stream, candidates.size(),
                        [&](size_t i) {
                          return candidates[i]->enqueue(context.stream, false);
                        }));
    return std::string(best == 0 && !allRan ? refused : names[best]);
  }

  /// Nothing is in memory yet that tells where documents begin: one in each
  /// sequence, then.
  absl::Status clearDocuments() const {
    if (!read->documents)
      return absl::OkStatus();
    uint64_t bytes = context.program.views[op.part()->documents()].elements * 4;
    return context.gpu.driver().check(
        context.gpu.driver().fillBytes(at(op.part()->documents()), 0, bytes,
                                       context.stream),
        "clearing documents");
  }

  DevicePtr at(uint32_t number) const {
    return number == plan::noView
               ? 0
               : context.arena + context.program.places[number];
  }
  AttentionPlaces places() const {
    AttentionPlaces places{};
    places.q = at(op.q());
    places.k = at(op.k());
    places.v = at(op.v());
    places.out = at(op.out());
    places.lse = at(op.lse());
    places.documents = at(op.part()->documents());
    if constexpr (isGrad) {
      places.dout = at(op.dout());
      places.dq = at(op.dq());
      places.dk = at(op.dk());
      places.dv = at(op.dv());
    }
    return places;
  }

  const Op &op;
  const plan::Instruction &instruction;
  const OperationContext &context;
  absl::StatusOr<AttentionProblem>
      read; // unimplemented: only the plan's kernels
};
} // namespace

OperationOr makeAttention(const plan::Instruction &instruction,
                          const OperationContext &context) {
  if (!context.dnn && !context.wgmma)
    return makeKernels(instruction, context);
  if (const plan::Attention *op = instruction.op_as_Attention())
    return Maker(*op, instruction, context).make();
  return Maker(*instruction.op_as_AttentionGrad(), instruction, context).make();
}

} // namespace meshwork::runtime::cuda
