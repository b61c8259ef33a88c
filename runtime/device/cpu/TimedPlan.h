// Instructions that are run to be timed, as a step runs them: from a plan made
// here, on memory and numbers of its own.
//
//   TimedPlan plan;
//   plan::MatmulT product;
//   product.lhs = plan.addTensor(plan::DType::f32, {1, 64, 64}); ...
//   plan.addInstruction(product);
//   RETURN_IF_ERROR(plan.prepare(team));
//   plan.run();
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "meshwork/Plan/Plan.h"
#include "meshwork/Plan/Types.h"
#include "runtime/base/ThreadTeam.h"
#include "runtime/device/cpu/Prepare.h"
#include "runtime/machine/Memory.h"

namespace meshwork::runtime {

class TimedPlan {
public:
  TimedPlan();

  /// A view of a buffer of its own, row-major.
  uint32_t addTensor(plan::DType type, std::vector<int64_t> shape);
  /// The view with its last two dims exchanged, of the same buffer.
  uint32_t addTransposed(uint32_t view);

  template <typename Op> void addInstruction(Op op) {
    auto instruction = std::make_unique<plan::InstructionT>();
    instruction->name = "measurement";
    instruction->op.Set(std::move(op));
    list().instructions.push_back(std::move(instruction));
  }

  /// After everything was added, once. All tensors then hold numbers between
  /// -1 and 1: products of zeros take less power and may be faster.
  absl::Status prepare(ThreadTeam &team);

  /// All instructions, in order.
  void run();

private:
  plan::ProgramT &program() { return *source.programs[0]; }
  plan::ListT &list() { return *program().lists[0]; }
  void fill();

  plan::PlanT source;
  flatbuffers::FlatBufferBuilder builder;
  Arena arena, workspace;
  std::unique_ptr<KernelLibrary> kernels;
  std::vector<std::unique_ptr<Executable>> instructions;
};

} // namespace meshwork::runtime
