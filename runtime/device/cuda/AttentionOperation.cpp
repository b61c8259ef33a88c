// Attention by cuDNN where that was asked for or is faster, and can be; else by
// the plan's kernels.
#include "absl/strings/str_cat.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/StatusMacros.h"
#include "runtime/device/cuda/AttentionRequest.h"
#include "runtime/device/cuda/Dnn.h"
#include "runtime/device/cuda/OperationKinds.h"
#include "runtime/device/cuda/Tuned.h"

namespace meshwork::runtime::cuda {
namespace {

class DnnAttention : public Operation {
public:
  /// `sums` are tensors that lie in the workspace, behind the plan's own.
  DnnAttention(Dnn &dnn, const DnnPlan &plan, std::vector<DevicePtr> addresses,
               std::vector<std::pair<size_t, uint64_t>> sums)
      : dnn(dnn), plan(plan), addresses(std::move(addresses)),
        sums(std::move(sums)) {}

  absl::Status enqueue(Stream stream, bool) override {
    for (auto [tensor, offset] : sums)
      addresses[tensor] = dnn.workspace() + offset;
    return dnn.run(plan, addresses, dnn.workspace(), stream);
  }

private:
  Dnn &dnn;
  const DnnPlan &plan;
  std::vector<DevicePtr> addresses;
  std::vector<std::pair<size_t, uint64_t>> sums;
};

/// One instruction; `Op` is plan::Attention or plan::AttentionGrad.
template <typename Op> class Maker {
public:
  Maker(const Op &op, const plan::Instruction &instruction,
        const OperationContext &context)
      : op(op), instruction(instruction), context(context) {}

  /// unimplemented tells why the plan's kernels must do it.
  OperationOr make() {
    AttentionProblem problem;
    MESHWORK_ASSIGN_OR_RETURN(problem, problemOf(op, context));
    if (context.choosesAttention)
      MESHWORK_RETURN_IF_ERROR(expectFaster(problem));
    return byLibrary(problem);
  }

private:
  static constexpr bool isGrad = std::is_same_v<Op, plan::AttentionGrad>;

  DevicePtr at(uint32_t number) const {
    return context.arena + context.program.places[number];
  }

  OperationOr byLibrary(const AttentionProblem &problem) {
    AttentionGraph made = graphOf(problem);
    const DnnPlan *plan = nullptr;
    MESHWORK_ASSIGN_OR_RETURN(plan, context.dnn->plan(made.graph));
    std::vector<DevicePtr> addresses(made.graph.tensors.size());
    place(made, addresses);
    auto sums = layOut(made, *plan);
    MESHWORK_RETURN_IF_ERROR(context.dnn->reserve(end));
    auto operation = std::make_unique<DnnAttention>(
        *context.dnn, *plan, std::move(addresses), std::move(sums));
    // The library loads code when a graph first runs, which a capture cannot.
    MESHWORK_RETURN_IF_ERROR(operation->enqueue(context.stream, 0));
    return operation;
  }

  absl::Status expectFaster(const AttentionProblem &problem) {
    // Nothing is in memory yet that could tell where documents begin.
    if (problem.documents)
      return absl::UnimplementedError(
          "documents, whose hidden blocks cuDNN computes too; "
          "--cudnn-attention has it do so");
    auto isChoice = [](absl::string_view text) {
      return text == ours || text == theirs || text == refused;
    };
    absl::StatusOr<std::string> choice = Tuned::ofProcess().get(
        key(problem), isChoice, [&] { return faster(problem); });
    MESHWORK_RETURN_IF_ERROR(choice.status());
    if (*choice == theirs)
      return absl::OkStatus();
    return absl::UnimplementedError(
        *choice == ours ? "faster here"
                        : "cuDNN did not run it when it was to be timed");
  }

  /// Both sides: the library and the plan's kernels.
  std::string key(const AttentionProblem &problem) const {
    return absl::StrCat(keyOf(problem, isGrad), " cudnn ",
                        context.dnn->version(), " code ",
                        context.gpu.codeName());
  }

  absl::StatusOr<std::string> faster(const AttentionProblem &problem) {
    OperationOr library = byLibrary(problem);
    // Nobody asked for cuDNN: what it lacks, memory too, ends no run. The other
    // ranks follow.
    if (!library.ok())
      return std::string(refused);
    OperationOr kernels = makeKernels(instruction, context);
    MESHWORK_RETURN_IF_ERROR(kernels.status());
    Operation *both[] = {kernels->get(), library->get()};
    size_t best = 0;
    MESHWORK_ASSIGN_OR_RETURN(
        best, fastestOf(context.gpu.driver(), context.stream, 2, [&](size_t i) {
          return both[i]->enqueue(context.stream, /*sets=*/false);
        }));
    return std::string(best == 0 ? ours : theirs);
  }

  AttentionGraph graphOf(const AttentionProblem &problem) const {
    return isGrad ? attentionGradGraph(problem) : attentionGraph(problem);
  }

  void place(const AttentionGraph &made,
             std::vector<DevicePtr> &addresses) const {
    addresses[made.q] = at(op.q());
    addresses[made.k] = at(op.k());
    addresses[made.v] = at(op.v());
    addresses[made.out] = at(op.out());
    addresses[made.stats] = at(op.lse());
    if (op.documents() != plan::noView)
      addresses[made.documents] = at(op.documents());
    if constexpr (isGrad) {
      addresses[made.dout] = at(op.dout());
      addresses[made.dq] = at(op.dq());
      addresses[made.dk] = at(op.dk());
      addresses[made.dv] = at(op.dv());
    }
  }

  /// Where sums lie in the workspace, whose end is `end` then.
  std::vector<std::pair<size_t, uint64_t>> layOut(const AttentionGraph &made,
                                                  const DnnPlan &plan) {
    constexpr uint64_t unit = 256;
    auto padded = [](uint64_t bytes) {
      return (bytes + unit - 1) / unit * unit;
    };
    end = padded(static_cast<uint64_t>(plan.workspaceBytes()));
    std::vector<std::pair<size_t, uint64_t>> sums;
    if (!isGrad)
      return sums;
    for (size_t tensor : {made.rowSums, made.dqSums}) {
      sums.emplace_back(tensor, end);
      const Dims4 &dims = made.graph.tensors[tensor].dims;
      end +=
          padded(static_cast<uint64_t>(dims[0] * dims[1] * dims[2] * dims[3]) *
                 sizeof(float));
    }
    return sums;
  }

  static constexpr const char *ours = "kernels", *theirs = "cudnn",
                              *refused = "refused";
  const Op &op;
  const plan::Instruction &instruction;
  const OperationContext &context;
  uint64_t end = 0;
};

OperationOr byLibrary(const plan::Instruction &instruction,
                      const OperationContext &context) {
  if (const plan::Attention *op = instruction.op_as_Attention())
    return Maker(*op, instruction, context).make();
  return Maker(*instruction.op_as_AttentionGrad(), instruction, context).make();
}
} // namespace

OperationOr makeAttention(const plan::Instruction &instruction,
                          const OperationContext &context) {
  if (!context.dnn)
    return makeKernels(instruction, context);
  OperationOr made = byLibrary(instruction, context);
  if (made.ok() && context.attention)
    context.attention->runs();
  if (!absl::IsUnimplemented(made.status()))
    return made;
  if (context.attention)
    context.attention->leaves(instruction.name()->str(),
                              std::string(made.status().message()));
  return makeKernels(instruction, context);
}

} // namespace meshwork::runtime::cuda
