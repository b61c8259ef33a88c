// Attention by cuDNN where that was asked for and can be, else by the plan's
// kernels.
#include "absl/strings/str_cat.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/StatusMacros.h"
#include "runtime/device/cuda/AttentionGraph.h"
#include "runtime/device/cuda/Dnn.h"
#include "runtime/device/cuda/OperationKinds.h"

namespace meshwork::runtime::cuda {
namespace {

/// What the engines are told of every tensor in memory; they do not look.
constexpr int64_t alignment = 16;

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
  Maker(const Op &op, const OperationContext &context)
      : op(op), context(context) {}

  /// unimplemented tells why the plan's kernels must do it.
  OperationOr make() {
    MESHWORK_RETURN_IF_ERROR(checkOptions());
    AttentionProblem problem;
    problem.scale = op.scale();
    problem.causal = op.causal();
    problem.window = op.window();
    problem.documents = hasDocuments();
    MESHWORK_RETURN_IF_ERROR(describe(problem));
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

private:
  static constexpr bool isGrad = std::is_same_v<Op, plan::AttentionGrad>;

  const ViewInfo &view(uint32_t number) const {
    return context.program.views[number];
  }
  DevicePtr at(uint32_t number) const {
    return context.arena + context.program.places[number];
  }

  bool hasDocuments() const { return op.documents() != plan::noView; }

  absl::Status checkOptions() const {
    if (op.dropout())
      return absl::UnimplementedError(
          "dropout, whose random numbers cuDNN would draw otherwise");
    if (hasDocuments() && at(op.documents()) % alignment != 0)
      return absl::UnimplementedError(absl::StrCat(
          "documents begin at no multiple of ", alignment, " bytes"));
    if (op.positions() != plan::noView)
      return absl::UnimplementedError(
          "a part of a sequence's queries, for which there is no graph here");
    if (!view(op.lse()).contiguous)
      return absl::UnimplementedError("lse has gaps");
    if constexpr (isGrad)
      if (!op.unique())
        return absl::UnimplementedError(
            "other ranks compute the same gradient, and cuDNN adds in no fixed "
            "order: copies of weights would drift apart");
    return absl::OkStatus();
  }

  /// [batch, sequence, heads, d] as cuDNN sees it.
  absl::Status describe(uint32_t number, const char *role,
                        AttentionTensor &tensor) const {
    const ViewInfo &of = view(number);
    if (of.dtype != plan::DType::bf16)
      return absl::UnimplementedError(absl::StrCat(
          role, " is ", plan::EnumNameDType(of.dtype), ", expected bf16"));
    constexpr size_t order[] = {0, 2, 1, 3};
    bool isAligned = at(number) % alignment == 0 && of.strides[3] == 1;
    for (size_t i = 0; i < 4; ++i) {
      tensor.dims[i] = of.shape[order[i]];
      tensor.strides[i] = of.strides[order[i]];
      isAligned &= i == 3 || tensor.strides[i] * 2 % alignment == 0;
    }
    if (isAligned && tensor.dims[3] * 2 % alignment == 0)
      return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat(
        role, " is ", runtime::describe(of),
        ", expected dense rows at multiples of ", alignment, " bytes"));
  }

  absl::Status describe(AttentionProblem &problem) const {
    MESHWORK_RETURN_IF_ERROR(describe(op.q(), "q", problem.q));
    MESHWORK_RETURN_IF_ERROR(describe(op.k(), "k", problem.k));
    MESHWORK_RETURN_IF_ERROR(describe(op.v(), "v", problem.v));
    MESHWORK_RETURN_IF_ERROR(describe(op.out(), "out", problem.out));
    if constexpr (isGrad) {
      MESHWORK_RETURN_IF_ERROR(describe(op.dout(), "dout", problem.dout));
      MESHWORK_RETURN_IF_ERROR(describe(op.dq(), "dq", problem.dq));
      MESHWORK_RETURN_IF_ERROR(describe(op.dk(), "dk", problem.dk));
      MESHWORK_RETURN_IF_ERROR(describe(op.dv(), "dv", problem.dv));
    }
    return absl::OkStatus();
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
    if (hasDocuments())
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

  const Op &op;
  const OperationContext &context;
  uint64_t end = 0;
};

OperationOr byLibrary(const plan::Instruction &instruction,
                      const OperationContext &context) {
  if (const plan::Attention *op = instruction.op_as_Attention())
    return Maker(*op, context).make();
  return Maker(*instruction.op_as_AttentionGrad(), context).make();
}
} // namespace

OperationOr makeAttention(const plan::Instruction &instruction,
                          const OperationContext &context) {
  if (!context.dnn)
    return makeKernels(instruction, context);
  OperationOr made = byLibrary(instruction, context);
  if (made.ok()) {
    context.dnn->notes.runs();
    return made;
  }
  if (made.status().code() != absl::StatusCode::kUnimplemented)
    return made;
  context.dnn->notes.leaves(instruction.name()->str(),
                            std::string(made.status().message()));
  return makeKernels(instruction, context);
}

} // namespace meshwork::runtime::cuda
