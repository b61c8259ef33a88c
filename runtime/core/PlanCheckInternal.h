// Shared by the files of the plan check; see PlanCheck.h.
#pragma once

#include "lib/Plan/Operands.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/core/Axes.h"
#include "runtime/core/Checked.h"
#include "runtime/core/Views.h"
#include <array>

namespace meshwork::runtime {

/// Communication threads of one rank; see plan::Collective.
inline constexpr uint32_t maxChannels = 8;

/// The four lists of a program in the order in which lives count them.
struct Section {
  const char *name;
  const Instructions *list;
  uint64_t begin; // index of the first instruction in the whole program
  uint64_t end() const { return begin + list->size(); }
};

/// One program while it is checked.
struct ProgramCheck {
  const plan::Plan &plan;
  const plan::Program &program;
  std::vector<ViewInfo> views;
  std::array<Section, 4> sections; // once, step, microbatch, update

  const Section &step() const { return sections[1]; }
  const Section &microbatch() const { return sections[2]; }
  const Section &update() const { return sections[3]; }
  const plan::Buffer &bufferOf(const ViewInfo &view) const {
    return *program.buffers()->Get(view.buffer);
  }
};

/// Looks up a view index of an instruction, input, result or parameter.
absl::StatusOr<const ViewInfo *> findView(const ProgramCheck &check,
                                          uint32_t index, const char *role);

/// `found` must have this type and shape.
absl::Status expectView(const ViewInfo &found, const char *role,
                        plan::DType dtype, absl::Span<const int64_t> shape);

// Each file of the check, in the order in which they run.
absl::Status checkDevice(const plan::Plan &plan);
absl::Status checkBuffers(const ProgramCheck &check);
absl::Status checkOperation(const ProgramCheck &check,
                            const plan::Instruction &instruction);
/// The kernels that the instruction itself names, after checkOperation.
absl::Status checkKernels(const ProgramCheck &check,
                          const plan::Instruction &instruction);
absl::Status checkUses(const ProgramCheck &check);
absl::Status checkOverlaps(const ProgramCheck &check);
absl::Status checkState(const ProgramCheck &check);
absl::Status checkParameters(const ProgramCheck &check);
/// Programs that have the same parameter agree on it, and ranks hold all of it.
absl::Status checkSharedParameters(const plan::Plan &plan);
absl::Status checkAsync(const ProgramCheck &check);
/// Weights change only after loss and gradient norm are known; see Look.h.
absl::Status checkLook(const ProgramCheck &check);
absl::Status checkCollective(const ProgramCheck &check,
                             const plan::Collective &op);
absl::Status checkCollectiveOrder(const plan::Plan &plan);

} // namespace meshwork::runtime
