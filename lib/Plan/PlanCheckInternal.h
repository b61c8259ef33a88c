// Shared by the files of the plan check; see PlanCheck.h.
#pragma once

#include "lib/Plan/Axes.h"
#include "lib/Plan/CheckOperandsParts.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/Operands.h"
#include "lib/Plan/ProgramLives.h"
#include "lib/Plan/Views.h"
#include "meshwork/Plan/Frame.h"

namespace meshwork::plan {

/// A list of a program.
struct Section {
  std::string name; // "backward"
  ListKind kind;
  const Instructions *list;
  Repeats repeats;

  /// `backward[3] "h.0.attn"`, for messages.
  std::string where(uint32_t i) const {
    return absl::StrCat(name, "[", i, "] ", quote(list->Get(i)->name()));
  }
};

/// One program while it is checked.
struct ProgramCheck {
  const Plan &plan;
  const Program &program;
  std::vector<ViewInfo> views;
  std::vector<Section> sections; // lists, by number
  ActionTable table;

  /// What the last action runs.
  const Section &last() const { return sections[table.lastList()]; }
  const Buffer &bufferOf(const ViewInfo &view) const {
    return *program.buffers()->Get(view.buffer);
  }
};

/// Looks up a view index of an instruction, input, result or parameter.
absl::StatusOr<const ViewInfo *> findView(const ProgramCheck &check,
                                          uint32_t index, const char *role);

// Each file of the check, in the order in which they run.
absl::Status checkDevice(const Plan &plan);
absl::Status checkBuffers(const ProgramCheck &check);
absl::Status checkOperation(const ProgramCheck &check,
                            const Instruction &instruction);
/// The kernels that the instruction itself names, after checkOperation.
absl::Status checkKernels(const ProgramCheck &check,
                          const Instruction &instruction);
/// Lists and the table of actions, before a ProgramCheck can be made.
absl::Status checkLists(const Plan &plan, const Program &program);
absl::Status checkUses(const ProgramCheck &check);
/// What stands in a repeat may, and its views stay in their buffers in each
/// turn.
absl::Status checkTurns(const ProgramCheck &check);
/// No two live buffers share bytes, and one copy of each is enough.
absl::Status checkOverlaps(const ProgramCheck &check, const Lives &lives);
absl::Status checkState(const ProgramCheck &check);
absl::Status checkParameters(const ProgramCheck &check);
/// Programs that have the same parameter agree on it, and ranks hold all of it.
absl::Status checkSharedParameters(const Plan &plan);
/// The parameter's shape has been checked.
absl::Status checkFiles(const Parameter &parameter);
/// Files of different parameters have different names. After the programs.
absl::Status checkFileNames(const Plan &plan);
absl::Status checkAsync(const ProgramCheck &check);
/// Ranks that meet inside a counted repeat run it equally often.
absl::Status checkCounts(const ProgramCheck &check);
/// Weights change only after loss and gradient norm are known; see Look.h.
absl::Status checkLook(const ProgramCheck &check);
/// A read of a weight or an optimizer's state gets the value that it means: the
/// step's or the update's.
absl::Status checkUpdates(const ProgramCheck &check);
/// Its parts share no bytes, but where Plan.fbs says so.
absl::Status checkCollective(const ProgramCheck &check, const Collective &op);
absl::Status checkTransfer(const ProgramCheck &check, const Send &op);
absl::Status checkTransfer(const ProgramCheck &check, const Receive &op);
/// Each stands alone in a list of its direction, and each such list has one.
absl::Status checkTransferLists(const ProgramCheck &check);
/// What a transfer moves is of a microbatch, and the runtime itself touches
/// none of it.
absl::Status checkTransferBuffers(const ProgramCheck &check,
                                  const Lives &lives);
/// `transfers` of each program. Adds the ranks that it looked at to
/// `rehearsed`.
absl::Status checkMeetings(const Plan &plan, std::vector<Transfers> transfers,
                           uint64_t &rehearsed);

} // namespace meshwork::plan
