// Generated kernels: the arguments are fixed, so a run is one loop.
#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/Operation.h"

namespace meshwork::runtime::cpu {
namespace {

class LaunchOperation final : public Operation {
public:
  LaunchOperation(uint32_t kernel, int64_t items, std::vector<Tensor> tensors)
      : kernel(kernel), items(items), tensors(std::move(tensors)) {}

  absl::Status bind(const PrepareContext &context) override {
    MESHWORK_RETURN_IF_ERROR(Operation::bind(context));
    function = context.kernels.kernel(kernel);
    if (!function)
      return absl::InvalidArgumentError(
          absl::StrCat("kernel ", kernel, " does not exist"));
    for (const Tensor &tensor : tensors)
      args.push_back(tensor.in(context.arena));
    return absl::OkStatus();
  }

  void run(const StepState &) override {
    team->parallelFor(items, [&](int64_t begin, int64_t end, int) {
      function(args.data(), begin, end);
    });
  }

private:
  uint32_t kernel;
  int64_t items;
  std::vector<Tensor> tensors;
  KernelFn function = nullptr;
  std::vector<void *> args;
};

} // namespace

OperationOr make(const plan::Launch &op, const ProgramOnRank &program) {
  if (op.items() > static_cast<uint64_t>(INT64_MAX))
    return absl::InvalidArgumentError(
        absl::StrCat("has ", op.items(), " items, expected at most 2^63 - 1"));
  std::vector<Tensor> tensors;
  uint32_t count = op.args() ? op.args()->size() : 0;
  for (uint32_t i = 0; i < count; ++i) {
    std::string role = absl::StrCat("argument ", i);
    tensors.emplace_back();
    MESHWORK_ASSIGN_OR_RETURN(
        tensors.back(), tensorOf(program, op.args()->Get(i), role.c_str()));
  }
  return std::make_unique<LaunchOperation>(
      op.kernel(), static_cast<int64_t>(op.items()), std::move(tensors));
}

} // namespace meshwork::runtime::cpu
