#include "passes/verify/Instructions.h"

#include "passes/interpreter/Evaluate.h"
#include "runtime/machine/StepState.h"

namespace meshwork::verify {
using interpreter::Tensor;

namespace {
/// The views of one instruction, where `rank` has them now.
class RankViews : public interpreter::Views {
public:
  RankViews(RankState &rank, bool sets, const KernelFunctions &kernels)
      : rank(rank), state{sets}, kernels(kernels) {}

  Tensor read(uint32_t view) override {
    if (problem.ok()) {
      absl::StatusOr<Tensor> values = rank.read(rank.view(view));
      if (values.ok())
        return *values;
      problem = values.status();
    }
    return zeros(view);
  }
  void write(uint32_t view, const Tensor &values) override {
    if (problem.ok())
      problem = rank.write(rank.view(view), values);
  }
  void copy(uint32_t from, uint32_t to) override {
    if (problem.ok())
      problem = rank.copy(rank.view(from), rank.view(to));
  }
  Tensor zeros(uint32_t view) const override {
    auto shape = rank.view(view).info->shape;
    return Tensor(std::vector<int64_t>(shape.begin(), shape.end()));
  }
  plan::DType typeOf(uint32_t view) const override {
    return rank.view(view).info->dtype;
  }
  bool adds(plan::Accumulate mode) const override {
    return runtime::accumulates(mode, state);
  }
  mlir::func::FuncOp kernel(uint32_t number) const override {
    return kernels[number];
  }
  bool failed() const override { return !problem.ok(); }
  void fail(const char *why) override {
    problem.Update(absl::InternalError(why));
  }
  const absl::Status &status() const { return problem; }

private:
  RankState &rank;
  runtime::StepState state;
  const KernelFunctions &kernels;
  absl::Status problem;
};
} // namespace

absl::Status runInstruction(const plan::Instruction &instruction, bool sets,
                            const KernelFunctions &kernels, RankState &rank) {
  RankViews views(rank, sets, kernels);
  if (!interpreter::Evaluators::all().run(instruction, views))
    return absl::InternalError("is no instruction of one rank");
  return views.status();
}

} // namespace meshwork::verify
