// Turns the instructions of a plan into objects that run on this machine's CPU.
//
//   PrepareContext context{plan, program, arena, workspace, bytes, team,
//   kernels}; StatusOr<std::unique_ptr<Executable>> op = prepare(*instruction,
//   context);
//   (*op)->run({.sets = true});
//
// Everything that can fail, and every allocation, happens in prepare(); run()
// only computes. What each instruction means is written in Plan.fbs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "meshwork/Plan/Plan.h"
#include "runtime/base/ThreadTeam.h"
#include "runtime/device/cpu/KernelLibrary.h"
#include "runtime/machine/StepState.h"

namespace meshwork::runtime {

/// A program, and where one rank finds its views.
struct ProgramOnRank {
  const plan::Program &program;
  /// Bytes that each view's shifts come to; empty: of no rank, as for questions
  /// whose answer is the same on all.
  absl::Span<const uint64_t> shifts;
};

/// Where a program runs. All of it outlives the executables made from it.
struct PrepareContext {
  const plan::Plan &plan;
  const plan::Program &program;
  std::byte *arena;     // both (plan::bytesOfArenas), aligned to 64
  std::byte *workspace; // team.size() * workspaceBytesPerThread, aligned to 64
  uint64_t workspaceBytesPerThread; // a multiple of 64
  ThreadTeam &team;
  const KernelLibrary &kernels;
  absl::Span<const uint64_t> shifts = {}; // see ProgramOnRank
};

/// One instruction, ready to run. run() is called by the thread that made the
/// team, one executable at a time.
class Executable {
public:
  virtual ~Executable() = default;
  virtual void run(const StepState &state) = 0;
};

/// Makes any instruction but Collective executable. The plan has passed the
/// structural checks. Errors name the instruction, what was found and what is
/// expected. Unimplemented: no kernel covers these types or strides.
/// InvalidArgument: the shapes do not fit. ResourceExhausted: the workspace is
/// smaller than this machine's libraries need.
absl::StatusOr<std::unique_ptr<Executable>>
prepare(const plan::Instruction &instruction, const PrepareContext &context);

/// Scratch bytes that each thread needs for the instructions of `program` on
/// this machine, a multiple of 64; the maximum over instructions. Independent
/// of the number of threads.
absl::StatusOr<uint64_t> workspaceBytesPerThread(const plan::Program &program);

} // namespace meshwork::runtime
