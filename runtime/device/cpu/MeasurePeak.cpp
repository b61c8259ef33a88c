// Runs the matmul as any other instruction, from a plan made here, so that
// what is measured is what training uses.
#include "runtime/device/cpu/MeasurePeak.h"
#include "runtime/core/Checked.h"
#include "runtime/core/Clock.h"
#include "runtime/core/Memory.h"
#include "runtime/core/ProgramLives.h"
#include "runtime/device/cpu/Prepare.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {
constexpr int64_t size = 2048;
constexpr uint64_t buffers = 3;
constexpr int64_t atLeastNs = 600'000'000;

plan::PlanT matmulPlan(plan::DType compute) {
  plan::PlanT plan;
  plan.programs.push_back(std::make_unique<plan::ProgramT>());
  plan::ProgramT &program = *plan.programs[0];
  for (uint32_t i = 0; i < buffers; ++i) {
    auto buffer = std::make_unique<plan::BufferT>();
    buffer->size_bytes = size * size * 4;
    buffer->offset = i * buffer->size_bytes;
    program.arena_bytes += buffer->size_bytes;
    program.buffers.push_back(std::move(buffer));
    auto view = std::make_unique<plan::ViewT>();
    view->buffer = i;
    view->dtype = compute;
    view->shape = {1, size, size};
    view->strides = {size * size, size, 1};
    program.views.push_back(std::move(view));
  }
  plan::MatmulT matmul;
  matmul.lhs = 0;
  matmul.rhs = 1;
  matmul.dst = 2;
  auto instruction = std::make_unique<plan::InstructionT>();
  instruction->name = "peak measurement";
  instruction->op.Set(std::move(matmul));
  program.lists.push_back(std::make_unique<plan::ListT>());
  program.lists[0]->instructions.push_back(std::move(instruction));
  return plan;
}
} // namespace

absl::StatusOr<double> measureMatmulTflops(plan::DType compute,
                                           ThreadTeam &team) {
  flatbuffers::FlatBufferBuilder builder;
  plan::PlanT source = matmulPlan(compute);
  plan::FinishPlanBuffer(builder, plan::Plan::Pack(builder, &source));
  const plan::Plan &plan = *plan::GetPlan(builder.GetBufferPointer());
  const plan::Program &program = *plan.programs()->Get(0);
  absl::StatusOr<uint64_t> scratch = workspaceBytesPerThread(program);
  MESHWORK_RETURN_IF_ERROR(scratch.status());
  absl::StatusOr<Arena> arena = Arena::create(program.arena_bytes());
  MESHWORK_RETURN_IF_ERROR(arena.status());
  absl::StatusOr<Arena> workspace =
      Arena::create(*scratch * static_cast<uint64_t>(team.size()));
  MESHWORK_RETURN_IF_ERROR(workspace.status());
  absl::StatusOr<std::unique_ptr<KernelLibrary>> kernels =
      KernelLibrary::load(plan);
  MESHWORK_RETURN_IF_ERROR(kernels.status());
  auto matmul = prepare(*listOf(program, 0).Get(0),
                        {plan, program, arena->data(), workspace->data(),
                         *scratch, team, **kernels});
  MESHWORK_RETURN_IF_ERROR(matmul.status());
  (*matmul)->run({});
  int64_t best = INT64_MAX;
  for (int64_t start = steadyNs(), now = start; now - start < atLeastNs;) {
    (*matmul)->run({});
    int64_t end = steadyNs();
    best = std::min(best, end - now);
    now = end;
  }
  return 2.0 * size * size * size /
         static_cast<double>(std::max<int64_t>(best, 1)) / 1e3;
}

} // namespace meshwork::runtime
