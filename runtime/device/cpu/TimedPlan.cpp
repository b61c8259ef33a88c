#include "runtime/device/cpu/TimedPlan.h"

#include <algorithm>
#include <cstring>

#include "lib/Plan/Checked.h"
#include "lib/Plan/ProgramLives.h"
#include "runtime/device/cpu/Bf16.h"

namespace meshwork::runtime {
namespace {
constexpr uint64_t alignment = 64;

} // namespace

TimedPlan::TimedPlan() {
  source.programs.push_back(std::make_unique<plan::ProgramT>());
  program().lists.push_back(std::make_unique<plan::ListT>());
}

uint32_t TimedPlan::addTensor(plan::DType type, std::vector<int64_t> shape) {
  auto view = std::make_unique<plan::ViewT>();
  view->buffer = static_cast<uint32_t>(program().buffers.size());
  view->dtype = type;
  view->strides.resize(shape.size());
  int64_t count = 1;
  for (size_t dim = shape.size(); dim-- > 0; count *= shape[dim])
    view->strides[dim] = count;
  view->shape = std::move(shape);
  auto buffer = std::make_unique<plan::BufferT>();
  buffer->size_bytes =
      static_cast<uint64_t>(count) * static_cast<uint64_t>(plan::bytesOf(type));
  buffer->offset = program().arena_bytes;
  program().arena_bytes +=
      (buffer->size_bytes + alignment - 1) / alignment * alignment;
  program().buffers.push_back(std::move(buffer));
  program().views.push_back(std::move(view));
  return static_cast<uint32_t>(program().views.size() - 1);
}

uint32_t TimedPlan::addTransposed(uint32_t of) {
  auto view = std::make_unique<plan::ViewT>(*program().views[of]);
  std::swap(view->shape.end()[-1], view->shape.end()[-2]);
  std::swap(view->strides.end()[-1], view->strides.end()[-2]);
  program().views.push_back(std::move(view));
  return static_cast<uint32_t>(program().views.size() - 1);
}

absl::Status TimedPlan::prepare(ThreadTeam &team) {
  plan::FinishPlanBuffer(builder, plan::Plan::Pack(builder, &source));
  const plan::Plan &plan = *plan::GetPlan(builder.GetBufferPointer());
  const plan::Program &program = *plan.programs()->Get(0);
  uint64_t scratch = 0;
  MESHWORK_ASSIGN_OR_RETURN(scratch, workspaceBytesPerThread(program));
  MESHWORK_ASSIGN_OR_RETURN(arena, Arena::create(program.arena_bytes()));
  MESHWORK_ASSIGN_OR_RETURN(
      workspace, Arena::create(scratch * static_cast<uint64_t>(team.size())));
  MESHWORK_ASSIGN_OR_RETURN(kernels, KernelLibrary::load(plan));
  fill();
  for (const plan::Instruction *instruction : plan::listOf(program, 0)) {
    instructions.emplace_back();
    MESHWORK_ASSIGN_OR_RETURN(
        instructions.back(),
        runtime::prepare(*instruction,
                         {plan, program, arena.data(), workspace.data(),
                          scratch, team, *kernels}));
  }
  return absl::OkStatus();
}

void TimedPlan::run() {
  for (std::unique_ptr<Executable> &instruction : instructions)
    instruction->run({});
}

void TimedPlan::fill() {
  uint32_t state = 1;
  auto next = [&state] { // Numerical Recipes' generator
    state = state * 1664525 + 1013904223;
    return static_cast<float>(state >> 8) * 0x1p-23f - 1;
  };
  for (const auto &view : program().views) {
    const plan::BufferT &buffer = *program().buffers[view->buffer];
    std::byte *at = arena.data() + buffer.offset;
    auto size = static_cast<uint64_t>(plan::bytesOf(view->dtype));
    for (uint64_t i = 0; i < buffer.size_bytes; i += size) {
      float value = next();
      cpu::Bf16 rounded = cpu::toBf16(value);
      std::memcpy(at + i,
                  size == 4 ? static_cast<const void *>(&value) : &rounded,
                  size);
    }
  }
}

} // namespace meshwork::runtime
