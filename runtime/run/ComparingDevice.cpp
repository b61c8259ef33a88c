#include "runtime/run/ComparingDevice.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/Operands.h"
#include "runtime/machine/Way.h"
#include "runtime/run/Allowance.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {

class ComparingExecutor : public Executor {
public:
  ComparingExecutor(const ExecutorSetup &setup,
                    std::unique_ptr<CpuExecutor> reference,
                    std::unique_ptr<Executor> tested, ComparingDevice &results)
      : program(setup.program), known(setup.program),
        reference(std::move(reference)), tested(std::move(tested)),
        results(results) {}

  absl::Status run(const ListRun &list,
                   InstructionObserver *observer) override {
    return runParts(program, list, *this, known, [&](const ListRun &part) {
      for (uint32_t i = part.begin; i < part.end; ++i)
        if (!program.leavesOut(part, i))
          MESHWORK_RETURN_IF_ERROR(runBoth(list, i, observer));
      return absl::OkStatus();
    });
  }

  absl::Status write(uint64_t place,
                     absl::Span<const std::byte> bytes) override {
    return reference->write(place, bytes);
  }
  absl::Status read(uint64_t place, absl::Span<std::byte> bytes) override {
    return reference->read(place, bytes);
  }
  std::byte *hostArena() override { return reference->hostArena(); }
  ThreadTeam &team() override { return reference->team(); }
  absl::StatusOr<double> measureMatmulTflops(plan::DType type) override {
    return tested->measureMatmulTflops(type);
  }
  CommTimes takeTimes() override { return reference->takeTimes(); }

private:
  absl::Status runBoth(ListRun list, uint32_t at,
                       InstructionObserver *observer) {
    const plan::Instruction &one = program.instruction(list.list, at);
    program.moveTo({list.list, program.copies.variantOf(list.action),
                    program.turns[list.list][at].turns});
    list.begin = at;
    list.end = at + 1;
    MESHWORK_RETURN_IF_ERROR(copyOperands(one));
    MESHWORK_RETURN_IF_ERROR(reference->run(list, observer));
    MESHWORK_RETURN_IF_ERROR(tested->run(list, nullptr));
    return compare(one);
  }
  absl::Span<std::byte> bytesOf(uint32_t view) {
    return {hostArena() + program.places[view], program.views[view].spanBytes};
  }

  /// Results too: what lies between their elements stays.
  absl::Status copyOperands(const plan::Instruction &one) {
    absl::Status status;
    inexact = false;
    forEachOperand(one, [&](const plan::Operand &operand) {
      plan::DType type = program.views[operand.view].dtype;
      inexact |= plan::bytesOf(type) < 4;
      if (status.ok())
        status =
            tested->write(program.places[operand.view], bytesOf(operand.view));
    });
    return status;
  }

  absl::Status compare(const plan::Instruction &one) {
    if (one.channel() > 0)
      return absl::OkStatus(); // It may not have ended.
    absl::Status status;
    uint32_t number = 0;
    forEachOperand(one, [&](const plan::Operand &operand) {
      if (operand.written && status.ok())
        status = compare(one, operand, hasMaxima(one, number));
      ++number;
    });
    return status;
  }

  /// A launch's operands are its kernel's arguments, in order.
  bool hasMaxima(const plan::Instruction &one, uint32_t number) const {
    const plan::Launch *launch = one.op_as_Launch();
    if (!launch)
      return false;
    auto *maxima = program.plan.kernels()->Get(launch->kernel())->maxima();
    return maxima && absl::c_linear_search(*maxima, number);
  }

  absl::Status compare(const plan::Instruction &one,
                       const plan::Operand &operand, bool maxima) {
    const plan::ViewInfo &view = program.views[operand.view];
    got.resize(view.spanBytes);
    MESHWORK_RETURN_IF_ERROR(
        tested->read(program.places[operand.view], absl::MakeSpan(got)));
    absl::Span<const std::byte> wanted = bytesOf(operand.view);
    if (maxima) {
      joined.assign(wanted.begin(), wanted.end());
      joinMaxima(view, absl::MakeSpan(joined));
      joinMaxima(view, absl::MakeSpan(got));
      wanted = joined;
    }
    double most = shareOfAllowance(view, wanted, got, inexact, team());
    std::string kind = plan::EnumNameOperation(one.op_type());
    std::string where =
        absl::StrCat(operand.role, " of ", plan::quote(one.name()), ", ",
                     describe(view), ", rank ", program.rank);
    results.note(absl::StrCat(kind, inexact ? " (bf16)" : " (f32)"), most,
                 where);
    return absl::OkStatus();
  }

  RankProgram program; // moves from turn to turn
  KnownCounts known;
  std::unique_ptr<CpuExecutor> reference;
  std::unique_ptr<Executor> tested;
  ComparingDevice &results;
  std::vector<std::byte> got, joined; // `joined`: of maxima, the CPU's
  bool inexact = false;
};

std::vector<std::pair<double, std::string>>
worstFirst(const std::map<std::string, double> &wrong) {
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto &[where, share] : wrong)
    sorted.emplace_back(share, where);
  std::sort(sorted.rbegin(), sorted.rend());
  return sorted;
}
} // namespace

absl::StatusOr<std::unique_ptr<Device>>
ComparingDevice::open(std::unique_ptr<Device> tested, const plan::Plan &plan) {
  if (!plan.code() || plan.code()->size() == 0)
    return absl::FailedPreconditionError(
        "--compare-cpu: the plan has no code for the CPU, compile it with "
        "--with-cpu-code");
  MESHWORK_RETURN_IF_ERROR(checkMachine(plan));
  absl::StatusOr<std::unique_ptr<KernelLibrary>> kernels =
      KernelLibrary::load(plan);
  MESHWORK_RETURN_IF_ERROR(kernels.status());
  return std::unique_ptr<Device>(
      new ComparingDevice(std::move(tested), std::move(*kernels)));
}

absl::StatusOr<uint64_t>
ComparingDevice::checkMemory(const std::vector<CoreShare> &cores,
                             uint32_t ranksHere) {
  return tested->checkMemory(cores, ranksHere);
}

absl::StatusOr<std::unique_ptr<Executor>>
ComparingDevice::makeExecutor(const ExecutorSetup &setup) {
  absl::StatusOr<std::unique_ptr<CpuExecutor>> reference =
      CpuExecutor::create(setup, *kernels);
  MESHWORK_RETURN_IF_ERROR(reference.status());
  absl::StatusOr<std::unique_ptr<Executor>> other = tested->makeExecutor(setup);
  MESHWORK_RETURN_IF_ERROR(other.status());
  return std::make_unique<ComparingExecutor>(setup, std::move(*reference),
                                             std::move(*other), *this);
}

void ComparingDevice::note(const std::string &kind, double share,
                           const std::string &where) {
  std::lock_guard<std::mutex> lock(mutex);
  Deviation &of = deviations[kind];
  ++of.instructions;
  if (of.instructions == 1 || share > of.worst) {
    of.worst = share;
    of.where = where;
  }
  if (share > 1) {
    double &worst = wrong[absl::StrCat(kind, ", ", where)];
    worst = std::max(worst, share);
  }
}

std::string ComparingDevice::summary() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::string text;
  for (const auto &[kind, of] : deviations)
    absl::StrAppendFormat(&text,
                          "%-22s %6d results compared with the CPU's, the "
                          "furthest at %.3f of what rounding allows: %s\n",
                          kind, of.instructions, of.worst, of.where);
  for (const auto &[share, where] : worstFirst(wrong))
    absl::StrAppendFormat(&text,
                          "differs by %.3g times what rounding allows: %s\n",
                          share, where);
  return tested->summary() + text;
}

absl::Status ComparingDevice::verdict() const {
  std::lock_guard<std::mutex> lock(mutex);
  if (wrong.empty())
    return absl::OkStatus();
  auto [share, where] = worstFirst(wrong).front();
  return absl::InternalError(absl::StrCat(
      "the GPU's results differ from the CPU's in ", wrong.size(),
      " places, the worst by ", share, " times what rounding allows: ", where));
}

} // namespace meshwork::runtime
