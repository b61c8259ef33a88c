#include "passes/verify/RunPlan.h"

#include "lib/Plan/PlanFile.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Plan/Frame.h"
#include "passes/codegen/plan/PlanWriter.h"

using namespace mlir;
namespace meshwork::verify {
namespace {

KernelFunctions functionsOf(ModuleOp module, const plan::Plan &plan) {
  KernelFunctions functions;
  SymbolTable symbols(module);
  for (const plan::Kernel *kernel : plan::orEmpty(plan.kernels()))
    functions.push_back(
        symbols.lookup<func::FuncOp>(kernel->symbol()->string_view()));
  return functions;
}

/// The same plan with each buffer in bytes of its own.
std::vector<char> spread(const plan::Plan &plan) {
  constexpr uint64_t alignment = 64;
  std::unique_ptr<plan::PlanT> tables(plan.UnPack());
  for (auto &program : tables->programs) {
    program->arena_bytes = program->host_bytes = 0;
    for (auto &buffer : program->buffers) {
      uint64_t &end = buffer->space == plan::Space::host ? program->host_bytes
                                                         : program->arena_bytes;
      buffer->offset = end;
      end += (buffer->size_bytes + alignment - 1) / alignment * alignment;
    }
  }
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(plan::Plan::Pack(builder, tables.get()),
                 plan::PlanIdentifier());
  const auto *bytes =
      reinterpret_cast<const char *>(builder.GetBufferPointer());
  return {bytes, bytes + builder.GetSize()};
}

absl::StatusOr<Findings> runTables(const plan::Plan &plan,
                                   KernelFunctions kernels,
                                   const StepData &data,
                                   const StepEnd &expected, double tolerance) {
  auto machine = Machine::create(plan, std::move(kernels), data);
  MESHWORK_RETURN_IF_ERROR(machine.status());
  MESHWORK_RETURN_IF_ERROR(loadStates(plan, **machine));
  MESHWORK_RETURN_IF_ERROR((*machine)->runStep());
  return compare(plan, **machine, expected, tolerance);
}
} // namespace

FailureOr<Findings> runPlan(ModuleOp module, const spec::Spec &spec,
                            uint32_t vocabulary, const StepData &data,
                            const StepEnd &expected, Places places,
                            double tolerance) {
  FailureOr<std::vector<char>> file =
      codegen::planWithoutCode(module, spec, {"model", "", vocabulary, {}});
  if (failed(file))
    return failure();
  std::vector<char> payload(file->begin() + plan::frameBytes, file->end());
  KernelFunctions kernels = functionsOf(module, *plan::GetPlan(payload.data()));
  if (places == Places::apart)
    payload = spread(*plan::GetPlan(payload.data()));
  auto findings = runTables(*plan::GetPlan(payload.data()), std::move(kernels),
                            data, expected, tolerance);
  if (findings.ok())
    return *findings;
  return Findings{{std::string(findings.status().message())}};
}

} // namespace meshwork::verify
