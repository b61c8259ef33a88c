// CudaExecutor: what is timed when the plan is loaded.
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Text/Escape.h"
#include "runtime/device/cuda/Beside.h"
#include "runtime/device/cuda/CudaExecutor.h"
#include "runtime/device/cuda/TimingNumbers.h"
#include "runtime/device/cuda/Tuned.h"

namespace meshwork::runtime::cuda {
namespace {
/// "tuning: 5 timed, 7 known, kept in "/home/ada/.cache/..."". Keeping them is
/// not worth a run.
std::string keep(const Tuned &tuned, const std::string &path) {
  Tuned::Counts counts = tuned.counts();
  std::string text = absl::StrCat("tuning: ", counts.timed, " timed, ",
                                  counts.known, " known");
  if (path.empty())
    return text;
  absl::Status kept;
  if (counts.timed > 0)
    kept = writeTuned(path, tuned);
  return kept.ok() ? absl::StrCat(text, ", kept in ", quote(path))
                   : absl::StrCat(text, ", not kept: ", kept.message());
}

bool hasChoices(const plan::Instruction &instruction,
                const OperationContext &context) {
  if (instruction.op_type() == plan::Operation::Matmul)
    return true;
  bool isAttention = instruction.op_type() == plan::Operation::Attention ||
                     instruction.op_type() == plan::Operation::AttentionGrad;
  return isAttention && (context.dnn || context.wgmma) &&
         context.choosesAttention;
}
} // namespace

/// Rank 0 times for all: what several ranks compute must have the same bits on
/// each.
absl::Status CudaExecutor::shareTuning(const OperationContext &context) {
  Tuned &tuned = Tuned::ofProcess();
  bool times = setup.program.rank == 0;
  if (times)
    MESHWORK_RETURN_IF_ERROR(tuneAll(tuned, context));
  absl::StatusOr<std::vector<std::string>> all = setup.transport.exchange(
      setup.program.rank, times ? tuned.text(/*onlyUsed=*/true) : "",
      "the timing of products and attention");
  MESHWORK_RETURN_IF_ERROR(all.status());
  if (!times)
    tuned.adopt((*all)[0]);
  return absl::OkStatus();
}

absl::Status CudaExecutor::tuneList(const plan::Instructions &list,
                                    OperationContext context) {
  std::vector<uint32_t> beside = channelsBeside(list);
  for (uint32_t i = 0; i < list.size(); ++i) {
    context.multiprocessors = multiprocessorsOfProducts(beside[i]);
    if (hasChoices(*list.Get(i), context))
      MESHWORK_RETURN_IF_ERROR(makeOperation(*list.Get(i), context).status());
  }
  return absl::OkStatus();
}

/// With what earlier runs have found, and for later ones.
absl::Status CudaExecutor::tuneAll(Tuned &tuned,
                                   const OperationContext &context) {
  if (!blas)
    return absl::OkStatus();
  std::string path = tunedPath(blas->version(), cuda.gpu.describe());
  tuned.adopt(readTuned(path));
  MESHWORK_RETURN_IF_ERROR(fillForTiming(cuda.gpu.driver(), *main, *staging,
                                         arena.address(),
                                         setup.program.program.arena_bytes()));
  for (uint32_t list = 0; list < setup.program.table.lists().size(); ++list)
    MESHWORK_RETURN_IF_ERROR(
        tuneList(plan::listOf(setup.program.program, list), context));
  if (dnn)
    dnn->release(); // What is bound takes what it needs.
  cuda.tuning = keep(tuned, path);
  return absl::OkStatus();
}

} // namespace meshwork::runtime::cuda
