#include "runtime/run/ComparingDevice.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Plan/Operands.h"
#include "runtime/core/Bf16.h"
#include "runtime/core/Checked.h"
#include "runtime/core/Float8.h"
#include <algorithm>
#include <cmath>
#include <cstring>

namespace meshwork::runtime {
namespace {

double element(plan::DType type, const std::byte *at) {
  if (type == plan::DType::bf16) {
    uint16_t bits;
    std::memcpy(&bits, at, sizeof(bits));
    return static_cast<double>(fromBf16(bits));
  }
  if (plan::isFloat8(type))
    return static_cast<double>(fromFloat8(type, std::to_integer<uint8_t>(*at)));
  if (type == plan::DType::i32) {
    int32_t value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  float value;
  std::memcpy(&value, at, sizeof(value));
  return static_cast<double>(value);
}

void forEachOffset(const ViewInfo &view, size_t dim, int64_t offset,
                   absl::FunctionRef<void(int64_t)> visit) {
  if (dim == view.shape.size())
    return visit(offset);
  int64_t step = view.strides[dim] * static_cast<int64_t>(sizeOf(view.dtype));
  for (int64_t i = 0; i < view.shape[dim]; ++i)
    forEachOffset(view, dim + 1, offset + i * step, visit);
}

struct Allowance {
  double ofItself, ofAll;
};
Allowance allowance(plan::DType type, bool inexact) {
  if (type == plan::DType::i32)
    return {0, 0};
  if (type == plan::DType::bf16)
    return {0x1p-6, 0.03};
  if (plan::isFloat8(type)) // One place of the last bit.
    return {type == plan::DType::e4m3 ? 0x1p-3 : 0x1p-2, 0.03};
  return inexact ? Allowance{0x1p-9, 0.01} : Allowance{0x1p-15, 1e-4};
}

double share(double expected, double got, double allowed) {
  if (std::isnan(expected) || std::isnan(got))
    return std::isnan(expected) && std::isnan(got) ? 0 : HUGE_VAL;
  double off = std::abs(expected - got);
  return expected == got ? 0 : allowed > 0 ? off / allowed : HUGE_VAL;
}

class ComparingExecutor : public Executor {
public:
  ComparingExecutor(const ExecutorSetup &setup,
                    std::unique_ptr<CpuExecutor> reference,
                    std::unique_ptr<Executor> tested, ComparingDevice &results)
      : program(setup.program), reference(std::move(reference)),
        tested(std::move(tested)), results(results) {}

  absl::Status run(const ListRun &list,
                   InstructionObserver *observer) override {
    const std::vector<plan::Turn> &turns = program.turns[list.list];
    uint32_t end = std::min(list.end, static_cast<uint32_t>(turns.size()));
    for (uint32_t i = list.begin; i < end; ++i) {
      const plan::Instruction &one = program.instruction(list.list, i);
      program.moveTo(
          {list.list, program.copies.variantOf(list.action), turns[i].turns});
      ListRun single = list;
      single.begin = i;
      single.end = i + 1;
      MESHWORK_RETURN_IF_ERROR(copyOperands(one));
      MESHWORK_RETURN_IF_ERROR(reference->run(single, observer));
      MESHWORK_RETURN_IF_ERROR(tested->run(single, nullptr));
      MESHWORK_RETURN_IF_ERROR(compare(one));
    }
    return absl::OkStatus();
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
  absl::Span<std::byte> bytesOf(uint32_t view) {
    return {hostArena() + program.places[view], program.views[view].spanBytes};
  }

  /// Results too: what lies between their elements stays.
  absl::Status copyOperands(const plan::Instruction &one) {
    absl::Status status;
    inexact = false;
    forEachOperand(one, [&](const plan::Operand &operand) {
      plan::DType type = program.views[operand.view].dtype;
      inexact |= type == plan::DType::bf16 || plan::isFloat8(type);
      if (status.ok())
        status =
            tested->write(program.places[operand.view], bytesOf(operand.view));
    });
    return status;
  }

  absl::Status compare(const plan::Instruction &one) {
    if (const plan::Collective *op = one.op_as_Collective())
      if (op->channel() > 0)
        return absl::OkStatus(); // It may not have ended.
    absl::Status status;
    forEachOperand(one, [&](const plan::Operand &operand) {
      if (operand.written && status.ok())
        status = compare(one, operand);
    });
    return status;
  }

  absl::Status compare(const plan::Instruction &one,
                       const plan::Operand &operand) {
    const ViewInfo &view = program.views[operand.view];
    got.resize(view.spanBytes);
    MESHWORK_RETURN_IF_ERROR(
        tested->read(program.places[operand.view], absl::MakeSpan(got)));
    double most = shareOfAllowance(view, bytesOf(operand.view).data(),
                                   got.data(), inexact);
    std::string kind = plan::EnumNameOperation(one.op_type());
    std::string where =
        absl::StrCat(operand.role, " of ", quote(one.name()), ", ",
                     describe(view), ", rank ", program.rank);
    results.note(absl::StrCat(kind, inexact ? " (bf16)" : " (f32)"), most,
                 where);
    if (most <= 1)
      return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("the GPU's result differs from the CPU's by ", most,
                     " times what rounding allows: ", kind, ", ", where));
  }

  RankProgram program; // moves from turn to turn
  std::unique_ptr<CpuExecutor> reference;
  std::unique_ptr<Executor> tested;
  ComparingDevice &results;
  std::vector<std::byte> got;
  bool inexact = false;
};
} // namespace

double shareOfAllowance(const ViewInfo &view, const std::byte *expected,
                        const std::byte *got, bool inexact) {
  double squares = 0;
  forEachOffset(view, 0, 0, [&](int64_t at) {
    double value = element(view.dtype, expected + at);
    squares += std::isfinite(value) ? value * value : 0;
  });
  double rms = std::sqrt(squares / static_cast<double>(view.elements));
  Allowance part = allowance(view.dtype, inexact);
  double most = 0;
  forEachOffset(view, 0, 0, [&](int64_t at) {
    double value = element(view.dtype, expected + at);
    most = std::max(most,
                    share(value, element(view.dtype, got + at),
                          part.ofItself * std::abs(value) + part.ofAll * rms));
  });
  return most;
}

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
}

std::string ComparingDevice::summary() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::string text;
  for (const auto &[kind, of] : deviations)
    absl::StrAppendFormat(&text,
                          "%-22s %6d results as on the CPU, the furthest at "
                          "%.3f of what rounding allows: %s\n",
                          kind, of.instructions, of.worst, of.where);
  return tested->summary() + text;
}

} // namespace meshwork::runtime
