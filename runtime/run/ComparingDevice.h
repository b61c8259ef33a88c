// Runs every instruction of a plan on a GPU and, from the same inputs, on the
// CPU, and compares what they write. For a plan that has code for both
// (`meshwork compile --with-cpu-code`). The CPU's results are what the run goes
// on with, so one wrong instruction shows as one.
#pragma once

#include "runtime/device/cpu/CpuExecutor.h"
#include <map>
#include <mutex>

namespace meshwork::runtime {

/// How far results of one kind of instruction were from the CPU's.
struct Deviation {
  uint64_t instructions = 0; // compared
  double worst = 0;          // share of what is allowed
  std::string where;         // of the worst
};

class ComparingDevice : public Device {
public:
  /// failedPrecondition when the plan has no code for the CPU.
  static absl::StatusOr<std::unique_ptr<Device>>
  open(std::unique_ptr<Device> tested, const plan::Plan &plan);

  absl::StatusOr<uint64_t> checkMemory(const std::vector<CoreShare> &cores,
                                       uint32_t ranksHere) override;
  absl::StatusOr<std::unique_ptr<Executor>>
  makeExecutor(const ExecutorSetup &setup) override;
  /// A line for each kind of instruction.
  std::string summary() const override;
  void note(const std::string &kind, double share, const std::string &where);

private:
  ComparingDevice(std::unique_ptr<Device> tested,
                  std::unique_ptr<KernelLibrary> kernels)
      : tested(std::move(tested)), kernels(std::move(kernels)) {}

  std::unique_ptr<Device> tested;
  std::unique_ptr<KernelLibrary> kernels;
  mutable std::mutex mutex;
  std::map<std::string, Deviation> deviations;
};

/// Whether `got` is as near to `expected` as rounding allows, and how near: the
/// largest share of the allowance of any element, above 1 when it is not.
///   inexact  some operand of the instruction is bf16
/// An element may be off by a part of itself and a part of the root mean square
/// of all, since sums of other elements' size round at their size:
///   bf16 results     2^-6 and 0.03   (8 bits, and an intermediate rounded too)
///   f32 from bf16    2^-9 and 0.01   (intermediates that one device keeps in
///   f32) f32              2^-15 and 1e-4  (sums in another order, approximate
///   functions) i32              nothing
double shareOfAllowance(const ViewInfo &view, const std::byte *expected,
                        const std::byte *got, bool inexact);

} // namespace meshwork::runtime
