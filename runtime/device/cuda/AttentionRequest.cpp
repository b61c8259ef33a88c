#include "runtime/device/cuda/AttentionRequest.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Plan/Frame.h"

namespace meshwork::runtime::cuda {
namespace {
template <typename Op> class Reader {
public:
  Reader(const Op &op, const OperationContext &context)
      : op(op), part(*op.part()), context(context) {}

  absl::StatusOr<AttentionProblem> read() const {
    MESHWORK_RETURN_IF_ERROR(checkOptions());
    AttentionProblem problem;
    problem.scale = part.scale();
    problem.causal = part.causal();
    problem.window = part.window();
    problem.documents = part.documents() != plan::noView;
    MESHWORK_RETURN_IF_ERROR(readRuns(part.positions(), problem.queries));
    MESHWORK_RETURN_IF_ERROR(readRuns(part.key_positions(), problem.keys));
    problem.totalKeys = part.total_keys();
    for (int dim : {0, 1})
      problem.lseStrides[dim] = view(op.lse()).strides[dim];
    MESHWORK_RETURN_IF_ERROR(describe(problem));
    return problem;
  }

private:
  static constexpr bool isGrad = std::is_same_v<Op, plan::AttentionGrad>;

  const plan::ViewInfo &view(uint32_t number) const {
    return context.program.views[number];
  }
  DevicePtr at(uint32_t number) const {
    return context.arena + context.program.places[number];
  }

  absl::Status checkOptions() const {
    if (part.dropout())
      return absl::UnimplementedError(
          "dropout, whose random numbers only the plan's kernels draw");
    if (part.cap() != 0)
      return absl::UnimplementedError(
          "a cap of scores, which only the plan's kernels know");
    if (view(op.lse()).strides[2] != 1)
      return absl::UnimplementedError("rows of lse have gaps");
    return absl::OkStatus();
  }

  /// Which tokens the rows are that a table of positions stands for.
  absl::Status readRuns(uint32_t table,
                        std::vector<layout::Range> &runs) const {
    if (table == plan::noView)
      return absl::OkStatus();
    const RankProgram &program = context.program;
    for (const plan::Input *input : plan::orEmpty(program.program.inputs()))
      if (input->view() == table &&
          input->kind() == plan::InputKind::positions) {
        runs =
            layout::ranges(input->size(), program.cutsOf(*input, context.mesh));
        return absl::OkStatus();
      }
    return absl::UnimplementedError("positions that instructions have made");
  }

  /// [batch, rows, heads, d], heads outside.
  absl::Status describe(uint32_t number, const char *role,
                        AttentionTensor &tensor, bool isResult = false) const {
    const plan::ViewInfo &of = view(number);
    tensor.isF32 = isResult && of.dtype == plan::DType::f32;
    if (of.dtype != plan::DType::bf16 && !tensor.isF32)
      return absl::UnimplementedError(absl::StrCat(
          role, " is ", plan::EnumNameDType(of.dtype), ", expected bf16"));
    constexpr size_t order[] = {0, 2, 1, 3};
    const int64_t bytes = tensor.isF32 ? 4 : 2;
    bool isAligned = at(number) % attentionAlignment == 0 && of.strides[3] == 1;
    for (size_t i = 0; i < 4; ++i) {
      tensor.dims[i] = of.shape[order[i]];
      tensor.strides[i] = of.strides[order[i]];
      isAligned &=
          i == 3 || tensor.strides[i] * bytes % attentionAlignment == 0;
    }
    if (isAligned && tensor.dims[3] * 2 % attentionAlignment == 0)
      return absl::OkStatus();
    return absl::UnimplementedError(
        absl::StrCat(role, " is ", plan::describe(of),
                     ", expected dense rows at multiples of ",
                     attentionAlignment, " bytes"));
  }

  absl::Status describe(AttentionProblem &problem) const {
    MESHWORK_RETURN_IF_ERROR(describe(op.q(), "q", problem.q));
    MESHWORK_RETURN_IF_ERROR(describe(op.k(), "k", problem.k));
    MESHWORK_RETURN_IF_ERROR(describe(op.v(), "v", problem.v));
    MESHWORK_RETURN_IF_ERROR(describe(op.out(), "out", problem.out, !isGrad));
    if constexpr (isGrad) {
      MESHWORK_RETURN_IF_ERROR(describe(op.dout(), "dout", problem.dout));
      MESHWORK_RETURN_IF_ERROR(describe(op.dq(), "dq", problem.dq, true));
      MESHWORK_RETURN_IF_ERROR(describe(op.dk(), "dk", problem.dk, true));
      MESHWORK_RETURN_IF_ERROR(describe(op.dv(), "dv", problem.dv, true));
    }
    return absl::OkStatus();
  }

  const Op &op;
  const plan::AttentionPart &part;
  const OperationContext &context;
};
} // namespace

template <typename Op>
absl::StatusOr<AttentionProblem> problemOf(const Op &op,
                                           const OperationContext &context) {
  return Reader(op, context).read();
}
template absl::StatusOr<AttentionProblem> problemOf(const plan::Attention &,
                                                    const OperationContext &);
template absl::StatusOr<AttentionProblem> problemOf(const plan::AttentionGrad &,
                                                    const OperationContext &);

template <typename Op>
absl::Status checkForDnn(const Op &op, const OperationContext &context) {
  if (uint32_t documents = op.part()->documents();
      documents != plan::noView &&
      (context.arena + context.program.places[documents]) %
              attentionAlignment !=
          0)
    return absl::UnimplementedError(absl::StrCat(
        "documents begin at no multiple of ", attentionAlignment, " bytes"));
  if (!context.program.views[op.lse()].contiguous)
    return absl::UnimplementedError("lse has gaps");
  if constexpr (std::is_same_v<Op, plan::AttentionGrad>)
    if (!op.unique())
      return absl::UnimplementedError(
          "other ranks compute the same gradient, and cuDNN adds in no fixed "
          "order: copies of weights would drift apart");
  return absl::OkStatus();
}
template absl::Status checkForDnn(const plan::Attention &,
                                  const OperationContext &);
template absl::Status checkForDnn(const plan::AttentionGrad &,
                                  const OperationContext &);

std::string keyOf(const AttentionProblem &problem, bool isGrad) {
  std::string key =
      absl::StrCat(isGrad ? "attention gradient" : "attention",
                   problem.causal ? " causal" : "", " window", problem.window);
  std::vector<const AttentionTensor *> tensors{&problem.q, &problem.k,
                                               &problem.v, &problem.out};
  if (isGrad)
    tensors.insert(tensors.end(),
                   {&problem.dout, &problem.dq, &problem.dk, &problem.dv});
  for (const AttentionTensor *tensor : tensors)
    absl::StrAppend(&key, " ", absl::StrJoin(tensor->dims, "x"), "/",
                    absl::StrJoin(tensor->strides, "+"),
                    tensor->isF32 ? "f32" : "");
  for (const auto *runs : {&problem.queries, &problem.keys})
    for (const layout::Range &run : *runs)
      absl::StrAppend(&key, " ", run.begin, "+", run.count);
  return key;
}

} // namespace meshwork::runtime::cuda
